"""Policies for `production`: ranking rules, and the learned ranker.

Each asks about all services once, blames one, and tells how the fault reached the users
(`path_to_users`).
"""

from collections.abc import Callable
from pathlib import Path

from logtriage.play.actions import ALL_SERVICES, Action
from logtriage.play.episode import BaseEpisode
from logtriage.play.observation import Measure
from logtriage.policies.policy import Policy

from ..real.evidence import LATENCIES, SUCCESSES, Evidence, gather, recent
from ..real.real_episode import TOP
from ..real.rules import RULES, Rule, random_ranking, ranked
from .features import arrays_of_evidence
from .production_episode import PRODUCTION, path_to_users
from .randomisation import FAILURES

RANKER = "ranker"
ASK_ALL = Action("request_more_logs", (ALL_SERVICES,))


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


class RankingPolicy(Policy):
    """A rule as a policy: it asks about all services once, and blames the first three, or in
    `production` the first and the path of its fault.
    """

    def __init__(self, rule: Rule, name: str) -> None:
        self.rule, self.name = rule, name

    def open(self, episode: BaseEpisode) -> None:
        self._episode = episode
        self._queue = [ASK_ALL]

    def act(self) -> Action:
        if not self._queue:
            seen = [self._episode.opening, *(step.observation for step in self._episode.history)]
            self._queue = self.answer(gather(self._episode.incident.topology, seen))
        return self._queue.pop(0)

    def answer(self, evidence: Evidence) -> list[Action]:
        """The actions that follow its question."""
        blamed = self.blamed(evidence, self.rule(evidence))
        return [*(Action("identify_root_cause", (name,)) for name in blamed), Action("resolve")]

    def blamed(self, evidence: Evidence, ranking: list[str]) -> list[str]:
        """The services it blames, in order."""
        if self._episode.incident.task_name != PRODUCTION:
            return ranking[:TOP]
        callers = evidence.graph.callers.__getitem__
        return path_to_users(ranking[0], callers, lambda name: hurt(evidence, name))


class RankerPolicy(RankingPolicy):
    """The learned ranker: it blames the likeliest root, remedies its likeliest fault, or says that
    nothing is wrong. `path` is that of its weights; None for those that ship.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(lambda evidence: [], RANKER)
        self._path = path

    def answer(self, evidence: Evidence) -> list[Action]:
        """Blame the likeliest root and its path, and do what the likeliest kind of fault needs."""
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


def _rule_policy(name: str) -> Callable[[int], Policy]:
    return lambda seed: RankingPolicy(RULES[name], name)


PRODUCTION_POLICIES: dict[str, Callable[[int], Policy]] = {
    "random_ranking": lambda seed: RankingPolicy(random_ranking(seed), "random_ranking"),
    **{name: _rule_policy(name) for name in RULES},
    RANKER: lambda seed: RankerPolicy(),
}
