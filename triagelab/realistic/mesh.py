"""The constants of a block of clusters: who calls whom, how long it takes, how errors spread.

A block holds `BLOCK` clusters of one size as arrays. Their first axis is the cluster [B], and the
last ones are its services [N], callers before callees. A change at a root reaches other services
through a few matrices, so the consequences of any fault are a product (`consequences`).
"""

from dataclasses import dataclass

import numpy as np

from . import randomisation

BLOCK = 32  # incidents that are drawn at once
MOST_CALLERS = 6
METRICS = (
    *("latency", "p95", "p95 of its calls", "available", "requests"),
    *("cpu", "memory", "node cpu"),
)
AT = {name: at for at, name in enumerate(METRICS)}
# What a cluster measures: an application's monitoring, a mesh with its machines, or all of it.
STYLES = np.array([[1, 1, 0, 1, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1, 1, 1], [1] * 8], bool)
APPLICATION = 0


class Draw:
    """Draws from the distributions that the world needs, all with one random stream."""

    def __init__(self, stream: np.random.Generator) -> None:
        self.stream = stream

    def uniform(self, ends: randomisation.Range, *shape: int) -> np.ndarray:
        return np.float32(ends[0]) + np.float32(ends[1] - ends[0]) * self.stream.random(
            shape, np.float32
        )

    def normal(self, *shape: int) -> np.ndarray:
        return self.stream.standard_normal(shape, np.float32)

    def lognormal(self, median: float, sigma: float | np.ndarray, *shape: int) -> np.ndarray:
        return np.float32(median) * np.exp(np.float32(1.0) * sigma * self.normal(*shape))

    def chance(self, share: float | np.ndarray, *shape: int) -> np.ndarray:
        return self.stream.random(shape, np.float32) < share


