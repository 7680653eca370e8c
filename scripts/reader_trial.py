"""SmolLM2 taught on pasted windows. python reader_trial.py TRAIN_MINUTES EVERY"""

import json, sys, time
from random import Random
from datetime import timedelta
import torch

torch.set_num_threads(2)
import pasted_windows as pw
from corpus import FORMATS, SHOP, formatted
from triagelab.train.grpo import load_to_train
from triagelab.train.settings import TrainingConfig
from triagelab.train.supervised import encode

ASK = "Which service's own trouble began this? Answer with its name and what happened, or with: nobody"
FIRST = [
    "auth",
    "billing",
    "cart",
    "search",
    "mailer",
    "gateway",
    "shipping",
    "users-db",
    "events",
    "catalog",
    "pricing",
    "session-cache",
    "geo",
    "invoice-db",
    "notify",
    "queue",
    "reports",
    "media",
    "ledgerd",
    "pg-main",
    "mongo-a",
    "kafka-2",
    "orders-db",
    "postgres",
    "stock-api",
    "tax",
    "fraud",
    "wallet",
    "profile-db",
    "recs",
    "feeds",
    "images",
    "stats",
    "audit-log",
    "router",
    "proxy",
    "web",
    "api",
    "worker",
    "scheduler",
]
names = [n for n in FORMATS if "{" not in FORMATS[n]["file"]]
callers = sorted({flow[0] for flow in SHOP["locked"]["flows"]} - {pw.ROOT})
print("callers", callers, flush=True)


def text_of(name, cut):
    files = formatted(FORMATS[name], cut)
    return "\n".join(v.decode(errors="replace") for v in files.values())


def window(random, half, rename):
    name = random.choice(pw.half_of(half, names))
    kind = random.choice(["sick", "sick", "calm"])
    cause, root = (
        random.choice(pw.half_of(half, pw.OWN)),
        random.choice(FIRST[:] if rename else pw.NAMES[half]),
    )
    begin, end = (pw.STARTS + timedelta(minutes=m) for m in pw.MINUTES[kind])
    entries = [e for e in pw.incident(cause, root) if begin <= e.at < end]
    first, most = random.randrange(len(entries) - 10), random.randrange(5, 51)
    lines, cut = 0, []
    for e in entries[first:]:
        lines += e.text.count("\n") + 1
        if lines > most:
            break
        cut.append(e)
    answerable = kind == "calm" or pw.is_answerable(cut, root)
    if rename:
        others = random.sample([n for n in FIRST if n != root], len(callers))
        table = dict(zip(callers, others))

        def swap(s):
            for a, b in table.items():
                s = s.replace(a, b)
            return s

        cut = [e._replace(service=swap(e.service), text=swap(e.text)) for e in cut]
    return kind, name, cut, root, cause, answerable


def messages(text, answer=None):
    rows = [{"role": "system", "content": ASK}, {"role": "user", "content": text}]
    return rows + ([{"role": "assistant", "content": answer}] if answer else [])


model, tok = load_to_train(TrainingConfig(model="smollm2", lora_rank=16, lora_alpha=32))
inner = model
for p in model.parameters():
    if not p.requires_grad:
        p.data = p.data.bfloat16()
weights = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(weights, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0)
began, i, seen, losses = time.time(), 0, 0, []
minutes, every = float(sys.argv[1]), int(sys.argv[2])
random = Random("trial")
model.train()
while time.time() - began < 60 * minutes:
    opt.zero_grad()
    n = 0
    while n < 4:
        kind, name, cut, root, cause, ok = window(random, "first", True)
        if not ok or not cut:
            continue
        ex = encode(
            tok,
            messages(text_of(name, cut), f"{root}: {cause}" if kind == "sick" else "nobody"),
            None,
            1.0,
        )
        if len(ex.ids) > 1500:
            continue
        at = torch.tensor([t[0] for t in ex.targets])
        to = torch.tensor([t[1] for t in ex.targets])
        with torch.autocast("cpu", torch.bfloat16):
            hidden = (
                model.get_base_model().base_model(torch.tensor([ex.ids[:-1]])).last_hidden_state[0]
            )
            logits = model.get_output_embeddings()(hidden[at - 1]).float()
        loss = torch.nn.functional.cross_entropy(logits, to) / 4
        loss.backward()
        losses.append(4 * loss.item())
        n += 1
        seen += 1
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    i += 1
    left = 1 - (time.time() - began) / (60 * minutes)
    for g in opt.param_groups:
        g["lr"] = 1e-3 * min(1, i / 5, max(0.05, left * 2))
    opt.step()
    if i % 5 == 0:
        print(seen, round(sum(losses[-20:]) / 20, 3), round(time.time() - began), flush=True)
model.eval()
from collections import Counter

counts, said = Counter(), []
rules = Counter()
for at, (kind, name, cut, root) in enumerate(pw.windows("other")):
    if at % every and at % every != 1:
        continue
    if kind == "sick" and not pw.is_answerable(cut, root):
        continue
    ids = tok.apply_chat_template(
        messages(text_of(name, cut)),
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=False,
    )
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        out = model.generate(ids, max_new_tokens=24, do_sample=False)
    text = tok.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip()
    who = text.split(":")[0].strip()
    a = pw.answer_to(name, cut)
    counts[kind] += 1
    if kind == "sick":
        counts["right"] += pw.is_root(who, root)
        counts["named"] += who != "nobody"
        rules["right"] += bool(a.root and pw.is_root(a.root, root))
        rules["named"] += bool(a.root)
        rules["first"] += bool(a.suspects and pw.is_root(a.suspects[0].service, root))
    else:
        counts["calm named"] += who != "nobody"
        rules["calm named"] += bool(a.root)
    said.append((kind, root, text))
    if at % 20 < 2:
        print(at, dict(counts), dict(rules), said[-1], flush=True)
print("seen", seen, dict(counts), "rules", dict(rules))
json.dump(said, open("reader_trial.json", "w"))
