"""`belief` on real incidents, by the simulator's likelihoods as they are: a test of the simulator.

An observed cluster is translated into one that the simulator can run:

| observed | simulated |
|---|---|
| more than 30 services | those nearest the alerted ones, over calls in either direction |
| an unknown kind | by place: `edge` if nobody calls it, `app` if it calls, else `database` |
| calls in a circle | the call that closes it is left out |
| p95 against its usual | as many times the latency that the simulated service has at rest |
| share of errors | the same, in whole per cents; 0 where nobody measured it |
| all else (resources, calls, counts, lines, users) | nothing: the simulator has no words for it |

Any kind of fault may have struck anywhere, and the incident may be of any of the three tasks: their
posteriors are averaged. Nothing is asked; the opening is all that is weighed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...ceiling.posterior import Posterior
from ...ceiling.prior import cached_prior
from ...play.episode import Observation
from ...real.real_episode import TOP
from ...world.call_graph import CallGraph, Service, leads
from ...world.rows import Alert, Metric
from ...world.tasks import TASKS
from ...world.telemetry import coarse, figure
from ...world.topology import MOST_SERVICES, Topology, callers_first
from ..scripted import Action, Policy

SPLIT = "unseen_topology"  # where every fault may strike every service of its kind
SLOWEST_MS = 1e6  # what is slower is told as this: the simulator's figures have no more digits


class Translation:
    """An observed call graph as one that can be simulated.

    Args:
        graph: as observed.
        near: services that must be in it; those nearest to them come with them.

    Attributes:
        topology: what the simulator runs, its services named `s0`, `s1`, ...
        names: simulated name to observed name; services left out have none.
    """

    def __init__(self, graph: CallGraph, near: Iterable[str]) -> None:
        kept = nearest(graph, near)
        short = {name: f"s{i}" for i, name in enumerate(kept)}
        calls = without_circles(
            {name: [one for one in graph.service(name).downstream if one in short] for name in kept}
        )
        called = {callee for callees in calls.values() for callee in callees}
        services = [
            Service(
                short[name],
                "edge" if name not in called else "app" if callees else "database",
                tuple(short[one] for one in callees),
            )
            for name, callees in calls.items()
        ]
        self.topology = Topology(callers_first(services))
        self.names = {simulated: observed for observed, simulated in short.items()}

    def opening(self, observation: Observation) -> Observation:
        """The alerts and the metrics table, as the simulator would have printed them."""
        rows = {row.service: row for row in observation.metrics or ()}
        alerts = {alert.service: alert for alert in observation.alerts or ()}
        network, told = self.topology.network, []
        shouted: list[Alert] = []
        for at, name in enumerate(self.topology.names):
            observed = self.names[name]
            row, alert = rows.get(observed), alerts.get(observed)
            rest = network.rest_latency[at]
            slowdown = row.slowdown if row else None
            latency = min(SLOWEST_MS, rest * slowdown) if slowdown is not None else None
            if row is not None and latency is not None:
                errors = str(round(float(row.errors))) if row.errors else "0"
                told.append(Metric(name, errors, figure(latency), figure(rest)))
            if alert is not None and alert.metric == "errors":
                shouted.append(Alert(name, "errors", coarse(float(alert.value))))
            elif alert is not None and latency is not None:
                shouted.append(Alert(name, "p95", coarse(latency)))
        return Observation(0, observation.max_steps, alerts=shouted, metrics=told, lines=[])


def nearest(graph: CallGraph, near: Iterable[str], most: int = MOST_SERVICES) -> list[str]:
    """The `most` services nearest to these, over calls in either direction; the first come first,
    and what no call leads to last.
    """
    found = dict.fromkeys(near)
    reached = list(found)
    for name in reached:  # it grows meanwhile: breadth first
        for one in (*graph.service(name).downstream, *graph.callers[name]):
            if one not in found:
                found[one] = None
                reached.append(one)
    return list(dict.fromkeys([*reached, *graph.names]))[:most]


def without_circles(calls: dict[str, list[str]]) -> dict[str, list[str]]:
    """The calls of each service without those that close a circle, as a walk down from each service
    in turn finds them.
    """
    kept: dict[str, list[str]] = {name: [] for name in calls}

    for name, callees in calls.items():
        for callee in callees:
            if not leads(kept, callee, name):
                kept[name].append(callee)
    return kept


def translated_beliefs(graph: CallGraph, opening: Observation) -> dict[str, float]:
    """How likely each service is the root by the simulator's likelihoods; 0 for one left out.

    Raises:
        TopologyError: when the simulator cannot run such a cluster.
    """
    alerted = [alert.service for alert in opening.alerts or ()]
    near = alerted or [graph.names[at] for at in graph.edges]
    translation = Translation(graph, dict.fromkeys(near))
    seen = translation.opening(opening)
    total = np.zeros(len(translation.topology.names))
    for task in TASKS.values():
        belief = Posterior(cached_prior(translation.topology, task, SPLIT))
        belief.see(seen, None)
        total += belief.roots()[:-1] / len(TASKS)
    found = zip(translation.topology.names, total, strict=True)
    return dict.fromkeys(graph.names, 0.0) | {
        translation.names[name]: float(chance) for name, chance in found
    }


class TranslatedBeliefPolicy(Policy):
    """Blames the three likeliest roots by `translated_beliefs`, and asks nothing.

    Attributes:
        beliefs: those of the last episode.
    """

    name = "belief"

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self.beliefs = translated_beliefs(topology, observation)
        ranking = sorted(topology.names, key=lambda name: -self.beliefs[name])
        blamed: Sequence[Action] = [
            ("identify_root_cause", name) if at else ("identify_root_cause", name, self.sure(name))
            for at, name in enumerate(ranking[:TOP])
        ]
        self._queue: list[Action] = [*blamed, ("resolve", "")]

    def act(self) -> Action:
        return self._queue.pop(0)

    def sure(self, name: str) -> float:
        """Its belief in a root, as a confidence."""
        return min(1.0, self.beliefs[name])
