"""Train a ranker on simulated incidents alone: train.py STEPS SEED, 900 steps in 12 minutes on one core; the weights go to net<SEED>.pt."""

import sys, time, numpy as np, torch
torch.set_num_threads(1)
from world import sample, FAULTS, MAXN
from features import features, arrays_of
from ranker import Ranker
steps, seed = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(seed)
def batch(i):
    X, A, real, root = features(sample(i))
    return torch.from_numpy(X), torch.from_numpy(A), torch.from_numpy(real), torch.from_numpy(np.where(root < 0, MAXN, root))
X, A, real, y = batch(10**9)
F = X.shape[-1]; mean = X[real].mean(0); std = X[real].std(0) + .05
net = Ranker(F); print(F, sum(p.numel() for p in net.parameters()))
opt = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=.01)
sch = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=steps, pct_start=.05)
norm = lambda X, real: ((X - mean) / std).clamp(-8, 8) * real.unsqueeze(-1)
val = [batch(10**9 + i) for i in range(1, 5)]; vf = np.concatenate([sample(10**9+i)["fault"] for i in range(1, 5)])
def evaluate():
    net.eval(); hit = []
    with torch.no_grad():
        for X, A, real, y in val: hit.append((net(norm(X, real), A, real).argmax(1) == y).float())
    net.train(); return torch.cat(hit).numpy()
t0 = time.time(); tg = 0; run = 0
for i in range(steps):
    t = time.time(); X, A, real, y = batch(seed * 10**6 + i); tg += time.time() - t
    loss = torch.nn.functional.cross_entropy(net(norm(X, real), A, real), y)
    opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(net.parameters(), 1.); opt.step(); sch.step()
    run = .97 * run + .03 * loss.item() if i else loss.item()
    if (i + 1) % 100 == 0: print(i + 1, round(run, 3), "val", evaluate().mean().round(3), "s", round(time.time() - t0), "gen", round(tg), flush=True)
h = evaluate()
print({FAULTS[k]: round(float(h[vf == k].mean()), 2) for k in range(len(FAULTS))})
torch.save(dict(state=net.state_dict(), mean=mean, std=std, F=F), f"net{seed}.pt")
