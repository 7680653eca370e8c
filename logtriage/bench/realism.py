"""How real the simulator is: the same statistics of real cases and of simulated incidents, by one
function that reads what an agent would be shown, and the truth.

    from logtriage.bench.realism import realism_frame, realism_table
    realism_table(realism_frame())  # a row a statistic, a column a source or task

A simulated row has no band of usual values beside it; its band is that of the noise which
`telemetry` puts on every metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, sqrt
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

from ..ceiling.grounding import LATENCIES, SUCCESSES, Evidence, farthest, gather, lately
from ..play.actions import Action
from ..play.episode import Episode
from ..play.observation import Measure, Observation, number
from ..real.cases import SOURCES, load_source
from ..real.real_episode import RealEpisode
from ..real.real_rows import USERS
from ..real.rules import call_network
from ..real.unexplained import NOTHING, wire_waits
from ..world.call_graph import CallGraph
from ..world.incidents import sample_incident
from ..world.tasks import TASKS
from ..world.telemetry import METRIC_NOISE
from ..world.wording import read_line

LOUD = 5.0  # sigmas, from which a bystander counts
FAILS = 1.0  # per cent of failed requests, from which an incident is one of errors
# Of a triangular distribution on (-1, 1): between minus and plus this lie nine of ten values.
NINE_OF_TEN = 1.0 - sqrt(0.1)
COMPLAINS = ("ERROR", "WARN", "WARNING")
MINUTES_OF_BATCH = 0.5  # that the first lines of a simulated incident are from: a tick


class Seen(NamedTuple):
    """An incident as it was shown, and its root.

    Attributes:
        openings: the opening, and the answer about all services.
        own: the answer about the root; around, those about its callers.
    """

    graph: CallGraph
    root: str
    openings: tuple[Observation, ...]
    own: Observation
    around: tuple[Observation, ...]


def seen_real(source: str, index: int) -> Seen:
    """A real case, asked about all, about its root and about the callers of that."""
    episode = RealEpisode.open(source, index)
    return _ask(episode, episode.incident.topology, episode.incident.case.truth.root)


def seen_simulated(task: str, index: int, split: str = "test") -> Seen | None:
    """A simulated incident, asked the same; None for a false alarm, which has no root."""
    incident = sample_incident(task, split, index)
    if incident.root is None:
        return None
    return _ask(Episode(incident), incident.topology, incident.root)


def _ask(episode: Episode | RealEpisode, graph: CallGraph, root: str) -> Seen:
    def ask(service: str) -> Observation:
        return episode.act(Action("request_more_logs", (service,)))

    everything = ask("all")
    # All but the last step: with that the episode is over.
    callers = graph.callers[root][: episode.opening.max_steps - 3]
    own = ask(root)
    return Seen(graph, root, (episode.opening, everything), own, tuple(map(ask, callers)))


def statistics(seen: Seen) -> dict[str, float]:
    """The statistics of an incident, `STATISTICS` by name; nan where it has nothing to tell."""
    evidence = banded(gather(seen.graph, seen.openings))
    return {name: float(count(seen, evidence)) for name, (count, _, _) in STATISTICS.items()}


def banded(evidence: Evidence) -> Evidence:
    """Evidence whose measures have a band of usual values: where none is shown, that of the
    simulator's noise.
    """
    measures = {
        service: {name: _with_band(one) for name, one in known.items()}
        for service, known in evidence.measures.items()
    }
    return Evidence(evidence.graph, evidence.alerts, measures, evidence.calls, evidence.counts)


def _with_band(measure: Measure) -> Measure:
    if measure.low is not None or len(measure.values) > 1 or measure.usual is None:
        return measure
    # The noise is on the value, and no value of a share may pass 100 %.
    wide = METRIC_NOISE * NINE_OF_TEN * measure.usual if measure.name in LATENCIES else 0.0
    return measure._replace(low=measure.usual - wide, high=measure.usual + wide)


def services(seen: Seen, evidence: Evidence) -> float:
    """How many there are."""
    return len(seen.graph.names)


def longest_path(seen: Seen, evidence: Evidence) -> float:
    """Services on the longest way down; those of a circle count as one."""
    network = call_network(seen.graph)
    return len(nx.dag_longest_path(nx.condensation(network)))


def shared(seen: Seen, evidence: Evidence) -> float:
    """Share of the called services that more than one service calls."""
    called = [callers for callers in seen.graph.callers.values() if callers]
    return float(np.mean([len(callers) > 1 for callers in called])) if called else 0.0


def on_the_wire(seen: Seen, evidence: Evidence) -> float:
    """Whether only the callers' waiting shows: the root is quiet, and calls to it wait longer."""
    longer = [times for (_, to), (_, times) in wire_waits(evidence).items() if to == seen.root]
    return evidence.surprise(seen.root) < LOUD and max(longer, default=0.0) > NOTHING


