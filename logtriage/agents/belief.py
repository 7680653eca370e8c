"""The practical ceiling: a policy that knows the simulator, though not the draw, and plays for
expected score.

It holds a `Posterior` over every hypothesis. Before each step it weighs the best set of answers it
could give now against asking one more service, by the expected score of the best answers
afterwards, less the step that asking costs. It looks one question ahead and never asks all services
at once, so what it earns is a lower bound of the ceiling.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product
from math import factorial

import numpy as np

from ..play.episode import Observation, PlayableEpisode
from ..play.rewards import WEIGHTS
from ..world.reading import Reading
from ..world.tasks import PAR_STEPS, SEVERITIES, TASKS, Task, check_task
from ..world.telemetry import DETAIL_LINES
from ..world.topology import DEFAULT_TOPOLOGY, TEAMS, Topology
from .outcomes import NONE, Answers, Outcomes, answer_actions, score_table
from .posterior import Posterior
from .prior import Prior, cached_prior
from .scripted import Action, Policy

SUSPECTS = 3  # likeliest roots, and likeliest fixes, among which answers are combined
CLASSES = 40  # likeliest outcomes that the value of a question is computed over
WORTHWHILE = 1e-3  # gain in score below which a question is not worth its noise
RELEVANT = 0.005  # probability from which a root is reason to ask at it, or at who calls it
# Where a row of metrics tells severities apart: shares of failed requests, and slowdowns.
ERROR_STEPS = (0.001, 0.01, 0.03, 0.05, 0.1, 0.3)
SLOWDOWN_STEPS = (1.15, 1.4, 2.0)


@cache
def _handfuls(kinds: int, lines: int) -> tuple[np.ndarray, np.ndarray]:
    """Every unordered draw of `lines` from `kinds`: indices (draws, lines), and how many orders
    each has.
    """
    draws = list(combinations_with_replacement(range(kinds), lines))
    orders = [
        factorial(lines) / np.prod([factorial(draw.count(k)) for k in set(draw)]) for draw in draws
    ]
    return np.array(draws), np.array(orders)


def _graph_comes_again(task: Task, split: str) -> bool:
    """Whether incidents share a call graph, whose prior is then worth keeping."""
    return split != "unseen_topology" and not task.services


class BeliefPolicy(Policy):
    """Exact enumeration, Bayes, and one step of lookahead.

    Knows the generator of the split, not the incident.
    """

    name = "belief"

    def __init__(self) -> None:
        self._task, self._split = TASKS["cascading_failure"], "train"

    def prepare(self, task: str | Task, split: str) -> None:
        settings = check_task(task)
        if settings.faults > 1:
            raise ValueError(
                f"belief enumerates single faults; play {settings.name} with another policy"
            )
        if _graph_comes_again(settings, split):
            cached_prior(DEFAULT_TOPOLOGY, settings, split)

    def _open(self, episode: PlayableEpisode) -> None:
        self._task, self._split = episode.incident.task, episode.incident.split
        super()._open(episode)

    def begin(self, topology: Topology, observation: Observation) -> None:
        make_prior = cached_prior if _graph_comes_again(self._task, self._split) else Prior
        prior = make_prior(topology, self._task, self._split)
        self.belief, self.topology, self.task = Posterior(prior), topology, self._task
        self._queue: list[Action] = []
        self._asked: str | None = None
        self.see(observation)

    def see(self, observation: Observation) -> None:
        self._step = observation.step
        if not self._queue:
            self.belief.see(observation, self._asked)

    def act(self) -> Action:
        if not self._queue:
            question = self._question()
            if question is not None:
                self._asked = question
                return "request_more_logs", question
            self._queue = self._answers()
        return self._queue.pop(0)

    def _outcomes(self) -> tuple[Outcomes, np.ndarray]:
        """The likeliest outcomes, and for each living hypothesis the index of its outcome (-1: too
        unlikely).
        """
        prior, alive, kinds = self.belief.prior, self.belief.alive, len(SEVERITIES)
        root, fault, severity = prior.position[alive], prior.fault[alive], prior.severity[alive]
        # One number for (root, fault, severity), and -1 for a false alarm.
        label = np.where(root < 0, -1, (root * len(prior.faults) + fault) * kinds + severity)
        labels, of = np.unique(label, return_inverse=True)
        chance = np.bincount(of, self.belief.weight.sum(1))
        best = np.sort(np.argsort(-chance, kind="stable")[:CLASSES])
        place = np.full(len(labels), -1)
        place[best] = np.arange(len(best))
        labels, chance = labels[best], chance[best]
        roots = np.where(labels < 0, NONE, labels // kinds // len(prior.faults))
        remedies, teams = [], []
        for at, one in zip(roots, labels, strict=True):
            if at == NONE:
                remedies.append("")
                teams.append(NONE)
            else:
                struck_by = prior.faults[one // kinds % len(prior.faults)]
                remedies.append(struck_by.remedy)
                teams.append(TEAMS.index(struck_by.owner_at(self.topology.services[at])))
        severities = np.where(labels < 0, SEVERITIES.index("P3"), labels % kinds)
        outcomes = Outcomes(
            roots, np.array(remedies), np.array(teams), severities, chance / chance.sum()
        )
        return outcomes, place[of]

    def _options(self, outcomes: Outcomes) -> list[Answers]:
        """The sets of answers worth considering: likely roots, fixes and teams in every
        combination, and ignoring.
        """
        severity = int(
            np.bincount(outcomes.severity, outcomes.chance, minlength=len(SEVERITIES)).argmax()
        )
        fault = outcomes.root >= 0
        roots = np.bincount(outcomes.root[fault], outcomes.chance[fault], minlength=1)
        fixes: dict[tuple[int, str], float] = {}
        for root, remedy, chance in zip(
            outcomes.root, outcomes.remedy, outcomes.chance, strict=True
        ):
            if root >= 0:
                fixes[int(root), str(remedy)] = fixes.get((int(root), str(remedy)), 0.0) + chance
        likely_roots = [
            int(at) for at in np.argsort(-roots, kind="stable")[:SUSPECTS] if roots[at] > 0.0
        ]
        likely_fixes = sorted(fixes, key=lambda fix: -fixes[fix])[:SUSPECTS]
        teams = sorted({int(team) for team in outcomes.team[fault]})
        combined = product([*likely_roots, NONE], [*likely_fixes, None], [*teams, NONE])
        options = [Answers(severity, blame, fix, team) for blame, fix, team in combined]
        return [*options, Answers(SEVERITIES.index("P3"), NONE, None, NONE, ignore=True)]

    def _answers(self) -> list[Action]:
        outcomes, _ = self._outcomes()
        options = self._options(outcomes)
        expected = score_table(options, outcomes, self.task, self._step) @ outcomes.chance
        best = options[int(expected.argmax())]
        roots = self.belief.roots()  # the last is "none", so blame NONE would read it, too
        confidence = roots[-1] if best.ignore else roots[best.blame]
        return answer_actions(best, self.topology, float(min(1.0, confidence)))

    def _question(self) -> str | None:
        """The service worth asking, by what its answer is expected to be worth; None when answering
        is better.
        """
        if self._step + 1 > self.task.max_steps - PAR_STEPS[1]:
            return None
        outcomes, place = self._outcomes()
        options = self._options(outcomes)
        now = (score_table(options, outcomes, self.task, self._step) @ outcomes.chance).max()
        later = score_table(options, outcomes, self.task, self._step + 1)
        gains = {
            name: self._value(at, later, outcomes, place)
            + self._severity_gain(at, outcomes, place)
            - now
            for at, name in enumerate(self.topology.names)
            if self._tells(at)
        }
        best = max(gains, key=gains.__getitem__, default=None)
        return best if best is not None and gains[best] > WORTHWHILE else None

    def _tells(self, at: int) -> bool:
        """Whether asking `at` can matter: it may be the root or call it, or users touch it."""
        roots = self.belief.roots()
        concerned = max(roots[[at, *self.topology.below[at]]])
        return self.topology.services[at].is_edge or concerned > RELEVANT

    def _readings_of(self, at: int) -> list[Reading]:
        """Everything that a line of `at` can say which bears on the outcome."""
        service = self.topology.services[at]
        proofs = [fault for fault in self.belief.prior.faults if fault.can_strike(service)]
        remedies = dict.fromkeys(fault.remedy for fault in proofs)
        return [
            *(Reading("proof", fault.name) for fault in proofs),
            *(Reading("hint", remedy) for remedy in remedies),
            *(Reading("callee", self.topology.names[other]) for other in self.topology.below[at]),
            Reading("own"),
        ]

    def _value(self, at: int, later: np.ndarray, outcomes: Outcomes, place: np.ndarray) -> float:
        """Expected score of the best answers after the lines that `at` would show next.

        Every handful of readings is gone through: how likely it is under each outcome, and what
        the best answers would then be worth.
        """
        belief, step = self.belief, self._step + 1
        known, count = place >= 0, len(outcomes.root)
        mass = belief.weight.sum(1)

        def by_outcome(values: np.ndarray) -> np.ndarray:
            return np.bincount(place[known], values[known], minlength=count)

        says = [belief.says(at, [reading], step) for reading in self._readings_of(at)]
        chances = np.stack([by_outcome(chance * mass) for chance in says])  # (readings, outcomes)
        chances /= np.maximum(by_outcome(mass), 1e-300)
        chances = chances[chances.max(1) > 0.0]
        # All other lines tell nothing apart, and stand together.
        chances = np.vstack([chances, np.maximum(0.0, 1.0 - chances.sum(0))])
        draws, orders = _handfuls(len(chances), DETAIL_LINES)
        seen = orders[:, None] * chances[draws].prod(1)  # (draws, outcomes)
        return float((later @ (seen * outcomes.chance).T).max(0).sum())

    def _severity_gain(self, at: int, outcomes: Outcomes, place: np.ndarray) -> float:
        """What the row of metrics that comes with the answer is worth for telling the severity."""
        belief, step = self.belief, self._step + 1
        severity, mass = belief.prior.severity[belief.alive], belief.weight.sum(1)
        errors, latency = (belief.states(name, step)[:, at] for name in ("errors", "latency"))
        slowdown = latency / self.topology.network.rest_latency[at]
        row = np.searchsorted(ERROR_STEPS, errors) * (len(SLOWDOWN_STEPS) + 1)
        row += np.searchsorted(SLOWDOWN_STEPS, slowdown)
        rows, severities = (len(ERROR_STEPS) + 1) * (len(SLOWDOWN_STEPS) + 1), len(SEVERITIES)
        cells = np.bincount(row * severities + severity, mass, minlength=rows * severities)
        table = cells.reshape(-1, severities)
        return WEIGHTS["severity"] * float(table.max(1).sum() - table.sum(0).max())
