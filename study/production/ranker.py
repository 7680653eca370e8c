"""A network over the services of an incident that passes messages along calls, in both directions; one more output says that nothing is wrong."""

import torch, torch.nn as nn

class Ranker(nn.Module):
    def __init__(self, F, H=64, rounds=3):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(F, 2*H), nn.GELU(), nn.Linear(2*H, H))
        self.rounds = nn.ModuleList([nn.ModuleDict(dict(msg=nn.Linear(H, 4*H), upd=nn.Sequential(nn.LayerNorm(6*H), nn.Linear(6*H, 2*H), nn.GELU(), nn.Linear(2*H, H)))) for _ in range(rounds)])
        self.out = nn.Sequential(nn.LayerNorm(2*H), nn.Linear(2*H, H), nn.GELU(), nn.Linear(H, 1))
        self.none = nn.Sequential(nn.Linear(2*H, H), nn.GELU(), nn.Linear(H, 1))
    def forward(self, X, A, real):
        r = real.float().unsqueeze(-1); cnt = r.sum(1, keepdim=True)
        h = self.inp(X) * r
        din, dout = A.sum(1).clamp(min=1).unsqueeze(-1), A.sum(2).clamp(min=1).unsqueeze(-1)
        At = A.transpose(1, 2)
        for R in self.rounds:
            a, b, c, d = R["msg"](h).chunk(4, -1)
            up = At @ torch.relu(a) / din          # from callers
            dn = A @ torch.relu(b) / dout          # from callees
            upS = At @ torch.relu(c); dnS = A @ torch.relu(d)
            g = (h * r).sum(1, keepdim=True) / cnt
            h = h + R["upd"](torch.cat([h, up, dn, upS.sign()*torch.log1p(upS.abs()), torch.log1p(dnS.abs()), g.expand_as(h)], -1))
            h = h * r
        g = h.sum(1, keepdim=True) / cnt
        mx = h.masked_fill(r == 0, -9).max(1).values
        s = self.out(torch.cat([h, g.expand_as(h)], -1)).squeeze(-1).masked_fill(~real, -1e9)
        return torch.cat([s, self.none(torch.cat([g.squeeze(1), mx], -1))], 1)
