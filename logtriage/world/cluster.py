"""The simulator: the state of every service, the tick of 30 s, and the effect of a remediation.

Everything here is deterministic; randomness lives in `incidents` (what happens) and `telemetry`
(what is seen of it). A tick reads only the previous state, so a disturbance takes one tick per hop,
both up and down:

* load flows down the calls, and failed calls are retried: `demand = external + sum(load * share) *
  (1 + RETRIES * errors)`
* a service's own latency is that of an M/M/1 queue, `idle / (1 - utilisation)`; the wait for its
  callees is added to it
* connections in use follow from Little's law, `demand * latency`; a full pool rejects the rest
* a failed call fails the caller's request: a router calls one callee per request, others call all
"""

from dataclasses import dataclass
from typing import NamedTuple

from .faults import Fault
from .topology import TIMEOUT_MS, Topology

# one failed call in ten is retried; with more, retries alone can keep a healed cluster down
RETRIES = 0.1
QUEUE_LIMIT = 0.97  # above this utilisation, the length of the accept queue bounds latency
# under a constant fault, the state has settled once a tick changes nothing by more than this share
SETTLED = 1e-3
# Extra work per request when every cache hit becomes a miss, as a multiple of the work at rest.
CACHE_COST = 4.0

# Severity boundaries: customer-facing errors, and slowdown of the edge relative to rest. A peak
# between the two numbers of a pair is too close to call, and the incident is drawn again.
OUTAGE_ERRORS = (0.042, 0.06)
NOTICED_ERRORS = (0.002, 0.006)
NOTICED_SLOWDOWN = (1.12, 1.3)

# A service is degraded when more than this share of its requests fail, when its latency is more
# than this many times that at rest, or when its processor or its pool is nearly full.
DEGRADED_ERRORS = 0.02
DEGRADED_SLOWDOWN = 2.0
DEGRADED_SATURATION = 0.9


class State(NamedTuple):
    """The cluster at one tick: five lists, one entry per service position. Treat as read-only."""

    load: list[float]  # arriving requests per second
    latency: list[float]  # p95, ms
    errors: list[float]  # fraction of requests that fail
    pool: list[float]  # connections in use over pool size; above 1 the excess is rejected
    cpu: list[float]  # utilisation; above 1 the excess is shed


@dataclass(frozen=True)
class Injection:
    """A fault at `position`, from tick `onset`, rising linearly to `intensity` in `ramp` ticks."""

    fault: Fault
    position: int
    intensity: float
    onset: int
    ramp: int

    def strength(self, tick: int) -> float:
        """Intensity at `tick`, in [0, 1]."""
        if tick < self.onset:
            return 0.0
        return self.intensity * min(1.0, (tick - self.onset + 1) / self.ramp)


def rest_state(topology: Topology) -> State:
    """The fixed point of a healthy cluster."""
    network = topology.network
    healthy = [0.0] * len(topology.services)
    return State(
        network.rest_load, network.rest_latency, healthy, network.rest_pool, network.rest_cpu
    )


def next_state(
    topology: Topology,
    previous: State,
    injection: Injection | None,
    tick: int,
    reach: tuple[int, ...],
) -> tuple[State, bool]:
    """Return the state at `tick`, and whether anything moved; only positions in `reach` change."""
    # The hot loop of the whole project: lists instead of objects, and names bound outside of it.
    network = topology.network
    callers, callees, routes = network.callers, network.callees, network.routes
    external, idle_latency = network.external, network.idle_latency
    capacities, pool_sizes = network.capacity, network.pool_size
    load_before, latency_before, errors_before, pool_before, cpu_before = previous
    load, latency, errors = load_before[:], latency_before[:], errors_before[:]
    pool, cpu = pool_before[:], cpu_before[:]
    root, fault, strength = -1, None, 0.0
    if injection is not None:
        root, fault, strength = injection.position, injection.fault, injection.strength(tick)
    moved = False
    for i in reach:
        # Requests arrive from users, from callers, and as retries of what failed here before.
        demand = 0.0
        for j, share in callers[i]:
            demand += load_before[j] * share
        demand = external[i] + demand * (1.0 + RETRIES * errors_before[i])
        idle, capacity = idle_latency[i], capacities[i]
        succeeds = 1.0
        slow = leaked = 0.0
        if fault and i == root:  # a fault changes quantities of its own service only
            demand += fault.load * strength * network.rest_load[i]
            capacity *= (1.0 - fault.capacity * strength) / (
                1.0 + CACHE_COST * fault.cache * strength
            )
            succeeds = 1.0 - fault.errors * strength
            slow = fault.latency * strength * idle
            leaked = fault.pool * strength
        # The service's own time is that of an M/M/1 queue; the wait for callees is added.
        busy = demand / capacity
        response = slow + idle / (1.0 - (busy if busy < QUEUE_LIMIT else QUEUE_LIMIT))
        if routes[i]:  # each request goes to one of the callees
            lost = 0.0
            for j, share in callees[i]:
                response += share * latency_before[j]
                lost += share * errors_before[j]
            succeeds *= 1.0 - lost
        else:  # each request needs all of them
            for j, _ in callees[i]:
                response += latency_before[j]
                succeeds *= 1.0 - errors_before[j]
        if response > TIMEOUT_MS:  # the share that waits longer gives up
            succeeds *= TIMEOUT_MS / response
            response = TIMEOUT_MS
        # Little's law fills the pool; a full pool or a saturated service rejects the excess.
        used = demand * response / 1000.0 / pool_sizes[i] + leaked
        if used > 1.0:
            succeeds /= used
        if busy > 1.0:
            succeeds /= busy
        failed = 1.0 - succeeds
        if not moved:
            moved = (
                abs(response - latency_before[i]) > SETTLED * response
                or abs(failed - errors_before[i]) > SETTLED
                or abs(demand - load_before[i]) > SETTLED * demand
            )
        load[i] = demand
        latency[i] = response
        errors[i] = failed
        pool[i] = used
        cpu[i] = busy
    return State(load, latency, errors, pool, cpu), moved