def without_errors(seen: Seen, evidence: Evidence) -> float:
    """Whether no alert tells of errors, and users fail no more than `FAILS` beyond the usual."""
    told = any(alert.metric == "errors" for alert in evidence.alerts)
    return not told and not users_failed(seen, evidence) > FAILS  # nan is no failure


def kinds_of_metric(seen: Seen, evidence: Evidence) -> float:
    """How many different metrics are measured of services."""
    return len({name for known in evidence.measures.values() for name in known})


def _users(seen: Seen, evidence: Evidence) -> list[Measure]:
    """What users feel; where nobody measured it, what the services feel that they call."""
    told = [row for row in seen.openings[0].measures or () if row.service == USERS]
    edges = [seen.graph.names[at] for at in seen.graph.edges]
    alerted = [alert.service for alert in evidence.alerts if alert.service in edges]
    return told or [row for name in alerted or edges for row in evidence.measured(name)]


def users_slowed(seen: Seen, evidence: Evidence) -> float:
    """Latency of users, in times the usual; the farthest lately, of the first latency known."""
    for name in LATENCIES:
        found = [
            value / row.usual
            for row in _users(seen, evidence)
            if row.name == name and row.usual and (value := farthest(row)) is not None
        ]
        if found:
            return max(found)
    return nan


def users_failed(seen: Seen, evidence: Evidence) -> float:
    """Per cent of users' requests that fail beyond the usual; the most lately."""
    found = [
        (row.usual or 0.0) - min(known)
        for row in _users(seen, evidence)
        if row.name in SUCCESSES and (known := lately(row))
    ]
    return max(found, default=nan)


def bystanders(seen: Seen, evidence: Evidence) -> float:
    """Services more than `LOUD` sigmas off that neither are the root nor wait for it."""
    above, reached = {seen.root}, [seen.root]
    for name in reached:  # it grows meanwhile
        new = [one for one in seen.graph.callers[name] if one not in above]
        above.update(new)
        reached += new
    return sum(evidence.surprise(name) > LOUD for name in seen.graph.names if name not in above)


def band(seen: Seen, evidence: Evidence) -> float:
    """Half the width of the band of nine of ten usual values of a p95, in its usual; the median
    over services.
    """
    found = [
        (row.high - row.low) / 2.0 / row.usual
        for name in seen.graph.names
        for row in evidence.measured(name, "p95")
        if row.usual and row.low is not None and row.high is not None
    ]
    return float(np.median(found)) if found else nan


def missing(seen: Seen, evidence: Evidence) -> float:
    """Share of the samples of latencies that are missing; of a table, of its rows."""
    shown = [
        one
        for name in seen.graph.names
        for row in evidence.measured(name, *LATENCIES)
        for one in row.values
    ]
    if any(observation.measures for observation in seen.openings):
        return float(np.mean([one is None for one in shown]))
    return 1.0 - len(seen.openings[0].metrics or ()) / len(seen.graph.names)


def root_alerted(seen: Seen, evidence: Evidence) -> float:
    """Whether there is an alert on the root."""
    return seen.root in {alert.service for alert in seen.openings[0].alerts or ()}


def lines_per_minute(seen: Seen, evidence: Evidence) -> float:
    """Log lines of all services a minute; nan where nobody kept them."""
    if evidence.counts:
        return sum(row.lines for row in evidence.counts)
    lines = seen.openings[0].lines
    return nan if lines is None else len(lines) / MINUTES_OF_BATCH


