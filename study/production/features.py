"""The arrays of a real case, and what the ranker reads of each service, of simulated and real cases alike."""

import numpy as np, warnings
warnings.filterwarnings("ignore")
from world import KINDS, K, MAXN
BAND = 3.29


def arrays_of(case, T=6, N=MAXN):
    """A real case in the arrays of a batch of one."""
    n = len(case.services); at = {s: i for i, s in enumerate(case.services)}
    obs = np.full((1, N, len(KINDS), T), np.nan); usual = np.full((1, N, len(KINDS)), np.nan)
    dev, low, high = usual.copy(), usual.copy(), usual.copy()
    f = lambda v: np.nan if v is None else v
    for m in case.measures:
        if m.name not in K or m.service not in at: print("?", m.name); continue
        i, k = at[m.service], K[m.name]
        v = [f(x) for x in m.values][-T:]
        obs[0, i, k, T - len(v):] = v
        usual[0, i, k] = f(m.usual); low[0, i, k] = f(m.low); high[0, i, k] = f(m.high); dev[0, i, k] = f(m.deviation)
    adj = np.zeros((1, N, N), bool)
    for a, b in case.calls:
        if a != b: adj[0, at[a], at[b]] = True
    call = np.full((1, N, N, 4), np.nan); crate = np.full((1, N, N, 2), np.nan)
    for c in case.call_times:
        i, j = at[c.caller], at[c.callee]
        call[0, i, j] = [f(x) for x in (c.wait, c.usual_wait, c.served, c.usual_served)]
        crate[0, i, j] = [f(c.rate), f(c.usual_rate)]
    logs = np.full((1, N, 6), np.nan)
    for c in case.line_counts:
        if c.service in at: logs[0, at[c.service]] = [f(x) for x in (c.lines, c.usual_lines, c.errors, c.usual_errors, c.warnings, c.usual_warnings)]
    al = np.zeros((1, N, 2), bool)
    for a in case.alerts:
        al[0, at[a.service], 1 if a.metric == "errors" else 0] = True
    real = np.zeros((1, N), bool); real[0, :n] = True
    return dict(n=np.array([n]), real=real, adj=adj, obs=obs, usual=usual, dev=dev, low=low, high=high, call=call, crate=crate, logs=logs,
                alerts=al, root=np.array([at[case.truth.root]]))


def nz(x): return np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def features(s):
    o, u = s["obs"], s["usual"]
    B, N, M, T = o.shape
    h = T // 2
    late, early = o[..., h:], o[..., :h]
    spread = np.fmax(np.fmax(nz(s["dev"]), nz((s["high"] - s["low"]) / BAND)), np.fmax(.01 * np.abs(nz(u)), 1e-6))
    z = (late - u[..., None]) / spread[..., None]
    best = np.take_along_axis(nz(z), np.abs(nz(z)).argmax(-1)[..., None], -1)[..., 0]
    ml, me = np.nanmean(late, -1), np.nanmean(early, -1)
    small = .01 * np.abs(nz(u)) + 1e-3
    clip = lambda x, c=6.: np.clip(nz(x), -c, c)
    measured = np.isfinite(ml)
    feats = [np.arcsinh(nz(best)), np.arcsinh(nz((ml - u) / spread)), clip(np.log((ml + small) / (u + small))),
             clip(np.log((ml + small) / (me + small))), np.arcsinh(nz((ml - me) / spread)), np.isfinite(late).mean(-1), measured * np.isfinite(u),
             clip(np.log(spread / (np.abs(nz(u)) + 1e-3)))]
    X = np.concatenate(feats, -1)                                   # [B,N,8*M]
    A = s["adj"].astype(np.float32)
    # amounts that add up along calls, as shares of all
    rate = np.nanmean(o[:, :, K["requests"], h:], -1)
    rate = np.where(np.isfinite(rate), rate, 0) + .01 * nz(u[:, :, K["requests"]])
    def share(x):
        return x / (np.sqrt((x**2).sum(1, keepdims=True)) + 1e-9)
    lat = np.where(np.isfinite(ml[:, :, 0]), ml[:, :, 0] - u[:, :, 0], ml[:, :, 1] - u[:, :, 1])
    lat_top = np.where(np.isfinite(ml[:, :, 0]), np.nanmax(late[:, :, 0], -1) - u[:, :, 0], np.nanmax(late[:, :, 1], -1) - u[:, :, 1])
    bad = nz(u[:, :, 3] - ml[:, :, 3])
    def rest(x):
        x = nz(x) * rate
        below = np.matmul(A, np.maximum(x, 0)[..., None])[..., 0]
        return [share(x), share(np.maximum(0, x - below))]
    amounts = rest(lat) + rest(lat_top) + rest(bad)
    w, w0, sv, sv0 = (s["call"][..., i] for i in range(4))
    known = np.isfinite(w) & np.isfinite(w0)
    net = np.maximum(0, w - sv - np.maximum(0, w0 - sv0))
    cr = np.where(np.isfinite(s["crate"][..., 0]), s["crate"][..., 0] / 60, rate[:, None, :])
    E = np.stack([clip(np.log((w + 1) / (w0 + 1))), clip(np.log((sv + 1) / (sv0 + 1))), clip(np.log((nz(w - sv).clip(0) + 1) / (nz(w0 - sv0).clip(0) + 1))) * known,
                  nz(net / (1 + w0)).clip(0, 20) ** .5, clip(np.log((s["crate"][..., 0] + .5) / (s["crate"][..., 1] + .5))), known.astype(float)], -1)
    En = share_edges = nz(net * cr); tot = np.sqrt((En**2).sum((1, 2), keepdims=True)) + 1e-9
    E = np.concatenate([E, (En / tot)[..., None]], -1) * A[..., None]
    deg_in, deg_out = A.sum(1), A.sum(2)
    agg = []
    for axis, deg in ((1, deg_in), (2, deg_out)):
        agg += [E.sum(axis) / np.maximum(1, deg)[..., None], E.max(axis), np.where(A[..., None] > 0, E, 9).min(axis) * (deg[..., None] > 0)]
    lg = s["logs"]
    L = [clip(np.log((lg[..., 0] + 1) / (lg[..., 1] + 1))), clip((lg[..., 2] - lg[..., 3]) / np.sqrt(lg[..., 3] + 1), 9), clip((lg[..., 4] - lg[..., 5]) / np.sqrt(lg[..., 5] + 1), 9),
         clip(np.log1p(lg[..., 2])), clip(np.log1p(lg[..., 3])), np.isfinite(lg[..., 0])]
    al = s["alerts"].astype(float)
    anya = al.max(1, keepdims=True) + np.zeros_like(al)
    size = np.log(s["n"])[:, None] + np.zeros((B, N))
    rel = np.log((rate + 1e-3) / (rate.max(1, keepdims=True) + 1e-3))
    rest_ = [np.log1p(deg_in), np.log1p(deg_out), (deg_in == 0) * 1., size - 3, rel] + L + amounts
    Xall = np.concatenate([X, np.stack(rest_, -1), al, anya] + agg, -1)
    Xall = (Xall * s["real"][..., None]).astype(np.float32)
    return Xall, A, s["real"], s["root"]