def untreated_states(topology: Topology, injection: Injection | None, ticks: int) -> list[State]:
    """Return the states at ticks 0 (at rest) to `ticks` if nobody does anything."""
    states = [rest_state(topology)]
    if injection is None:
        return states * (ticks + 1)
    reach = topology.reach(injection.position)
    full = injection.onset + injection.ramp - 1  # the tick at which the fault reaches its intensity
    for tick in range(1, ticks + 1):
        state, moved = next_state(topology, states[-1], injection, tick, reach)
        states.append(state)
        if not moved and tick > full:  # nothing will move any more
            states.extend([state] * (ticks - tick))
            break
    return states


class Cluster:
    """A running cluster: it replays the untreated states until a remedy takes it off that path.
    `active` is the fault until it is remedied; `states` has an entry per tick, at least up to now.
    """

    def __init__(
        self, topology: Topology, injection: Injection | None, untreated: list[State], tick: int
    ) -> None:
        self.topology, self.active, self.tick = topology, injection, tick
        self.reach = topology.reach(injection.position) if injection else ()
        self.states = untreated  # copied before a state is added to it
        self._diverged = False

    def advance(self) -> None:
        """Let one tick pass."""
        self.tick += 1
        if self._diverged:
            state, _ = next_state(
                self.topology, self.states[-1], self.active, self.tick, self.reach
            )
            self.states.append(state)

    def remediate(self, remedy: str, position: int) -> None:
        """Apply a remedy now. The right one at the root ends the fault, and the cluster heals over
        the next ticks. A restart elsewhere clears a service's state for a moment. Any other remedy
        has no effect.
        """
        active = self.active
        if active and position == active.position and remedy == active.fault.remedy:
            self._diverge()
            self.active = None
        elif remedy == "restart" and self.reach:
            self._diverge()
            now, rest = self.states[-1], rest_state(self.topology)
            for present, healthy in zip(now, rest, strict=True):
                present[position] = healthy[position]

    def _diverge(self) -> None:
        if not self._diverged:
            past = self.states[: self.tick + 1]
            past[-1] = State(*(list(values) for values in past[-1]))
            self.states, self._diverged = past, True


def user_impact(topology: Topology, states: list[State]) -> tuple[float, float]:
    """Peak error share and slowdown (ratio to rest) over `states`, at the worst entry service."""
    rest, entries = topology.network.rest_latency, topology.entry_services
    return (
        max([state.errors[i] for i in entries for state in states]),
        max([max([state.latency[i] for state in states]) / rest[i] for i in entries]),
    )


def severity_of(errors: float, slowdown: float) -> str | None:
    """Return P1, P2 or P3 for that user impact; None if it is too close to a boundary to call."""
    if errors > OUTAGE_ERRORS[1]:
        return "P1"
    if errors > OUTAGE_ERRORS[0]:
        return None
    if errors > NOTICED_ERRORS[1] or slowdown > NOTICED_SLOWDOWN[1]:
        return "P2"
    if errors > NOTICED_ERRORS[0] or slowdown > NOTICED_SLOWDOWN[0]:
        return None
    return "P3"


def is_degraded(topology: Topology, state: State, position: int) -> bool:
    """Whether a service fails too many requests, is too slow, or is near saturation."""
    return (
        state.errors[position] > DEGRADED_ERRORS
        or state.latency[position] > DEGRADED_SLOWDOWN * topology.network.rest_latency[position]
        or state.cpu[position] > DEGRADED_SATURATION
        or state.pool[position] > DEGRADED_SATURATION
    )