def naming_another(seen: Seen, evidence: Evidence) -> float:
    """Share of the error and warning lines, of the root and its callers, that name another service;
    nan without such a line.
    """
    found = []
    for observation in (*seen.openings, seen.own, *seen.around):
        for line in observation.lines or ():
            if line.startswith(COMPLAINS):
                _, own, *rest = line.split(None, 2)
                others = [name for name in seen.graph.names if name != own]
                found.append(any(name in " ".join(rest) for name in others))
    return float(np.mean(found)) if found else nan


def root_tells(seen: Seen, evidence: Evidence) -> float:
    """Whether the root logs more errors than usual: by its counts, or in what it answers where
    there are none; nan without logs.
    """
    counted = [row for row in evidence.counts if row.service == seen.root]
    if counted:
        return counted[0].errors > (counted[0].usual_errors or 0.0)
    if seen.own.lines is None:
        return nan
    readings = [read_line(line)[1] for line in seen.own.lines]
    return any(
        line.startswith("ERROR") or reading.kind in ("proof", "hint", "own")
        for line, reading in zip(seen.own.lines, readings, strict=True)
    )


# Name to how it is counted of an incident, what it means, and how those of all incidents are put
# together.
STATISTICS: dict[str, tuple[Callable[[Seen, Evidence], float], str, str]] = {
    "services": (services, "services", "median"),
    "longest_path": (longest_path, "services on the longest path", "median"),
    "shared": (shared, "called services with more than one caller", "median"),
    "on_the_wire": (on_the_wire, "only the callers' waiting shows", "share"),
    "without_errors": (without_errors, "slow without errors", "share"),
    "kinds_of_metric": (kinds_of_metric, "different metrics of services", "median"),
    "users_slowed": (users_slowed, "latency of users, times the usual", "quartiles"),
    "users_failed": (users_failed, "failed requests of users, %", "quartiles"),
    "bystanders": (bystanders, f"bystanders over {LOUD:.0f} sigma", "most"),
    "band": (band, "half width of a p95's usual band, of its usual", "median"),
    "missing": (missing, "missing samples", "mean"),
    "root_alerted": (root_alerted, "an alert on the root", "share"),
    "lines_per_minute": (lines_per_minute, "log lines a minute", "median"),
    "naming_another": (naming_another, "error lines that name another service", "mean"),
    "root_tells": (root_tells, "the root logs new errors", "share"),
}


def realism_frame(
    incidents: int = 100, sources: Sequence[str] = SOURCES, tasks: Sequence[str] = tuple(TASKS)
) -> pd.DataFrame:
    """The statistics of every real case, and of simulated incidents of `test` without false alarms.

    Returns:
        A row an incident: `where` (source or task), `index`, and a column each of `STATISTICS`.
    """
    shown: list[tuple[str, int, Seen | None]] = []
    for source in sources:
        cases = range(len(load_source(source).cases))
        shown += [(source, index, seen_real(source, index)) for index in cases]
    for task in tasks:
        shown += [(task, index, seen_simulated(task, index)) for index in range(incidents)]
    rows = [
        {"where": where, "index": index, **statistics(seen)}
        for where, index, seen in shown
        if seen is not None
    ]
    return pd.DataFrame(rows)


def realism_table(frame: pd.DataFrame) -> pd.DataFrame:
    """`realism_frame` for reading: a row a statistic in words, a column a source or task. Medians,
    shares of the incidents or means; `-` where nothing is known.
    """
    columns = {
        where: [summarised(part[name], how) for name, (_, _, how) in STATISTICS.items()]
        for where, part in frame.groupby("where", sort=False)
    }
    index = pd.Index([words for _, words, _ in STATISTICS.values()], name="statistic")
    return pd.DataFrame(columns, index=index)


def summarised(values: pd.Series, how: str) -> str:
    """The values of a statistic in words: `median`, `mean`, `share` (of how many), `quartiles`
    (median and quartiles) or `most` (median and highest).
    """
    known = values.dropna()
    if known.empty:
        return "-"
    middle = number(known.median())
    if how == "mean":
        return f"{known.mean():.2f}"
    if how == "share":
        return f"{int(known.sum())} of {len(known)}"
    if how == "quartiles":
        low, high = known.quantile([0.25, 0.75])
        return f"{middle} ({number(low)} to {number(high)})"
    return f"{middle} ({number(known.max())})" if how == "most" else middle