class Mesh:
    """The clusters of a block, of `size` services each. Times in ms, rates in requests a second."""

    def __init__(self, draw: Draw, size: int) -> None:
        count, shape, square = BLOCK, (BLOCK, size), (BLOCK, size, size)
        layer, self.entry = _layers(draw, count, size)  # [B, N] users reach it
        self.calls = _calls(draw, layer)  # [B, caller, callee]

        unused = draw.chance(draw.uniform(randomisation.UNUSED, count, 1), *shape) & ~self.entry
        often = draw.chance(draw.uniform((0.0, 0.7), count, 1, 1), *square)
        times = np.where(often, 1.0, np.clip(draw.lognormal(0.5, 1.1, *square), 0.005, 6))
        times = self.calls * times * np.where(unused, 1e-4, 1.0)[:, None]
        demand = draw.lognormal(*randomisation.REQUESTS, count, 1) * self.entry
        demand = demand * draw.lognormal(1.0, 1.0, *shape)
        flow = _closure(times)
        self.rate = np.einsum("bi,bij->bj", demand, flow)  # [B, N] usual
        through = self.rate[:, :, None] * flow / np.maximum(self.rate, 1e-9)[:, None]
        # [B, root, service] share of a service's requests that come through the root
        self.through = np.minimum(1.0, through)

        proxy = draw.chance(draw.uniform(randomisation.PROXIES, count, 1), *shape)
        own = draw.lognormal(*randomisation.OWN_TIME, *shape) * draw.uniform((0.3, 3.0), count, 1)
        self.own = own * np.where(proxy, 0.03, 1.0)  # [B, N] a service's own time
        self.wire = self.calls * draw.lognormal(1.5, 0.7, *square)  # [B, caller, callee] ms
        weight = times * draw.uniform((0.25, 1.0), *shape)[:, :, None]  # calls in parallel, caches
        # [B, N] ms by which a request takes longer when each call waits 1 ms longer
        self.waits = weight.sum(2)
        # [B, service, root] ms by which a service takes longer when the root takes 1 ms longer
        self.slowed = _closure(weight)
        rest = self.own + (weight * self.wire).sum(2)
        self.latency = np.einsum("bij,bj->bi", self.slowed, rest)  # [B, N] usual

        passed = np.where(
            draw.chance(randomisation.SWALLOWED, *square),
            draw.uniform((0.0, 0.1), *square),
            draw.uniform(randomisation.PASSED_ON, *square),
        )
        # [B, service, root] share of requests that fail for each failure of the root
        self.failed = np.minimum(1.0, _closure(passed * np.minimum(times, 1.0)))

        machines = np.maximum(1, (size * draw.uniform((0.12, 0.5), count)).astype(int))
        machine = np.floor(draw.uniform((0.0, 1.0), *shape) * machines[:, None])
        self.machine = machine.astype(int)  # [B, N] number of the machine that it runs on
        together = self.machine[:, :, None] == self.machine[:, None, :]
        others = together & ~np.eye(size, dtype=bool)
        # [B, service, root] as `slowed`, if all others on the root's machine double their own time
        self.crowded = self.slowed @ (others * self.own[:, :, None])
        self.cpu = draw.lognormal(1.5, 1.0, *shape)  # [B, N] usual, %
        # [B, N] usual sum over its machine, %
        self.cpu_of_machine = np.einsum("bij,bj->bi", together, self.cpu) + 100.0

        errors = draw.chance(randomisation.ERRORS, *shape) * draw.lognormal(
            *randomisation.USUAL_ERRORS, *shape
        )
        self.errors = np.clip(errors, 2e-4, 0.5)  # [B, N] usual share of requests that fail
        band = draw.lognormal(*randomisation.P95_BAND, count, 1) * draw.lognormal(1.0, 0.45, *shape)
        self.noise = np.arcsinh(np.clip(band, 0.05, 3.0)) / 1.645  # [B, N] of a p95's logarithm
        self.period = np.where(draw.chance(0.35, count, 1), 300.0, 60.0)  # [B, 1] seconds
        self.style = draw.stream.integers(0, len(STYLES), count)  # [B] which of `STYLES`
        self.measured = _measured(draw, self.style, size)  # [B, N, metric]
        # [B, N] whether it is measured, and has enough requests for a fault to matter
        known = self.measured[:, :, : AT["requests"]].any(2)
        self.can_fail = (self.rate * 300.0 > 3.0) & ~unused & known
        self.cores = draw.uniform((4.0, 30.0), count, 1)  # [B, 1] cores of each machine
        self.memory = np.clip(draw.lognormal(30.0, 0.7, *shape), 1.0, 99.0)  # [B, N] usual, %
        self.tail = np.exp(draw.uniform((0.2, 1.3), *shape))  # [B, N] p95 over mean latency


