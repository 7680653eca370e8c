"""Policies for `production`: ranking rules, and the learned ranker.

Each asks about all services once, blames one, and tells how the fault reached the users (`way_up`).
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from logtriage.play.actions import Action
from logtriage.play.observed import Measure
from logtriage.policies.policy import Policy

from ..real.evidence import LATENCIES, SUCCESSES, Evidence, recent
from ..real.rules import RULES, RankingPolicy, random_ranking, ranked
from .features import arrays_of_evidence
from .production_episode import PRODUCTION, way_up
from .randomisation import FAILURES

RANKER = "ranker"


def hurt(evidence: Evidence, service: str) -> float:
    """Return how much slower than usual a service is, plus the share of requests newly failing."""
    times = [row for row in evidence.measured(service, *LATENCIES) if row.usual]
    rest = evidence.measured(service, *SUCCESSES)
    slower = max((_mean(row) / (row.usual or 1.0) - 1.0 for row in times), default=0.0)
    failing = max((((row.usual or 0.0) - _mean(row)) / 100.0 for row in rest), default=0.0)
    return min(slower, 10.0) + failing


def _mean(measure: Measure) -> float:
    known = recent(measure)
    return sum(known) / len(known) if known else measure.usual or 0.0


class PathPolicy(RankingPolicy):
    """A rule that, in `production`, blames the path of the fault instead of its next guesses."""

    def blamed(self, evidence: Evidence, ranking: list[str]) -> list[str]:
        if self._episode.incident.task_name == PRODUCTION:
            callers = evidence.graph.callers.__getitem__
            return way_up(ranking[0], callers, lambda name: hurt(evidence, name))
        return super().blamed(evidence, ranking)


def rule_policy(name: str, seed: int = 0) -> PathPolicy:
    """Return the policy of a rule of `real.rules`; none is random, so `seed` is not used."""
    return PathPolicy(RULES[name], name)


class RankerPolicy(PathPolicy):
    """The learned ranker: it blames the likeliest root, remedies its likeliest fault, or says that
    nothing is wrong. `path` is that of its weights; None for those that ship.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(lambda evidence: [], RANKER)
        self._path = path

    def answer(self, evidence: Evidence) -> list[Action]:
        from .ranker import WEIGHTS, chances, load_ranker

        (chance,), (kinds,) = chances(
            load_ranker(self._path or WEIGHTS), arrays_of_evidence(evidence)
        )
        names = evidence.graph.names
        if self._episode.incident.task_name == PRODUCTION and chance.argmax() == len(names):
            return [Action("ignore", (), float(chance[-1]))]
        ranking = ranked(evidence.graph, dict(zip(names, chance[:-1].tolist(), strict=True)))
        root, *others = self.blamed(evidence, ranking)
        at = names.index(root)
        fault = FAILURES[int(kinds[at].argmax())]
        return [
            Action("identify_root_cause", (root,), float(chance[at])),
            *(Action("identify_root_cause", (name,)) for name in others),
            Action("remediate", (fault.remedy, root)),
            Action("escalate", (fault.team,)),
            Action("resolve"),
        ]


PRODUCTION_POLICIES: dict[str, Callable[[int], Policy]] = {
    "random_ranking": lambda seed: PathPolicy(random_ranking(seed), "random_ranking"),
    **{name: partial(rule_policy, name) for name in RULES},
    RANKER: lambda seed: RankerPolicy(),
}
