"""Who plays `production`: ranking rules, the learned ranker, and the ceiling.

All ask about all services once, blame one, and tell how the fault reached the users (`way_up`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..play.actions import Action
from ..play.episode import BaseEpisode
from ..policies.policy import Policy
from ..real.observed import LATENCIES, SUCCESSES, Evidence, Measure, recent
from ..real.rules import RULES, RankingPolicy, Rule, random_ranking, ranked
from .dials import FAILURES
from .exact_posterior import posterior
from .features import arrays_of_evidence
from .mesh import BLOCK
from .production_episode import PRODUCTION, block_of, names_of, way_up

CEILING, RANKER = "ceiling", "ranker"


def hurt(evidence: Evidence, service: str) -> float:
    """By how much a service is slower than usual, and the share of requests that newly fail."""
    times = [one for one in evidence.measured(service, *LATENCIES) if one.usual]
    rest = evidence.measured(service, *SUCCESSES)
    slower = max((_mean(one) / (one.usual or 1.0) - 1.0 for one in times), default=0.0)
    failing = max((((one.usual or 0.0) - _mean(one)) / 100.0 for one in rest), default=0.0)
    return min(slower, 10.0) + failing


def _mean(measure: Measure) -> float:
    known = recent(measure)
    return sum(known) / len(known) if known else measure.usual or 0.0


class PathPolicy(RankingPolicy):
    """A rule that, in `production`, tells the path in the place of its next guesses."""

    def blamed(self, evidence: Evidence, ranking: list[str]) -> list[str]:
        if self._episode.incident.task_name == PRODUCTION:
            callers = evidence.graph.callers.__getitem__
            return way_up(ranking[0], callers, lambda name: hurt(evidence, name))
        return super().blamed(evidence, ranking)


def path_policy(name: str, seed: int = 0) -> PathPolicy:
    """The policy of a rule of `real.rules`, or of `random_ranking` with draws from `seed`."""
    rules: dict[str, Rule] = {"random_ranking": random_ranking(seed), **RULES}
    return PathPolicy(rules[name], name)


class ChancePolicy(PathPolicy):
    """Blames the likeliest root, remedies its likeliest fault, or says that nothing is wrong.

    A subclass says how likely each is; one that reads the incident alone needs no truth.
    """

    def __init__(self) -> None:
        super().__init__(lambda evidence: [], self.name)

    def chances(self, episode: BaseEpisode, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """Of each service of the call graph, in its order, and last of no fault, [N + 1]; of each
        kind of fault if it is that service, [N, kind].
        """
        raise NotImplementedError

    def answer(self, evidence: Evidence) -> list[Action]:
        chance, kinds = self.chances(self._episode, evidence)
        names = evidence.graph.names
        if self._episode.incident.task_name == PRODUCTION and chance.argmax() == len(names):
            return [Action("ignore", (), float(chance[-1]))]
        ranking = ranked(evidence.graph, dict(zip(names, chance[:-1].tolist(), strict=True)))
        root, *others = self.blamed(evidence, ranking)
        at = names.index(root)
        fault = FAILURES[int(kinds[at].argmax())]
        return [
            Action("identify_root_cause", (root,), float(chance[at])),
            *(Action("identify_root_cause", (one,)) for one in others),
            Action("remediate", (fault.remedy, root)),
            Action("escalate", (fault.team,)),
            Action("resolve"),
        ]


class CeilingPolicy(ChancePolicy):
    """The posterior of one who knows the constants of the cluster; `production` alone."""

    name = CEILING

    def chances(self, episode: BaseEpisode, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        incident = episode.incident
        if incident.task_name != PRODUCTION:
            raise ValueError(f"{CEILING} knows the clusters of {PRODUCTION} alone; play that task")
        block, at = block_of(incident.split, incident.index // BLOCK), incident.index % BLOCK
        of_kind, nothing = posterior(block, at)
        names = names_of(incident.split, incident.index)
        order = [names.index(name) for name in evidence.graph.names]
        return np.append(of_kind.sum(1)[order], nothing), of_kind[order]


class RankerPolicy(ChancePolicy):
    """The network that has learned from `production` alone."""

    name = RANKER

    def __init__(self, ranker: Any = None) -> None:
        super().__init__()
        self._ranker = ranker

    def chances(self, episode: BaseEpisode, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        from .ranker import chances, load_ranker

        self._ranker = self._ranker or load_ranker()
        chance, kinds = chances(self._ranker, arrays_of_evidence(evidence))
        return chance[0], kinds[0]


PRODUCTION_POLICIES: dict[str, Callable[[int], Policy]] = {
    **{name: partial(path_policy, name) for name in ("random_ranking", *RULES)},
    RANKER: lambda seed: RankerPolicy(),
    CEILING: lambda seed: CeilingPolicy(),
}
