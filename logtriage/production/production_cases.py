"""An incident of `production` as a case: the rows that an agent is shown, and the truth.

    production_case("test", 7)

`BLOCK` incidents have clusters of one size. What is shown has three significant digits.
"""

from functools import lru_cache
from random import Random

import numpy as np

from ..real.cases import Case, Truth, Window
from ..real.observed import CallTime, LineCount, Measure
from ..world.telemetry import Alert
from .failures import FAILURES, NO_FAULT
from .generator import ONSETS, ZERO, Block, draw_block
from .mesh import AT, BLOCK, METRICS
from .noise import SAMPLES
from .service_names import service_names

SPLITS = ("train", "test")
UNITS = dict(zip(METRICS, ("ms", "ms", "ms", "%", "/s", "%", "%", "%"), strict=True))
REACHED = 0.1  # slower or failing by this share: a service that a fault has reached
LINES_SHOWN = 5  # log lines of a service at most
# What services write in ordinary times, and of their own failures; few name another service.
ORDINARY = (
    "INFO request {n} done in {ms} ms",
    "INFO GET /v1/{thing}/{n} 200 {ms}ms",
    "INFO loaded {n} entries",
    "INFO health check ok",
    "DEBUG pool size {n}, waiting 0",
    "WARN slow call took {ms} ms",
)
COMPLAINTS = (
    "ERROR unexpected error while handling request {n}",
    "ERROR java.lang.IllegalStateException: {thing} {n}",
    "ERROR request {n} failed with status 500",
    "ERROR panic recovered: index out of range [{n}]",
    "WARN retry {n} gave up",
)
ABOUT_ANOTHER = "ERROR call to {callee} failed: status 500"
NAMING = 0.05  # share of the complaints that name another service
DEPLOY = "INFO started version {n}.{ms}"


@lru_cache(maxsize=8)
def block_of(split: str, number: int) -> Block:
    """A block, kept while its incidents are opened one after the other."""
    return draw_block(split, number)


@lru_cache(maxsize=64)
def production_case(split: str, index: int) -> Case:
    """The incident with that number, from 0."""
    return _Writer(split, index).case(f"production/{split}/{index}")