def _layers(draw: Draw, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the layer of each service, in order; entries are those in the first layer."""
    depth = draw.stream.integers(randomisation.LAYERS[0], randomisation.LAYERS[1] + 1, (count, 1))
    shallow = draw.uniform((0.0, 1.0), count, size) ** draw.uniform((0.6, 1.3), count, 1)
    layer = 1 + np.floor(np.minimum(shallow, 0.999) * (depth - 1)).astype(int)
    entries = np.minimum(draw.stream.geometric(randomisation.ENTRIES, (count, 1)), 5)
    layer[np.arange(size) < entries] = 0
    layer = np.sort(layer, axis=1)
    return layer, layer == 0


def _calls(draw: Draw, layer: np.ndarray) -> np.ndarray:
    """Draw who calls whom: each service below the entries has one to `MOST_CALLERS` callers above
    it, in the layer just above if possible.
    """
    count, size = layer.shape
    above = layer[:, :, None] < layer[:, None, :]
    far = layer[:, :, None] + 1 < layer[:, None, :]
    busy = draw.uniform((0.0, 1.0), count, size, 1) * draw.uniform((0.0, 1.2), count, 1, 1)
    order = np.where(above, draw.uniform((0.0, 1.0), count, size, size) + 2.0 * far - busy, 99.0)
    shared = draw.chance(draw.uniform(randomisation.SHARED, count, 1), count, size)
    fewer = draw.uniform(randomisation.FEWER_CALLERS, count, 1)
    callers = np.minimum(1 + shared * draw.stream.geometric(fewer, (count, size)), MOST_CALLERS)
    rank = np.argsort(np.argsort(order, axis=1), axis=1)
    return above & (rank < callers[:, None, :])


def _closure(step: np.ndarray) -> np.ndarray:
    """1 + step + step^2 + ...: calls form no cycles, so the sum ends."""
    itself = np.eye(step.shape[-1], dtype=np.float32)
    total, power = itself + step, step @ step
    while power.any():
        total = total + power
        power = power @ step
    return total


def _measured(draw: Draw, style: np.ndarray, size: int) -> np.ndarray:
    """Draw which metrics of which services are measured at all."""
    count = len(style)
    known = STYLES[style] & ~draw.chance(0.12, count, len(METRICS))
    known[:, AT["p95"]] |= ~known[:, AT["latency"]]
    known[:, AT["available"]] = STYLES[style][:, AT["available"]]
    dark = draw.chance(draw.uniform(randomisation.DARK, count, 1), count, size)
    alone = np.arange(len(METRICS)) == AT["requests"]
    return known[:, None] & ~(dark[:, :, None] & ~alone)


@dataclass(frozen=True)
class Change:
    """What a fault in full effect changes, [B, N]. Ratios are to the usual; 0 is no change."""

    latency: np.ndarray  # ratio
    calls: np.ndarray  # ratio, of the time that its calls take
    delay: np.ndarray  # [B, 1] ms that each call to the root waits longer
    errors: np.ndarray  # share that fails
    requests: np.ndarray  # ratio
    cpu: np.ndarray  # ratio
    memory: np.ndarray  # ratio
    node: np.ndarray  # ratio, of the machine's cpu
    error_lines: np.ndarray  # error lines a minute
    lines: np.ndarray  # share of lines that are missing


def consequences(mesh: Mesh, root: np.ndarray, size: dict[str, np.ndarray]) -> Change:
    """Return what faults of these sizes (`randomisation.sizes`, [B]) change in the whole cluster,
    each at the `root` [B] of its own cluster.
    """
    size = {name: value[:, None] for name, value in size.items()}
    of_root = np.arange(BLOCK), root
    at = (np.arange(mesh.own.shape[1]) == root[:, None]).astype(np.float32)
    slowed, crowded, failed = (
        effect[np.arange(BLOCK), :, root] for effect in (mesh.slowed, mesh.crowded, mesh.failed)
    )
    beside = mesh.machine == mesh.machine[of_root][:, None]

    own_time = mesh.own[of_root][:, None] * size["faster"]
    longer = mesh.latency[of_root][:, None] * size["slow"] + size["added"] - own_time
    slower = slowed * longer + (slowed - at) * size["delay"] + crowded * size["neighbours"]
    itself = at * longer + (beside - at) * mesh.own * size["neighbours"]
    calls_take = np.maximum(mesh.latency - mesh.own, 1e-3)
    through = mesh.through[of_root] * (1.0 - at)
    return Change(
        latency=slower / mesh.latency,
        calls=(slower - itself) / calls_take,
        delay=size["delay"],
        errors=failed * size["fails"] * (1.0 - mesh.errors),
        requests=at * size["load"] + through * (size["load"] - size["drops"]),
        cpu=at * size["cpu"],
        memory=at * size["memory"],
        node=beside * (mesh.cpu[of_root][:, None] * size["cpu"]) / mesh.cpu_of_machine,
        error_lines=size["tells"] * (at + 0.3 * np.maximum(failed - at, 0.0)),
        lines=at * size["fewer"],
    )
