"""Quartiles of statistics of the real cases, beside those of simulated incidents."""

import numpy as np, warnings; warnings.filterwarnings("ignore")
from world import *
from features import arrays_of, BAND, nz
from logtriage.real.cases import SOURCES, load_source
def stats(s):
    B = len(s["n"]); out = []
    h = s["obs"].shape[-1] // 2
    spread = np.fmax(np.fmax(nz(s["dev"]), nz((s["high"] - s["low"]) / BAND)), np.fmax(.01 * np.abs(nz(s["usual"])), 1e-9))
    z = (s["obs"][..., h:] - s["usual"][..., None]) / spread[..., None]
    sur = nz(np.nanmax(np.abs(z), (-1, -2)))   # [B,N]
    for b in range(B):
        n = s["n"][b]; A = s["adj"][b]; r = s["root"][b]
        called = A.sum(0) > 0
        depth = np.ones(MAXN); 
        for _ in range(8):
            depth = np.where(A.any(1), 1 + (A * depth[None]).max(1), 1)
        path = depth[:n].max()
        above = np.zeros(MAXN, bool)
        if r >= 0:
            above[r] = True
            for _ in range(8): above |= (A & above[None]).any(1)
        by = (sur[b][:n] > 5) & ~above[:n]
        p95 = K["p95"]; u = s["usual"][b, :, p95]
        hw = (s["high"][b, :, p95] - s["low"][b, :, p95]) / 2 / u
        skew = (s["high"][b, :, p95] - u) / (u - s["low"][b, :, p95])
        lat = s["obs"][b, :n][:, :2]; has = np.isfinite(u[:n])
        miss = np.mean(~np.isfinite(s["obs"][b, :n, p95][has])) if has.any() else np.nan
        lr = lambda k: np.nanmedian(np.abs(np.log(np.nanmean(s["obs"][b, :, K[k], h:], -1) / s["usual"][b, :, K[k]])))
        sd = lambda k: np.nanmedian(np.nanstd(np.log(s["obs"][b, :, K[k]] + 1e-9), -1))
        w = s["call"][b]; ew = np.log(w[..., 0] / w[..., 1])
        lg = s["logs"][b]
        out.append(dict(services=n, path=path, shared=(A.sum(0) > 1).sum() / max(1, called.sum()), calls_per=A.sum() / n, isolated=(~called & ~A.any(1))[:n].mean(), bystanders=by.sum(), byshare=by.mean(),
            root_sur=sur[b, r] if r >= 0 else np.nan, root_rank=(sur[b][:n] > sur[b, r]).sum() if r >= 0 else np.nan, band=np.nanmedian(hw), skew=np.nanmedian(skew), missing=miss, nalert=s["alerts"][b].sum(), root_al=s["alerts"][b, r].any() if r >= 0 else np.nan,
            lr_p95=lr("p95"), lr_req=lr("requests"), lr_cpu=lr("cpu"), lr_mem=lr("memory"), lr_client=lr("p95 of its calls"), lr_node=lr("node cpu"), sd_p95=sd("p95"), sd_cpu=sd("cpu"), sd_req=sd("requests"),
            ew=np.nanmedian(np.abs(ew)), ewmax=np.nanmax(ew) if np.isfinite(ew).any() else np.nan, lines=np.nansum(lg[:, 0]) if np.isfinite(lg).any() else np.nan, errs=np.nansum(lg[:, 2]) if np.isfinite(lg).any() else np.nan, warns=np.nansum(lg[:, 4]) if np.isfinite(lg).any() else np.nan,
            lr_lines=np.nanmedian(np.abs(np.log((lg[:, 0] + 1) / (lg[:, 1] + 1))))))
    return {k: np.array([o[k] for o in out], float) for k in out[0]}
if __name__ == "__main__":
    real = {}
    for s in SOURCES:
        rows = [stats(arrays_of(c)) for c in load_source(s).cases]
        real[s] = {k: np.concatenate([r[k] for r in rows]) for k in rows[0]}
    sim = stats(sample(77))
    q = lambda x: "-" if np.isnan(x).all() else "/".join(f"{v:.2g}" for v in np.nanquantile(x, [.25, .5, .75]))
    print(f"{'':11}", *[f"{s[:14]:>20}" for s in SOURCES], f"{'sim':>20}")
    for k in sim: print(f"{k:11}", *[f"{q(real[s][k]):>20}" for s in SOURCES], f"{q(sim[k]):>20}")