def names_of(split: str, index: int) -> list[str]:
    """The names of an incident's services, in the order of its block."""
    size = block_of(split, index // BLOCK).mesh.own.shape[1]
    return service_names(Random(f"production/{split}/{index}/names"), size)


def spread_path(block: Block, at: int) -> list[int]:
    """The services through which a fault reached its users, the root first: from each to the caller
    that suffers most, by failing requests or else by waiting.
    """
    root = int(block.root[at])
    if root < 0:
        return []
    hurt = block.change.errors[at] + np.minimum(block.change.latency[at], 10.0)
    path = [root]
    while True:
        callers = np.flatnonzero(block.mesh.calls[at][:, path[-1]])
        if not len(callers) or hurt[callers].max() < REACHED:
            return path
        path.append(int(callers[hurt[callers].argmax()]))


class _Writer:
    """Writes one incident."""

    def __init__(self, split: str, index: int) -> None:
        self.block, self.at = block_of(split, index // BLOCK), index % BLOCK
        self.names = names_of(split, index)
        self.random = Random(f"production/{split}/{index}/lines")
        self.order = sorted(range(len(self.names)), key=self.names.__getitem__)

    def case(self, name: str) -> Case:
        block, at = self.block, self.at
        kind, root = int(block.kind[at]), int(block.root[at])
        failure = FAILURES[kind] if kind != NO_FAULT else None
        minutes = float(block.mesh.period[at, 0]) / 60.0
        calls = np.argwhere(block.mesh.calls[at])
        logged = bool(block.lines.known[at])
        return Case(
            id=name,
            services=sorted(self.names),
            calls=sorted((self.names[caller], self.names[callee]) for caller, callee in calls),
            window=Window(
                minutes=[(sample - ZERO) * minutes for sample in range(SAMPLES)], zero=ZERO
            ),
            alerts=self._alerts(),
            measures=[
                self._measure(service, metric)
                for service in self.order
                for metric in METRICS
                if block.mesh.measured[at, service, AT[metric]]
            ],
            call_times=self._call_times(),
            line_counts=[self._count(service) for service in self.order] if logged else [],
            log_minutes=float(block.lines.minutes[at, 0]) if logged else 0.0,
            logs={self.names[one]: self._lines(one) for one in self.order} if logged else {},
            truth=Truth(
                root=self.names[root] if failure else "",
                fault=failure.name if failure else "none",
                origin=name,
                how=f"onset in sample {ONSETS[block.onset[at]]:g}",
                remedy=failure.remedy if failure else "",
                team=failure.team if failure else "",
                path=tuple(self.names[one] for one in spread_path(block, at)),
            ),
        )

    def _alerts(self) -> list[Alert]:
        block, at = self.block, self.at
        found = []
        for service in self.order:
            slow, fails = block.alerts[at, service]
            if fails:
                share = 1.0 - block.failures[at, service] / np.maximum(
                    block.requests[at, service], 1
                )
                found.append(
                    Alert(self.names[service], "errors", _short(100.0 * (1.0 - share.min())))
                )
            if slow:
                metric = "latency" if block.mesh.measured[at, service, 0] else "p95"
                values = block.values[at, service, AT[metric], ZERO + 1 :]
                if np.isfinite(values).any():
                    found.append(Alert(self.names[service], metric, _short(np.nanmax(values))))
        return found

    def _measure(self, service: int, metric: str) -> Measure:
        block, at, k = self.block, self.at, AT[metric]
        unit = UNITS[metric]
        if metric == "requests" and block.mesh.period[at, 0] > 60.0:
            unit = ""
        return Measure(
            self.names[service],
            metric,
            unit,
            tuple(_known(value) for value in block.values[at, service, k]),
            _known(block.usual[at, service, k]),
            _known(block.low[at, service, k]),
            _known(block.high[at, service, k]),
            _known(block.deviation[at, service, k]),
        )

    def _call_times(self) -> list[CallTime]:
        mesh, calls, at = self.block.mesh, self.block.calls, self.at
        rows = []
        for caller, callee in np.argwhere(calls.known[at]):
            served, network = calls.served[at, caller, callee], calls.network[at, caller, callee]
            usual, wire = mesh.latency[at, callee], mesh.wire[at, caller, callee]
            rows.append(
                CallTime(
                    self.names[caller],
                    self.names[callee],
                    _short(served + network),
                    _short(usual + wire),
                    _short(served),
                    _short(usual),
                )
            )
        return sorted(rows)

    def _count(self, service: int) -> LineCount:
        lines, at = self.block.lines, self.at
        counts = (
            lines.ordinary + lines.errors + lines.warnings,
            lines.usual + lines.usual_errors + lines.usual_warnings,
            lines.errors,
            lines.usual_errors,
            lines.warnings,
            lines.usual_warnings,
        )
        return LineCount(self.names[service], *(_short(one[at, service]) for one in counts))

    def _lines(self, service: int) -> list[str]:
        """Some of the lines: a deployment, what it complains of, and ordinary ones."""
        block, at, random = self.block, self.at, self.random
        complaints = round(float(block.lines.errors[at, service] * block.lines.minutes[at, 0]))
        texts = [DEPLOY] if block.deployed[at, service] else []
        for _ in range(min(complaints, LINES_SHOWN - 2)):
            another = random.random() < NAMING and block.mesh.calls[at, service].any()
            texts.append(ABOUT_ANOTHER if another else random.choice(COMPLAINTS))
        texts += random.choices(ORDINARY, k=LINES_SHOWN - len(texts))
        callees = [self.names[one] for one in np.flatnonzero(block.mesh.calls[at, service])]
        seconds = sorted(random.uniform(0.0, 120.0) for _ in texts)
        lines = []
        for second, text in zip(seconds, texts, strict=True):
            filled = text.format(
                n=random.randint(1, 9999),
                ms=random.randint(1, 400),
                thing=random.choice(("order", "user", "item", "job")),
                callee=random.choice(callees) if callees else "",
            )
            lines.append(f"10:{30 + int(second // 60)}:{second % 60:06.3f} {filled}")
        return lines


def _short(value: float) -> float:
    """Three significant digits."""
    return float(f"{float(value):.3g}")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else _short(value)
