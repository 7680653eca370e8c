"""What can be seen of the cluster: log lines, metrics and alerts, partial and noisy by design.

Everything random follows these distributions, so a policy can compute the chance of what it sees:

| what | distribution |
|---|---|
| is a line of the opening noise | Bernoulli(`task.noise`); then uniform service, benign text |
| service of any other line of the opening | categorical over `log_volumes` |
| what kind of line a service prints | categorical over `line_weights` |
| callee that a `callee` line names | categorical over errors + slowness of the degraded callees |
| template of a line | uniform over the split's, or over the varied ones, then over its choices |
| age of a metric | uniform over `STALENESS` |
| metric | the value at that age, times a triangular(1 - `METRIC_NOISE`, 1 + `METRIC_NOISE`) draw |
| is a row of the table missing | Bernoulli(`task.gaps`), once; always for a root quiet at first |
| line of a quiet root in an answer about all | always an ordinary one |
"""

import string
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from .cluster import Cluster, State, is_degraded
from .exact import total
from .incidents import Incident
from .topology import Topology
from .wording import BOOKS, VARIED_BOOKS, Key, choices

STREAM_LINES = 6  # lines in the opening, and in an answer about all services
DETAIL_LINES = 3  # lines in an answer about one service
VOLUME = {"edge": 6.0, "app": 3.0, "database": 2.0, "queue": 2.0}  # how much each kind prints
VOLUME_AT_REST = 0.05  # relative to a service that passes on an error for every request
SLOW = 2.0  # a service is slow beyond this many times its usual latency, own or whole
VOLUME_SLOW = 0.5  # as `VOLUME_AT_REST`, for a slow service
OWN_VOLUME = 10.0  # how much more its own errors print than passed-on errors: stack traces
METRIC_NOISE = 0.2
STALENESS = (0, 0, 1, 2)  # age of a metric in ticks, uniform over these
FAILS = 0.01  # error share above which a line speaks of failures and not only of waiting
UNKNOWN = "-"  # in the text of a row, for a value that nobody measured
ALERT_ERRORS = 0.05
ALERT_SLOWDOWN = 3.0
ALERTED_KINDS = ("edge", "app")  # alerts watch what users feel; stateful services have none

LINE_KINDS = ("proof", "hint", "callee", "own", "benign", "normal")
CALLEE_WEIGHT, OWN_WEIGHT, NORMAL_WEIGHT = 1.4, 0.6, 0.4


class Alert(NamedTuple):
    """A threshold crossed now: `errors` in per cent, or `p95` or `latency` (a mean) in ms."""

    service: str
    metric: str
    value: int | float  # int, here and below, if it is whole: its text has no decimal point

    @property
    def text(self) -> str:
        unit = "%" if self.metric == "errors" else "ms"
        return f"{self.service} {self.metric} {self.value}{unit}"


class Metric(NamedTuple):
    """A row of the metrics table: errors in per cent, p95 and usual p95 in ms; None if unknown."""

    service: str
    errors: int | float | None
    latency: int | float | None
    usual: int | float | None

    @property
    def text(self) -> str:
        errors = UNKNOWN if self.errors is None else f"{self.errors}%"
        latency = UNKNOWN if self.latency is None else f"{self.latency}ms"
        return f"{self.service} {errors} {latency} {UNKNOWN if self.usual is None else self.usual}"

    @property
    def slowdown(self) -> float | None:
        """Latency as a multiple of its usual value; None if either is unknown."""
        return self.latency / self.usual if self.latency is not None and self.usual else None


def two_digits(value: float) -> int | float:
    """Round to two significant digits and at most one decimal."""
    if value >= 100.0:
        scale = 10
        while value >= scale * 100:
            scale *= 10
        return int(value / scale + 0.5) * scale
    if value >= 9.95:
        return int(value + 0.5)
    tenths = int(value * 10.0 + 0.5)
    return tenths // 10 if tenths % 10 == 0 else tenths / 10.0


