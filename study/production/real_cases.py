"""Rank the services of the 76 real cases by one or several rankers: real_cases.py net2.pt net3.pt."""

import sys, torch, numpy as np
from features import features, arrays_of
from ranker import Ranker
from world import MAXN
from logtriage.real.cases import SOURCES, load_source
torch.set_num_threads(1)
nets = []
for p in sys.argv[1:]:
    d = torch.load(p); net = Ranker(d["F"]); net.load_state_dict(d["state"]); net.eval(); nets.append((net, d["mean"], d["std"]))
for s in SOURCES:
    rows = []
    for c in load_source(s).cases:
        X, A, real, root = features(arrays_of(c))
        X, A, real = map(torch.from_numpy, (X, A, real))
        with torch.no_grad():
            lp = [torch.log_softmax(net(((X - m) / sd).clamp(-8, 8) * real.unsqueeze(-1), A, real), 1)[0] for net, m, sd in nets]
        each = [int(l[:-1].argmax() == root[0]) for l in lp]
        l = torch.stack(lp).logsumexp(0)
        order = l[:-1].argsort(descending=True)
        rows.append((int(order[0] == root[0]), int(root[0] in order[:3].tolist()), float(l.softmax(0)[-1]), c.truth.fault, each))
    print(s, "top1", round(np.mean([r[0] for r in rows]), 2), "top3", round(np.mean([r[1] for r in rows]), 2), "none p", round(np.mean([r[2] for r in rows]), 2),
          "each", np.mean([r[4] for r in rows], 0).round(2), {f: (sum(r[0] for r in rows if r[3] == f), sum(r[3] == f for r in rows)) for f in {r[3] for r in rows}})
