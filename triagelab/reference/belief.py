"""The reference policy: it knows the simulator, but not which incident was drawn.

Before each step it compares the best answers it could give now with asking one more service first
(`Lookahead`). It rates answers by their score under each outcome (`score_table`), and a question by
the expected score of the best answers after it, given that it costs a step. It looks one question
ahead and never asks all services at once, so the best possible policy scores at least as much.

It is near-optimal: no policy scores more than `oracle`, which is told the truth, and that is little
more (docs/benchmark.md). How much of it is possible without knowing the answer is not known.
"""

from functools import cache
from itertools import combinations_with_replacement, product
from math import factorial
from typing import NamedTuple

import numpy as np

from logtriage.play.actions import Action
from logtriage.play.episode import BaseEpisode
from logtriage.play.observation import Observation
from logtriage.play.scoring import FALSE_PAGE_COST, FRUITLESS_COST, WEIGHTS
from logtriage.policies.scripted import Policy, answers
from logtriage.world.call_graph import TEAMS, CallGraph
from logtriage.world.tasks import PAR_STEPS, SEVERITIES, Task
from logtriage.world.telemetry import DETAIL_LINES
from logtriage.world.topology import DEFAULT_TOPOLOGY
from logtriage.world.wording import Reading

from .posterior import Posterior
from .prior import prior_of

NONE = -1  # no service, no team
WORTHWHILE = 1e-3  # gain in score below which a question is not worth asking
SUSPECTS = 3  # number of likeliest roots, and of likeliest fixes, that answers combine
CLASSES = 40  # number of likeliest outcomes used to compute the value of a question
RELEVANT = 0.005  # a service likelier than this to be the root is worth asking, as are its callers
P3 = SEVERITIES.index("P3")
# A row of metrics is sorted into cells with these bounds to tell severities apart: shares of failed
# requests, and slowdowns.
ERROR_STEPS = (0.001, 0.01, 0.03, 0.05, 0.1, 0.3)
SLOWDOWN_STEPS = (1.15, 1.4, 2.0)


class Outcomes(NamedTuple):
    """What determines the score: arrays with one entry per outcome, (N,)."""

    root: np.ndarray  # position; NONE for a false alarm
    remedy: np.ndarray  # by name; empty for a false alarm
    team: np.ndarray  # index into TEAMS; NONE for a false alarm
    severity: np.ndarray  # index into SEVERITIES
    chance: np.ndarray  # probability


class Answers(NamedTuple):
    """One complete way to close an episode; NONE where it gives no answer."""

    severity: int  # index into SEVERITIES
    blame: int  # position
    fix: tuple[int, str] | None  # position, remedy
    team: int  # index into TEAMS
    ignore: bool = False  # close by ignoring


def answer_actions(
    given: Answers, topology: CallGraph, confidence: float | None = None
) -> list[Action]:
    """Return the actions that give these answers."""
    severity, names = SEVERITIES[given.severity], topology.names
    if given.ignore:
        ignore = Action("ignore", confidence=confidence)
        return [Action("classify_severity", (severity,)), ignore]
    blamed = None if given.blame == NONE else names[given.blame]
    fix = None if given.fix is None else (given.fix[1], names[given.fix[0]])
    team = None if given.team == NONE else TEAMS[given.team]
    return answers(severity, blamed, fix, team, confidence)


def score_table(options: list[Answers], outcomes: Outcomes, task: Task, asked: int) -> np.ndarray:
    """`scoring.score` of every option under every outcome after `asked` questions, (options, N)."""
    return np.stack([_scores(option, outcomes, task, asked) for option in options])


def _scores(option: Answers, outcomes: Outcomes, task: Task, asked: int) -> np.ndarray:
    """The score of these answers under each outcome, as `play.scoring` would give it."""
    fault = outcomes.root >= 0
    steps = asked + 2  # the severity, and closing the incident
    points = WEIGHTS["severity"] * (outcomes.severity == option.severity)
    if option.ignore:
        rest = WEIGHTS["root_cause"] + WEIGHTS["remediation"] + WEIGHTS["escalation"]
        return np.where(fault, 0.0, points + (rest + _speed(steps, 0, task)))
    steps += (option.blame >= 0) + (option.fix is not None) + (option.team >= 0)
    blamed = fault & (outcomes.root == option.blame)
    points = points + WEIGHTS["root_cause"] * blamed
    if option.fix is not None:
        position, remedy = option.fix
        right = (outcomes.root == position) & (outcomes.remedy == remedy)
        points = points + (WEIGHTS["remediation"] + _speed(steps, 1, task)) * right
        points = points - FRUITLESS_COST * ~right
    right_team = fault & (outcomes.team == option.team)
    points = points + WEIGHTS["escalation"] * right_team
    if option.team != NONE:
        points = points - FALSE_PAGE_COST * ~fault
        wrong_team = ~right_team
    else:
        wrong_team = outcomes.severity < P3
    return np.where(blamed & wrong_team, 0.0, np.clip(points, 0.0, 1.0))