def one_digit(value: float) -> int:
    """Round to one significant digit."""
    scale = 1
    while value >= scale * 9.5:
        scale *= 10
    return int(value / scale + 0.5) * scale


def figure(value: float) -> str:
    """Format a quantity for a log line of the simulator."""
    return str(two_digits(value))


def _per_cent(share: float) -> str:
    """Format a share as per cent, at most 100, since the cluster rejects any excess."""
    return figure(min(100.0, 100.0 * share))


# Arguments: the state, the position that prints, the position it is about, and the topology.
Field = Callable[[State, int, int, Topology], str]
_FIELDS: dict[str, Field] = {
    "latency": lambda state, speaker, other, topology: figure(state.latency[speaker]),
    "errors": lambda state, speaker, other, topology: figure(100.0 * state.errors[speaker]),
    "usage": lambda state, speaker, other, topology: _per_cent(state.pool[speaker]),
    "cpu": lambda state, speaker, other, topology: _per_cent(state.cpu[speaker]),
    "rate": lambda state, speaker, other, topology: figure(state.load[speaker]),
    "callee": lambda state, speaker, other, topology: topology.names[other],
    "wait": lambda state, speaker, other, topology: figure(state.latency[other]),
    "failures": lambda state, speaker, other, topology: figure(100.0 * state.errors[other]),
}


class Template(NamedTuple):
    """A log line with `%s` for each field, and the functions that fill it (None: random digit)."""

    level: str
    text: str
    fields: tuple[Field | None, ...]


def _compile(template: str) -> Template:
    level, _, text = template.partition(" ")
    parts, fields = [], []
    for literal, name, _, _ in string.Formatter().parse(text):
        parts.append(literal.replace("%", "%%") if "{" in text else literal)
        if name:
            parts.append("%s")
            fields.append(None if name == "n" else _FIELDS[name])
    return Template(level, "".join(parts), tuple(fields))


@cache
def _templates(kind: str, key: Key, held_out: bool, varied: bool) -> list[list[Template]]:
    """Return the templates of a section, each as a list of the versions that its choices allow."""
    every = BOOKS[kind][key]
    chosen = VARIED_BOOKS[kind][key] if varied else every[-1:] if held_out else every[:-1]
    return [[_compile(version) for version in choices(template)] for template in chosen]


