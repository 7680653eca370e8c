"""A sketch of a world for the task `production`: incidents in the schema of the real cases, 256 at a time, as numpy arrays (about 1,000 a second)."""
import numpy as np

KINDS = ("latency", "p95", "p95 of its calls", "available", "requests", "cpu", "memory", "node cpu")
K = {k: i for i, k in enumerate(KINDS)}
FAULTS = ("network_delay", "network_loss", "cpu_contention", "cpu_consumed", "memory", "exception", "wrong_result", "added_delay",
          "errors", "overload", "node_contention", "misconfiguration", "none")
WEIGHTS = np.array([3, 1, 3, 1, 1, 3, 2, 3, 3, 1.5, 1, 1, 1.5]); WEIGHTS = WEIGHTS / WEIGHTS.sum()
F = {k: i for i, k in enumerate(FAULTS)}
MAXN = 46


def ln(rng, median, sigma, size):
    return np.float32(median) * np.exp(np.float32(1) * sigma * rng.standard_normal(size, np.float32))


def sample(seed, B=256, fault=None, T=6, zero=2):
    rng = np.random.Generator(np.random.Philox(seed))
    U = lambda lo, hi, *s: (lo + (hi - lo) * rng.random(s, np.float32)).astype(np.float32)
    G = lambda *s: rng.standard_normal(s, np.float32)
    n = np.exp(U(np.log(8), np.log(MAXN + 1), B)).astype(int)
    idx = np.arange(MAXN)
    real = idx[None] < n[:, None]
    # --- graph: layers, callers
    depth = rng.integers(3, 8, B)
    width = U(0, 1, B, MAXN) ** U(.6, 1.3, B, 1)
    layer = np.where(idx[None] == 0, 0, 1 + np.floor(width * (depth - 1)[:, None]).astype(int))
    layer = np.where(real, layer, 9)
    gates = np.minimum(rng.geometric(.6, B), 5)
    layer[(idx[None] < gates[:, None]) & real] = 0
    order = np.argsort(layer + 1e-3 * U(0, 1, B, MAXN), axis=1)
    layer = np.take_along_axis(layer, order, 1)
    layer = np.where(real, layer, 9)
    above = (layer[:, :, None] < layer[:, None, :]) & real[:, :, None] & real[:, None, :]   # [b, caller, callee]
    key = U(0, 1, B, MAXN, MAXN) + 2.0 * (layer[:, :, None] + 1 < layer[:, None, :])   # prefer the layer above
    # callers that are busy call much: preferential
    key = key - U(0, 1, B, MAXN, 1) * U(0, 1.2, B, 1, 1)
    key = np.where(above, key, 99.0)
    fan = U(0.02, .65, B, 1)
    more = (U(0, 1, B, MAXN) < fan) * rng.geometric(.6, (B, MAXN))
    k = np.minimum(1 + more, 6)
    rank = np.argsort(np.argsort(key, axis=2).transpose(0, 2, 1), axis=2) if False else None
    # rank over callers (axis 1)
    rank = np.argsort(np.argsort(key, axis=1), axis=1)
    adj = above & (rank < k[:, None, :])
    extra_entry = 0
    # --- usual quantities
    m = np.where(U(0, 1, B, MAXN, MAXN) < U(0, .7, B, 1, 1), 1, np.clip(ln(rng, .5, 1.1, (B, MAXN, MAXN)), .005, 6))
    dead = U(0, 1, B, MAXN) < U(-.1, .25, B, 1)            # nobody calls it these days
    m = np.where(adj, m * np.where(dead, 1e-4, 1)[:, None], 0.0).astype(np.float32)
    own = ln(rng, 5.0, 1.2, (B, MAXN)) * U(.3, 3, B, 1) * real * np.where(U(0, 1, B, MAXN) < U(0, .4, B, 1), .03, 1)   # some only hand on
    wire = np.where(adj, ln(rng, 1.5, .7, (B, MAXN, MAXN)), 0.0)
    entry = (layer == 0)
    demand = ln(rng, 2.0, 1.5, (B, 1)) * entry * ln(rng, 1, 1., (B, MAXN))   # requests a second
    def flow(start, calls):
        rate = start.copy()
        for _ in range(6):
            rate = start + np.matmul(calls.transpose(0, 2, 1), rate[..., None])[..., 0]
        return rate
    damp = U(.25, 1., B, MAXN)          # calls in parallel, caches
    rate0 = flow(demand, m)
    m_lat = m * damp[:, :, None]
    def latency(own_t, wait_t):   # [B,N,T] own; [B,N,T] what network adds to all calls of a service
        L = own_t
        for _ in range(6):
            L = own_t + wait_t + np.matmul(m_lat, L)
        return L
    # --- noise of services over time
    band = np.clip(ln(rng, .45, .7, (B, 1)) * ln(rng, 1, .45, (B, MAXN)), .05, 3)
    sigma = np.arcsinh(band) / 1.645
    rho = U(0, .7, B, 1, 1)
    def ar(shape_sigma, extra=()):
        e = rng.standard_normal(shape_sigma.shape + (T,), np.float32)
        out = np.empty_like(e); out[..., 0] = e[..., 0]
        r = rho.reshape((B,) + (1,) * (e.ndim - 2))
        for t in range(1, T):
            out[..., t] = r * out[..., t - 1] + np.sqrt(1 - r**2) * e[..., t]
        return np.exp(shape_sigma[..., None] * out)
    load = ar(U(.02, .35, B, 1)) * ln(rng, 1, U(.0, .5, B, 1), (B, 1))[..., None]    # the load now, over the usual
    mix = ln(rng, 1, U(.02, .5, B, 1), (B, MAXN))[..., None] * ar(np.broadcast_to(U(.02, .3, B, 1), (B, MAXN)).copy())
    # --- the fault
    f = rng.choice(len(FAULTS), B, p=WEIGHTS) if fault is None else np.full(B, F[fault])
    has_callers = adj.any(1)
    can = real & (rate0 * 300 > 3) & ~dead
    need_caller = np.isin(f, [F["network_delay"], F["network_loss"], F["wrong_result"]])
    pick = U(0, 1, B, MAXN) + 10. * can + 20. * real - 5. * (need_caller[:, None] & ~has_callers) - U(0,.7,B,1) * (layer == 0)
    root = pick.argmax(1)
    at = (idx[None] == root[:, None])
    first = np.clip(1 - U(-.3, 1, B), 0, 1)     # share of the sample `zero` that is struck
    on = np.zeros((B, T)); on[:, zero + 1:] = 1.0; on[:, zero] = first
    fade = np.where(U(0, 1, B, 1) < .15, np.clip(1 - .3 * np.arange(T)[None] * U(0, 1, B, 1), 0, 1), 1.0)
    on = on * fade
    R = at[:, :, None] * on[:, None, :]          # [B,N,T] where and when
    is_ = lambda *names: np.isin(f, [F[x] for x in names])[:, None, None]
    own_lat0 = own[:, :, None]
    strength = np.exp(U(-2.5, 1.5, B))[:, None, None]     # general dial
    own_noise = ar(sigma * .6)
    slow = np.zeros((B, MAXN, T))
    root_lat = own[np.arange(B), root][:, None, None]
    # usual latency, for sizes
    L0 = latency(own[:, :, None], np.einsum("bij,bij->bi", m_lat, wire)[:, :, None])
    rootL = L0[np.arange(B), root][:, :, None]
    slow += is_("added_delay") * R * np.maximum(rootL * np.exp(U(-2, 2.2, B, 1, 1)), U(0, 1, B, 1, 1) ** 3 * 500)
    slow += is_("cpu_contention") * R * root_lat * strength * U(.05, 2.5, B, 1, 1)
    slow += is_("memory") * R * root_lat * U(0, 1.5, B, 1, 1)
    over = 1 + is_("overload") * R * U(1, 12, B, 1, 1)
    slow += is_("overload") * R * root_lat * U(0, 6, B, 1, 1)
    slow += is_("misconfiguration") * (U(0, 1, B, 1, 1) < .5) * R * root_lat * U(0, 3, B, 1, 1)
    # exceptions are faster or slower
    slow += is_("exception") * R * rootL * U(-.8, .3, B, 1, 1) * (U(0, 1, B, 1, 1) < .6)
    slow += is_("wrong_result") * R * rootL * U(-.3, .3, B, 1, 1) * (U(0, 1, B, 1, 1) < .4)
    # the wire
    delay = is_("network_delay") * np.maximum(U(5, 120, B, 1, 1) , rootL * U(0.2, 2, B, 1, 1)) + is_("network_loss") * (rootL * U(.2, 4, B, 1, 1) + U(1, 60, B, 1, 1))
    into = delay * R                                # all who call the root wait this longer
    out = into * (U(0, 1, B, 1, 1) < .5)            # and the root for all that it calls
    wait = np.einsum("bij,bij->bi", m_lat, wire)[:, :, None] + np.matmul(m_lat, into) + m_lat.sum(2)[:, :, None] * out
    # --- neighbours
    hosts = np.maximum(1, (n * U(.12, .5, B)).astype(int))
    host = np.floor(U(0, 1, B, MAXN) * hosts[:, None]).astype(int)
    same = (host == host[np.arange(B), root][:, None]) & real
    nodey = is_("node_contention")
    neighbour = (nodey | (is_("cpu_contention") & (U(0, 1, B, 1, 1) < .4))) * same[:, :, None] * on[:, None] * ~at[:, :, None]
    slow += neighbour * own[:, :, None] * U(0, 1.0, B, 1, 1)
    slow += nodey * R * root_lat * U(0.05, 1.5, B, 1, 1)
    # --- errors
    err_usual = np.where(U(0, 1, B, MAXN) < .85, 0, np.where((U(0, 1, B, MAXN) < .3) & (rate0 * 300 < 40), np.where(U(0, 1, B, MAXN) < .5, 1, U(0, 1, B, MAXN)), ln(rng, .003, 1, (B, MAXN)))).clip(0, 1)
    share = np.where(U(0, 1, B, 1, 1) < .5, U(.005, .08, B, 1, 1), U(.05, 1, B, 1, 1))
    thrown = (is_("errors", "exception", "misconfiguration") | (is_("overload", "network_loss") & (U(0, 1, B, 1, 1) < .5))) * R * share
    own_err = np.clip(err_usual[:, :, None] + thrown, 0, 1)
    passes = np.where(U(0, 1, B, MAXN, MAXN) < .35, U(0, .1, B, MAXN, MAXN), U(.3, 1, B, MAXN, MAXN)) * np.minimum(m, 1) * adj
    passes = passes * (U(0, 1, B, 1, 1) > .15)
    e = own_err
    new = np.where(err_usual > .2, 0, 1)[:, :, None] * own_err
    e = new
    for _ in range(6):
        e = np.clip(new + np.matmul(passes, e), 0, 1)
    e = np.maximum(e, own_err)
    # --- requests: who fails stops calling
    stops = (is_("exception", "errors", "misconfiguration", "wrong_result")) * R * np.where(is_("wrong_result"), U(0, .6, B, 1, 1), share) * (U(0, 1, B, 1, 1) < .7)
    # callers of a failing root stop what follows
    after = np.matmul(passes, thrown) * U(0, .8, B, 1, 1)
    calls_t = m[..., None] * (1 - np.clip(stops + after, 0, .97))[:, :, None, :] if False else None
    keep = 1 - np.clip(stops + after, 0, .97)     # [B,N,T]
    rate = demand[:, :, None] * load
    start = rate
    for _ in range(6):
        rate = start + np.matmul(m.transpose(0, 2, 1), rate * keep)
    rate = rate * mix * over
    # --- bystanders: drift between the usual and today, and shifts
    drift = np.exp(U(.01, .2, B, 1) * rng.standard_t(3, (B, MAXN)).clip(-8, 8))[:, :, None]
    own_t = np.maximum(own[:, :, None] * own_noise * drift + slow, own[:, :, None] * .02)
    util = np.clip(rate / np.maximum(rate0[:, :, None], 1e-9), .2, 6)
    own_t = own_t * util ** U(0, .4, B, 1, 1)
    L = latency(own_t, wait)
    # --- what is observed
    obs = np.full((B, MAXN, len(KINDS), T), np.nan); usual = np.full((B, MAXN, len(KINDS)), np.nan)
    dev = usual.copy(); low = usual.copy(); high = usual.copy()
    tail = np.exp(U(.2, 1.3, B, MAXN))
    period = np.where(U(0, 1, B) < .35, 300., 60.)[:, None, None]
    count = rng.poisson(np.minimum(rate * period, 1e7))
    few = 1 / np.sqrt(np.maximum(count, 1))
    miss_lat = (count == 0) | (U(0, 1, B, MAXN, T) < U(0, .06, B, 1, 1)) | (U(0, 1, B, MAXN) < U(0, .2, B, 1))[:, :, None] & (U(0, 1, B, MAXN, T) < .5)
    small = sigma[:, :, None]
    tailnoise = np.exp((small * .8 + .5 * few) * G(B, MAXN, T))
    heavy = np.where(U(0, 1, B, MAXN, T) < U(0, .06, B, 1, 1), np.exp(U(0, 2, B, MAXN, T)), 1.0)
    loss_tail = 1 + is_("network_loss") * R * 0
    obs[:, :, K["latency"]] = L * np.exp((small * .4 + .4 * few) * G(B, MAXN, T)) * heavy ** .4
    obs[:, :, K["p95"]] = L * tail[:, :, None] * tailnoise * heavy
    cl = U(.4, 1.4, B, 1, 1)
    callee_wait = np.matmul(m_lat, L) + wait
    has_callee = adj.any(2)
    client = callee_wait / np.maximum(m_lat.sum(2), 1e-9)[:, :, None]
    obs[:, :, K["p95 of its calls"]] = np.where(has_callee[:, :, None], client * tail[:, :, None] * np.exp(cl * small * G(B, MAXN, T)) * np.exp(cl * (.3 + small[:, :, :1]) * G(B, MAXN, 1)) * np.where(U(0, 1, B, MAXN, T) < .06, np.exp(U(-1, 2.5, B, MAXN, T)), 1), 2.0 * np.exp(.2 * G(B, MAXN, T)))
    bad = rng.binomial(count, e) / np.maximum(count, 1)
    obs[:, :, K["available"]] = 100 * (1 - bad)
    obs[:, :, K["requests"]] = np.where(period == 300, count, count / 60.)
    cpu0 = ln(rng, 1.5, 1.0, (B, MAXN)); cpu_fixed = U(.1, .9, B, MAXN)
    ratio = rate / np.maximum(rate0[:, :, None], 1e-9)
    cpu = cpu0[:, :, None] * (cpu_fixed[:, :, None] + (1 - cpu_fixed[:, :, None]) * ratio) * np.exp(.35 * band[:, :, None].clip(0, 1.5) * G(B, MAXN, T))
    stolen = R * (is_("cpu_contention", "cpu_consumed", "node_contention") * np.maximum(cpu0[:, :, None] * U(.8, 15, B, 1, 1), U(2, 90, B, 1, 1)))
    cpu = cpu + stolen + is_("memory") * R * cpu0[:, :, None] * U(0, 1, B, 1, 1)
    obs[:, :, K["cpu"]] = cpu
    mem0 = np.clip(ln(rng, 30, .7, (B, MAXN)), 1, 99)
    mem = mem0[:, :, None] * np.exp(.003 * np.cumsum(G(B, MAXN, T), 2) + .006 * rng.standard_t(3, (B, MAXN, 1)))
    mem = mem * (1 + is_("memory") * R * U(.05, 2, B, 1, 1) + is_("cpu_contention") * R * U(0, .03, B, 1, 1))
    obs[:, :, K["memory"]] = np.minimum(mem, 100)
    hosted = (host[:, :, None] == host[:, None, :]) & real[:, None]
    size = U(4, 30, B, 1, 1)
    node = (np.matmul(hosted.astype(float), cpu * real[:, :, None]) + 100.) / size
    node_noise = np.exp(.08 * G(B, MAXN, T))
    same_noise = node_noise[np.arange(B)[:, None], host]
    obs[:, :, K["node cpu"]] = np.minimum(node * same_noise, 100)
    shift = (U(0, 1, B, MAXN) < U(-.02, .15, B, 1))[:, :, None]
    since = np.arange(T) >= np.where(U(0, 1, B, MAXN, 1) < .75, 0, rng.integers(0, T, (B, MAXN, 1)))
    shift = shift & since
    which = lambda p: shift & (U(0, 1, B, MAXN, 1) < p)
    change = np.where(which(.7), np.exp(2 * U(-1, 1, B, MAXN, 1) ** 3 + U(-.5, .5, B, MAXN, 1)), 1)
    obs[:, :, [0, 1]] *= change[:, :, None]
    obs[:, :, K["p95 of its calls"]] *= np.where(which(.4), np.exp(U(-2, 2, B, MAXN, 1)), 1)
    rare = rate0[:, :, None] * period < 40
    obs[:, :, K["available"]] = np.where(which(.6) & rare, np.where(U(0, 1, B, MAXN, 1) < .5, 0, 100 * U(0, 1, B, MAXN, T)), obs[:, :, K["available"]])
    obs[:, :, K["requests"]] *= np.where(which(.6), np.exp(U(-2, 2, B, MAXN, 1)), 1)
    obs[:, :, K["cpu"]] *= np.where(which(.2), np.exp(U(-1, 1.5, B, MAXN, 1)), 1)
    obs[:, :, K["memory"]] *= np.where(which(.1), np.exp(U(-.2, .3, B, MAXN, 1)), 1)
    # the usual, with spread; estimated from some 30 to 200 samples of another time
    hw = {"latency": sigma * .7 , "p95": sigma, "p95 of its calls": sigma, "requests": np.hypot(.15, 1 / np.sqrt(np.maximum(rate0 * period[:, :, 0], .3)))}
    base = {"latency": L0[:, :, 0], "p95": L0[:, :, 0] * tail, "p95 of its calls": None, "available": 100 * (1 - err_usual),
            "requests": np.where(period[:, :, 0] == 300, rate0 * 300, rate0), "cpu": cpu0, "memory": mem0, "node cpu": None}
    wait0 = np.einsum("bij,bij->bi", m_lat, wire)[:, :, None]
    client0 = (np.matmul(m_lat, L0) + wait0)[:, :, 0] / np.maximum(m_lat.sum(2), 1e-9)
    base["p95 of its calls"] = np.where(has_callee, client0 * tail, 2.0)
    base["node cpu"] = ((np.matmul(hosted.astype(float), (cpu0 * real)[:, :, None])[:, :, 0]) + 100.) / size[:, :, 0]
    hw["cpu"] = .35 * band.clip(.05, 1.5); hw["memory"] = np.full((B, MAXN), .012); hw["node cpu"] = np.full((B, MAXN), .1); 
    hw["available"] = None
    for kind in KINDS:
        i = K[kind]
        if kind == "available":
            usual[:, :, i] = base[kind]; s = np.sqrt(err_usual * (1 - err_usual) / np.maximum(rate0 * period[:, :, 0], 1)) * 100
            dev[:, :, i] = s; low[:, :, i] = base[kind] - 1.645 * s - 100 * err_usual * .3; high[:, :, i] = 100.
            continue
        s = hw[kind] * np.exp(.25 * G(B, MAXN))
        u = base[kind] * np.exp(.15 * s * G(B, MAXN))
        usual[:, :, i] = u
        dev[:, :, i] = u * s * U(.3, 1.0, B, MAXN)       # robust spread is less than the band says
        low[:, :, i] = u * np.exp(-1.645 * s); high[:, :, i] = u * np.exp(1.645 * s) * np.where(U(0, 1, B, MAXN) < U(0, .7, B, 1), np.exp(U(0, 2, B, MAXN)), 1)
    obs[:, :, [K["latency"], K["p95"]]] = np.where(miss_lat[:, :, None], np.nan, obs[:, :, [K["latency"], K["p95"]]])
    obs[:, :, K["available"]] = np.where(count == 0, np.nan, obs[:, :, K["available"]])
    none_usual = rate0 * period[:, :, 0] < U(0, .5, B, MAXN)
    usual[none_usual, 0:2] = np.nan
    # --- what the cluster measures at all
    style = rng.integers(0, 3, B)        # like an APM without a host's view; a mesh with it; both
    has = np.ones((B, len(KINDS)), bool)
    has[style == 0] = [1, 1, 0, 1, 1, 0, 0, 0]
    has[style == 1] = [0, 1, 1, 0, 1, 1, 1, 1]
    drop = U(0, 1, B, len(KINDS)) < .12
    has &= ~drop
    has[:, K["p95"]] |= ~has[:, K["latency"]]
    dark = U(0, 1, B, MAXN) < U(0, .12, B, 1)       # services of which only requests are known
    seen = has[:, None] & real[:, :, None]
    seen = seen & ~(dark[:, :, None] & ~np.eye(len(KINDS), dtype=bool)[K["requests"]])
    obs[~seen] = np.nan
    usual[:, :, K['requests']] = np.where(usual[:, :, K['requests']] * np.where(period[:, :, 0] == 300, 1, 60) < .3, np.where(U(0, 1, B, MAXN) < .5, 0, np.nan), usual[:, :, K['requests']])
    for a in (usual, dev, low, high): a[~seen] = np.nan
    # --- calls
    edges = (U(0, 1, B) < .75)[:, None, None] & adj & (style != 0)[:, None, None]
    measured = edges & (U(0, 1, B, MAXN, MAXN) > .03)
    enoise = lambda s: np.exp(s * G(B, MAXN, MAXN))
    late = slice(zero + 1, T)
    top = lambda x: np.where(np.isfinite(x), x, 0)[..., late].max(-1)
    Lp = L[:, :, late].max(-1)
    served = Lp[:, None, :] * enoise(.15); served0 = L0[:, :, 0][:, None, :] * enoise(.12)
    added = (into[:, None, :, late] + out[:, :, None, late]).max(-1)
    esig = U(.05, .5, B, 1, 1)
    pair = enoise(.2)
    wait_e = (Lp[:, None, :] + wire * enoise(.2) + added) * enoise(1.0 * esig)
    heavy_e = np.where(U(0, 1, B, MAXN, MAXN) < U(.02, .2, B, 1, 1), np.exp(U(0, 3.2, B, MAXN, MAXN)), 1)
    wait_e = np.maximum(wait_e * heavy_e, served * U(.9, 1, B, 1, 1)); wait0_e = (L0[:, :, 0][:, None, :] + wire) * enoise(.1)
    call = np.stack([np.where(measured, x, np.nan) for x in (wait_e, wait0_e, served, served0)], -1)
    rate_e = (m * (rate * keep)[:, :, late].mean(-1)[:, :, None]) * 60
    rate0_e = m * rate0[:, :, None] * 60
    norates = U(0, 1, B, 1, 1) < .5
    crate = np.stack([np.where(measured & ~norates, rng.poisson(np.minimum(x, 1e7)) , np.nan) for x in (rate_e, rate0_e)], -1)
    # --- logs
    logs_known = (U(0, 1, B) < .5) & (style != 0)
    per = ln(rng, .6, .9, (B, MAXN)) * ln(rng, 1, 1, (B, 1))
    ratel = rate[:, :, late].mean(-1) * 60
    eb = np.where(U(0, 1, B, MAXN) < .7, 0, ln(rng, .8, 1.3, (B, MAXN)))
    wb = np.where(U(0, 1, B, MAXN) < .55, 0, ln(rng, 2, 1.4, (B, MAXN)))
    speaks = (U(0, 1, B) < .35)[:, None]
    tells = thrown[:, :, late].mean(-1) * ratel * speaks * U(.2, 2, B, 1)
    others = np.matmul(passes, (thrown * ~at[:, :, None] + thrown)[:, :, late].mean(-1)[..., None])[..., 0] * ratel * (U(0, 1, B, 1) < .3) * U(.1, 1, B, 1)
    less = 1 - .6 * (is_("exception", "wrong_result")[:, :, 0] * at * U(0, 1, B, 1))
    window = U(1, 3, B, 1)
    pois = lambda x: rng.poisson(np.clip(x * window * rng.gamma(2, .5, (B, MAXN)), 0, 1e7)) / window
    lines = pois(per * ratel * less); lines0 = np.round(per * rate0 * 60)
    errors = pois(eb * load[:, :, -1].clip(.3, 3) + tells + others); warns = pois(wb + tells * .3 + others * .5)
    logs = np.stack([lines, lines0, errors, np.round(eb), warns, np.round(wb)], -1)
    logs = np.where((logs_known[:, None] & real)[..., None], logs, np.nan)
    # --- alerts: [slow, failing] of services
    p95 = obs[:, :, K["p95"], zero + 1:]
    slow_alert = np.nan_to_num(np.nanmax(np.where(np.isfinite(p95), p95, -1), -1)) > 3 * np.nan_to_num(usual[:, :, K["p95"]], nan=np.inf)
    fail_alert = entry & ((e[:, :, zero + 1:].max(-1) - err_usual) > .05)
    lone = style == 0
    # one alert, on an entry or what it calls, by what is worst
    avail = np.nan_to_num(np.nanmin(np.where(np.isfinite(obs[:, :, K["available"], zero + 1:]), obs[:, :, K["available"], zero + 1:], 200), -1), nan=100)
    a = np.zeros((B, MAXN, 2), bool)
    a[..., 0] = np.where(lone[:, None], entry & ~fail_alert, slow_alert)
    a[..., 1] = fail_alert | (lone[:, None] & entry & ((e[:, :, zero + 1:].max(-1) - err_usual) > .004))
    a[..., 0] &= ~(lone[:, None] & a[..., 1])
    root = np.where(f == F["none"], -1, root)
    return dict(n=n, real=real, adj=adj, obs=obs, usual=usual, dev=dev, low=low, high=high, call=call, crate=crate, logs=logs, alerts=a, root=root,
                fault=f, layer=layer, zero=zero, users=(L[:, :, zero+1:].max(-1)/L0[:, :, 0])[:, 0], style=style, e=e, rate0=rate0)


if __name__ == "__main__":
    import time
    sample(1)
    t = time.perf_counter(); s = sample(2); d = time.perf_counter() - t
    print("per second", 256 / d)
    for k, v in s.items():
        print(k, getattr(v, "shape", v))
