"""Any rule of `rules` as a policy: it asks about all services once, ranks them, and blames the
first three in order.
"""

from __future__ import annotations

from ..ceiling.grounding import gather
from ..play.actions import ALL_SERVICES, Action
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..policies.scripted import Policy
from ..world.call_graph import CallGraph
from .real_episode import TOP
from .rules import RULES, Rule, random_ranking


class RankingPolicy(Policy):
    """A rule as a policy. It says nothing of severity, team or remedy.

    Args:
        rule: from what was seen to all services, the most suspect first.
        name: shown in results.

    Attributes:
        ranking: that of the last episode; empty before its question is answered.
    """

    def __init__(self, rule: Rule, name: str) -> None:
        self.rule, self.name = rule, name
        self.ranking: list[str] = []

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._queue = [Action("request_more_logs", (ALL_SERVICES,))]
        self.ranking = []

    def act(self) -> Action:
        if not self._queue:
            seen = [self._episode.opening, *(step.observation for step in self._episode.history)]
            self.ranking = self.rule(gather(self._episode.incident.topology, seen))
            blamed = [Action("identify_root_cause", (one,)) for one in self.ranking[:TOP]]
            self._queue = [*blamed, Action("resolve")]
        return self._queue.pop(0)

    def _open(self, episode: BaseEpisode) -> None:
        self._episode = episode
        super()._open(episode)


def ranking_policy(name: str, seed: int = 0) -> RankingPolicy:
    """The policy of a rule of `RULES`, or `random_ranking` with draws from `seed`; `ValueError` for
    an unknown name.
    """
    if name == "random_ranking":
        return RankingPolicy(random_ranking(seed), name)
    if name not in RULES:
        raise ValueError(
            f"unknown rule {name!r:.60}; choose one of {', '.join(['random_ranking', *RULES])}"
        )
    return RankingPolicy(RULES[name], name)