def _speed(steps: int, faults: int, task: Task) -> float:
    par = PAR_STEPS[faults]
    return WEIGHTS["speed"] * (1.0 - min(1.0, max(0, steps - par) / (task.max_steps - par)))


@cache
def _multisets(kinds: int, lines: int) -> tuple[np.ndarray, np.ndarray]:
    """Multisets of `lines` draws from `kinds`, (multisets, lines), and how many orders each has."""
    draws = list(combinations_with_replacement(range(kinds), lines))
    orders = [
        factorial(lines) / np.prod([factorial(draw.count(k)) for k in set(draw)]) for draw in draws
    ]
    return np.array(draws), np.array(orders)


class Lookahead:
    """The scores that an agent can expect from its posterior now, if it has answered nothing."""

    def __init__(self, belief: Posterior, step: int) -> None:
        self.belief, self.step = belief, step
        self.topology, self.task = belief.topology, belief.task
        self._outcomes, self._outcome_of = self._likeliest_outcomes()
        self._options = self._make_options()

    def best_answers(self) -> Answers:
        """Return the set of answers with the highest expected score now."""
        return self._options[int(self._expected_now().argmax())]

    def gains(self) -> dict[str, float]:
        """Map each service to the expected gain in score from asking it before answering. Services
        whose answer cannot matter are left out; all are if too few steps are left.
        """
        if self.step + 1 > self.task.max_steps - PAR_STEPS[1]:
            return {}
        now = self._expected_now().max()
        later = score_table(self._options, self._outcomes, self.task, self.step + 1)
        return {
            name: self._value(at, later) + self._severity_gain(at) - now
            for at, name in enumerate(self.topology.names)
            if self._matters(at)
        }

    def _expected_now(self) -> np.ndarray:
        """Expected score of every option, (options,)."""
        table = score_table(self._options, self._outcomes, self.task, self.step)
        return table @ self._outcomes.chance

    def _likeliest_outcomes(self) -> tuple[Outcomes, np.ndarray]:
        """The likeliest outcomes, and each living hypothesis' index into them (-1: none), (H,)."""
        prior, alive, kinds = self.belief.prior, self.belief.alive, len(SEVERITIES)
        root, fault, severity = prior.position[alive], prior.fault[alive], prior.severity[alive]
        # One number for (root, fault, severity), and -1 for a false alarm.
        label = np.where(root < 0, -1, (root * len(prior.faults) + fault) * kinds + severity)
        labels, label_of = np.unique(label, return_inverse=True)
        chance = np.bincount(label_of, self.belief.weight.sum(1))
        best = np.sort(np.argsort(-chance, kind="stable")[:CLASSES])
        outcome_of = np.full(len(labels), -1)
        outcome_of[best] = np.arange(len(best))
        labels, chance = labels[best], chance[best]
        roots = np.where(labels < 0, NONE, labels // kinds // len(prior.faults))
        remedies, teams = [], []
        for at, label in zip(roots, labels, strict=True):
            struck = None if at == NONE else prior.faults[label // kinds % len(prior.faults)]
            remedies.append("" if struck is None else struck.remedy)
            owner = None if struck is None else struck.owner_at(self.topology.services[at])
            teams.append(NONE if owner is None else TEAMS.index(owner))
        severities = np.where(labels < 0, P3, labels % kinds)
        answers = (roots, np.array(remedies), np.array(teams), severities)
        return Outcomes(*answers, chance / chance.sum()), outcome_of[label_of]

    def _make_options(self) -> list[Answers]:
        """The sets of answers to choose from: all combinations of likely answers, and ignoring."""
        outcomes = self._outcomes
        severity = np.bincount(outcomes.severity, outcomes.chance, minlength=len(SEVERITIES))
        fault = outcomes.root >= 0
        roots = np.bincount(outcomes.root[fault], outcomes.chance[fault], minlength=1)
        order = np.argsort(-roots, kind="stable")[:SUSPECTS]
        likely_roots = [int(at) for at in order if roots[at] > 0.0]
        fixes: dict[tuple[int, str], float] = {}
        for root, remedy, _, _, chance in zip(*outcomes, strict=True):
            if root >= 0:
                fixes[int(root), str(remedy)] = fixes.get((int(root), str(remedy)), 0.0) + chance
        likely_fixes = sorted(fixes, key=lambda fix: -fixes[fix])[:SUSPECTS]
        teams = sorted({int(team) for team in outcomes.team[fault]})
        combined = product([*likely_roots, NONE], [*likely_fixes, None], [*teams, NONE])
        options = [Answers(int(severity.argmax()), *answers) for answers in combined]
        return [*options, Answers(P3, NONE, None, NONE, ignore=True)]

    def _matters(self, at: int) -> bool:
        """Whether asking `at` can matter: it may be the root, may call the root, or is an edge."""
        roots = self.belief.roots()
        concerned = max(roots[[at, *self.topology.below[at]]])
        return self.topology.services[at].kind == "edge" or concerned > RELEVANT

    def _readings_of(self, at: int) -> list[Reading]:
        """All readings of a line of `at` that bear on the outcome."""
        service = self.topology.services[at]
        faults = [fault for fault in self.belief.prior.faults if fault.can_occur_at(service)]
        remedies = dict.fromkeys(fault.remedy for fault in faults)
        return [
            *(Reading("proof", fault.name) for fault in faults),
            *(Reading("hint", remedy) for remedy in remedies),
            *(Reading("callee", self.topology.names[other]) for other in self.topology.below[at]),
            Reading("own"),
        ]

    def _value(self, at: int, later: np.ndarray) -> float:
        """Expected score after asking `at`; `later`: the score table then, (options, outcomes)."""
        belief, outcomes = self.belief, self._outcomes
        known, mass = self._outcome_of >= 0, belief.weight.sum(1)

        def by_outcome(values: np.ndarray) -> np.ndarray:
            return np.bincount(self._outcome_of[known], values[known], minlength=len(outcomes.root))

        readings = self._readings_of(at)
        lines = [belief.line_chance(at, [reading], self.step + 1) for reading in readings]
        chances = np.stack([by_outcome(chance * mass) for chance in lines])  # (readings, outcomes)
        chances /= np.maximum(by_outcome(mass), 1e-300)
        chances = chances[chances.max(1) > 0.0]
        # All other lines say nothing about the outcome, and count as one reading.
        chances = np.vstack([chances, np.maximum(0.0, 1.0 - chances.sum(0))])
        draws, orders = _multisets(len(chances), DETAIL_LINES)
        seen = orders[:, None] * chances[draws].prod(1)  # (multisets, outcomes)
        return float((later @ (seen * outcomes.chance).T).max(0).sum())

    def _severity_gain(self, at: int) -> float:
        """How much the row of metrics in the answer adds to the expected score for severity."""
        belief, step = self.belief, self.step + 1
        severity, mass = belief.prior.severity[belief.alive], belief.weight.sum(1)
        errors, latency = (belief.states(name, step)[:, at] for name in ("errors", "latency"))
        slowdown = latency / self.topology.network.rest_latency[at]
        row = np.searchsorted(ERROR_STEPS, errors) * (len(SLOWDOWN_STEPS) + 1)
        row += np.searchsorted(SLOWDOWN_STEPS, slowdown)
        rows, severities = (len(ERROR_STEPS) + 1) * (len(SLOWDOWN_STEPS) + 1), len(SEVERITIES)
        cells = np.bincount(row * severities + severity, mass, minlength=rows * severities)
        table = cells.reshape(rows, severities)
        return WEIGHTS["severity"] * float(table.max(1).sum() - table.sum(0).max())


class BeliefPolicy(Policy):
    """Exact enumeration, Bayes' rule and one step of lookahead; it knows the split's generator."""

    name = "belief"

    def prepare(self, task: str | Task, split: str) -> None:
        if split != "unseen_topology":
            prior_of(DEFAULT_TOPOLOGY, self.simulated_task(task), split)

    def open(self, episode: BaseEpisode) -> None:
        incident = episode.incident
        self._belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
        super().open(episode)

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._topology = topology
        self.queue: list[Action] = []
        self._asked: str | None = None
        self.see(observation)

    def see(self, observation: Observation) -> None:
        self._step = observation.step
        if not self.queue:
            self._belief.see(observation, self._asked)

    def act(self) -> Action:
        """Ask the question that promises most, and answer when none is worth its step."""
        if not self.queue:
            lookahead = Lookahead(self._belief, self._step)
            gains = lookahead.gains()
            question = max(gains, key=gains.__getitem__, default="")
            if question and gains[question] > WORTHWHILE:
                self._asked = question
                return Action("request_more_logs", (question,))
            best, roots = lookahead.best_answers(), self._belief.roots()
            # The last entry of `roots` means no root; a `blame` of `NONE`, -1, reads it, too.
            confidence = roots[-1] if best.ignore else roots[best.blame]
            self.queue = answer_actions(best, self._topology, float(min(1.0, confidence)))
        return self.queue.pop(0)


def make_belief(seed: int) -> BeliefPolicy:
    """`belief` as `logtriage` finds it; it draws nothing at random, so no seed changes it."""
    return BeliefPolicy()