class Telemetry:
    """What can be seen of one running cluster; everything is drawn from `random`, in order."""

    def __init__(self, incident: Incident, cluster: Cluster, random: Random) -> None:
        self.incident, self.cluster, self.random = incident, cluster, random.random
        self.topology, self.task = incident.topology, incident.task
        self._at_rest = [False] * len(self.topology.services)
        self._has_row: dict[int, bool] = {}  # by position; filled by the first metrics table
        self._seen_tick, self._degraded = -1, self._at_rest

    def degraded(self) -> list[bool]:
        """Which services are degraded now, by position."""
        cluster = self.cluster
        if cluster.tick != self._seen_tick:
            self._seen_tick, self._degraded = cluster.tick, self._at_rest[:]
            state = cluster.states[cluster.tick]
            for position in cluster.reach:
                self._degraded[position] = is_degraded(self.topology, state, position)
        return self._degraded

    def suppressed(self) -> int | None:
        """Position of the root while it prints nothing by itself and raises no alert, else None."""
        active = self.cluster.active
        return active.position if active and self.cluster.tick < self.incident.quiet_until else None

    def own_degradation(self, position: int) -> float:
        """How much of a service's degradation, 0 to 1, is its own and not its callees': the share
        of requests that fail here, but at least `VOLUME_SLOW` if its own latency has doubled.
        """
        state, network = self.cluster.states[self.cluster.tick], self.topology.network
        passed, own_latency, own_rest = 1.0, state.latency[position], network.rest_latency[position]
        for other, share in network.callees[position]:
            if network.routes[position]:
                passed -= share * state.errors[other]
            else:
                passed *= 1.0 - state.errors[other]
            own_latency -= share * state.latency[other]
            own_rest -= share * network.rest_latency[other]
        own_errors = 1.0 - (1.0 - state.errors[position]) / passed if passed > 0.01 else 0.0
        return max(own_errors, VOLUME_SLOW if own_latency > SLOW * own_rest else 0.0)

    def log_volumes(self) -> list[float]:
        """How much each service prints by itself now, by position."""
        degraded, suppressed = self.degraded(), self.suppressed()
        log_volumes = [VOLUME[service.kind] for service in self.topology.services]
        for position, volume in enumerate(log_volumes):
            relative = VOLUME_AT_REST
            if degraded[position]:
                errors = self.cluster.states[self.cluster.tick].errors[position]
                relative += max(VOLUME_SLOW, errors) + OWN_VOLUME * self.own_degradation(position)
            log_volumes[position] = 0.0 if position == suppressed else volume * relative
        return log_volumes

    def line_weights(self, position: int) -> tuple[float, ...]:
        """Weights of `LINE_KINDS` in what `position` prints now."""
        cluster, task, degraded = self.cluster, self.task, self.degraded()
        visible, active = 0.0, cluster.active
        if active and active.position == position:
            visible = min(1.0, (cluster.tick - active.onset + 1) / active.ramp)
        proof, hint = task.proof * visible, task.hint * visible
        below = any(degraded[other] for other in self.topology.below[position])
        callee = CALLEE_WEIGHT if below else 0.0
        own = OWN_WEIGHT if degraded[position] else 0.0
        return proof, hint, callee, own, task.noise, NORMAL_WEIGHT

    def callee_weights(self, position: int) -> list[tuple[int, float]]:
        """(position, weight) of the callees that a line may name, which are the degraded ones."""
        state = self.cluster.states[self.cluster.tick]
        degraded, rest = self.degraded(), self.topology.network.rest_latency
        weights = []
        for other in self.topology.below[position]:
            if degraded[other]:
                slow = rest[other] / max(state.latency[other], rest[other])
                weights.append((other, state.errors[other] + 1.0 - slow + 0.01))
        return weights

    def lines(self, position: int, count: int = 1) -> list[str]:
        """Draw `count` lines that `position` prints now, each `LEVEL service text`."""
        weights, random = self.line_weights(position), self.random
        whole, lines = total(weights), []
        for _ in range(count):
            lines.append(self._render(LINE_KINDS[_categorical(weights, whole, random)], position))
        return lines

    def _render(self, kind: str, position: int) -> str:
        """Draw a line of that kind, with its fields filled from the current state."""
        service, random = self.topology.services[position], self.random
        state = self.cluster.states[self.cluster.tick]
        key, other = self._subject(kind, position)
        held_out = self.incident.split == "unseen_wording"
        templates = _templates(kind, key, held_out, self.incident.varied_wording)
        draw = random() * len(templates)  # the fraction picks one of the template's versions
        versions = templates[int(draw)]
        level, text, fields = versions[int(draw % 1.0 * len(versions))]
        if fields:
            values = [
                # A meaningless detail keeps lines of one template from being equal.
                str(1 + int(random() * 9))
                if field is None
                else field(state, position, other, self.topology)
                for field in fields
            ]
            text %= tuple(values)
        return f"{level} {service.name} {text}"

    def _subject(self, kind: str, position: int) -> tuple[Key, int]:
        """The section of the wording for a line, and the position of the service it is about."""
        service_kind = self.topology.services[position].kind
        active = self.cluster.active
        if active and kind in ("proof", "hint"):
            fault = active.fault
            return (fault.name if kind == "proof" else fault.remedy, service_kind), position
        if kind not in ("callee", "own"):
            return (service_kind,), position
        random, other = self.random, position
        if kind == "callee":
            weights = self.callee_weights(position)
            shares = [weight for _, weight in weights]
            other = weights[_categorical(shares, total(shares), random)][0]
        state, usual = self.cluster.states[self.cluster.tick], self.topology.network.rest_latency
        # If the service both fails and is slow, a coin decides which of the two the line is about.
        fails = state.errors[other] > FAILS and (
            random() < 0.5 or state.latency[other] < SLOW * usual[other]
        )
        return ("fails" if fails else "slow", service_kind), other

    def opening_lines(self) -> list[str]:
        """The lines of the opening: what reaches the shared log without a question."""
        size, log_volumes, random = len(self.topology.services), self.log_volumes(), self.random
        whole, lines = total(log_volumes), []
        for _ in range(STREAM_LINES):
            if random() < self.task.noise:
                lines.append(self._render("benign", int(random() * size)))
            else:
                lines.extend(self.lines(_categorical(log_volumes, whole, random)))
        return lines

    def detail(self, position: int) -> list[str]:
        """What one service prints when it is asked."""
        return self.lines(position, DETAIL_LINES)

    def sample(self) -> list[str]:
        """One line from each of `STREAM_LINES` services, drawn without replacement. A suppressed
        root prints an ordinary line: as the only silent service, it would stand out.
        """
        order, random = list(range(len(self.topology.services))), self.random
        suppressed = self.suppressed()
        # Uses only `random`, unlike `exact.shuffled`: published incidents depend on these draws.
        for i in range(len(order) - 1, 0, -1):
            j = int(random() * (i + 1))
            order[i], order[j] = order[j], order[i]
        return [
            self._render("normal", position) if position == suppressed else self.lines(position)[0]
            for position in order[:STREAM_LINES]
        ]

    def metric(self, position: int) -> Metric:
        """A row of the metrics table, noisy and perhaps stale."""
        cluster, random = self.cluster, self.random
        age = STALENESS[int(random() * len(STALENESS))]
        state = cluster.states[max(0, cluster.tick - age)]
        # The difference of two uniform draws is triangular on (-1, 1).
        fails = 1.0 + METRIC_NOISE * (random() - random())
        slow = 1.0 + METRIC_NOISE * (random() - random())
        return Metric(
            self.topology.names[position],
            int(min(100.0, 100.0 * state.errors[position] * fails) + 0.5),
            two_digits(state.latency[position] * slow),
            two_digits(self.topology.network.rest_latency[position]),
        )

    def metrics(self) -> list[Metric]:
        """The metrics table, with gaps. A service whose row is missing at first, by chance or as a
        suppressed root, never gets one: with new gaps, a row missing twice would be the root's.
        """
        gaps, random, suppressed, rows = self.task.gaps, self.random, self.suppressed(), []
        for i in range(len(self.topology.services)):
            if i not in self._has_row:
                self._has_row[i] = random() >= gaps and i != suppressed
            if self._has_row[i]:
                rows.append(self.metric(i))
        return rows

    def alerts(self) -> list[Alert]:
        """The thresholds crossed now by services of `ALERTED_KINDS`; a suppressed root has none."""
        cluster, rest = self.cluster, self.topology.network.rest_latency
        state, suppressed = cluster.states[cluster.tick], self.suppressed()
        alerts = []
        for position in cluster.reach:
            service = self.topology.services[position]
            if service.kind not in ALERTED_KINDS or position == suppressed:
                continue
            if state.errors[position] > ALERT_ERRORS:
                errors = one_digit(100.0 * state.errors[position])
                alerts.append(Alert(service.name, "errors", errors))
            elif state.latency[position] > ALERT_SLOWDOWN * rest[position]:
                alerts.append(Alert(service.name, "p95", one_digit(state.latency[position])))
        return alerts


def _categorical(weights: Sequence[float], total: float, random: Callable[[], float]) -> int:
    """Draw an index in proportion to `weights`, whose sum is `total`."""
    spot, last = random() * total, 0
    for i, weight in enumerate(weights):
        if weight:
            spot -= weight
            last = i
            if spot < 0.0:
                return i
    return last  # reached only through rounding
