"""The practical ceiling: a policy that knows the simulator, though not the draw, and plays for
expected score.

It holds a `Belief` over every hypothesis. Before each step it weighs the best set of answers it
could give now against asking one more service, by the expected score of the best answers
afterwards, less the step that asking costs. It looks one question ahead and never asks all services
at once, so what it earns is a lower bound of the ceiling.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product
from math import factorial
from typing import NamedTuple

import numpy as np

from ..play.episode import Episode, Observation
from ..play.rewards import FALSE_PAGE_COST, FRUITLESS_COST, WEIGHTS
from ..world.faults import FAULTS
from ..world.reading import Reading
from ..world.tasks import PAR_STEPS, SEVERITIES, TASKS, Task, check_task
from ..world.telemetry import DETAIL_LINES
from ..world.topology import DEFAULT_TOPOLOGY, TEAMS, Topology
from .posterior import Belief
from .prior import Prior, cached_prior
from .scripted import Action, Policy

SUSPECTS = 3  # likeliest roots, and likeliest fixes, among which answers are combined
CLASSES = 40  # likeliest outcomes that the value of a question is computed over
WORTHWHILE = 1e-3  # gain in score below which a question is not worth its noise
NONE = -1


class Outcomes(NamedTuple):
    """What decides the score, one entry an outcome: root position (-1: none), remedy, team,
    severity, probability.
    """

    root: np.ndarray
    remedy: np.ndarray  # index into the remedies of `rewards`, by name below
    team: np.ndarray
    severity: np.ndarray
    chance: np.ndarray


class Answers(NamedTuple):
    """One complete way to close an episode; NONE where it says nothing. `ignore` closes by
    ignoring.
    """

    severity: int
    blame: int
    fix: tuple[int, str] | None  # position, remedy
    team: int
    ignore: bool = False


def answer_actions(
    answers: Answers, topology: Topology, confidence: float | None = None
) -> list[Action]:
    """The steps that give these answers."""
    actions: list[Action] = [("classify_severity", SEVERITIES[answers.severity])]
    if answers.ignore:
        return [*actions, ("ignore", "", confidence)]
    if answers.blame != NONE:
        actions.append(("identify_root_cause", topology.names[answers.blame], confidence))
    if answers.fix is not None:
        actions.append(("remediate", f"{answers.fix[1]}:{topology.names[answers.fix[0]]}"))
    if answers.team != NONE:
        actions.append(("escalate", TEAMS[answers.team]))
    return [*actions, ("resolve", "")]


def score_table(options: list[Answers], outcomes: Outcomes, task: Task, asked: int) -> np.ndarray:
    """Score of every option under every outcome, (options, outcomes), after `asked` questions. As
    `rewards` has it.
    """
    table = np.empty((len(options), len(outcomes.root)))
    fault, outage = outcomes.root >= 0, outcomes.severity == 0
    for row, option in enumerate(options):
        steps = (
            asked
            + 2
            + (not option.ignore)
            * ((option.blame >= 0) + (option.fix is not None) + (option.team >= 0))
        )
        speed = {
            faults: WEIGHTS["speed"]
            * (1.0 - min(1.0, max(0, steps - par) / (task.max_steps - par)))
            for faults, par in ((0, PAR_STEPS[0]), (1, PAR_STEPS[1]))
        }
        points = WEIGHTS["severity"] * (outcomes.severity == option.severity)
        if option.ignore:
            rest = WEIGHTS["root_cause"] + WEIGHTS["remediation"] + WEIGHTS["escalation"] + speed[0]
            table[row] = np.where(fault, ~outage * points, points + rest)
            continue
        blamed = fault & (outcomes.root == option.blame)
        points = points + WEIGHTS["root_cause"] * blamed
        if option.fix is not None:
            there = outcomes.root == option.fix[0]
            right = there & (outcomes.remedy == option.fix[1])
            points = points + (WEIGHTS["remediation"] + speed[1]) * right - FRUITLESS_COST * ~right
        right_team = fault & (outcomes.team == option.team)
        points = points + WEIGHTS["escalation"] * right_team
        if option.team != NONE:
            points = points - FALSE_PAGE_COST * ~fault
            wrong_team = ~right_team
        else:
            wrong_team = outcomes.severity < 2
        table[row] = np.where(blamed & wrong_team, 0.0, np.clip(points, 0.0, 1.0))
    return table


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


class BeliefPolicy(Policy):
    """Exact enumeration, Bayes, and one step of lookahead. Knows the generator of the split, not
    the incident.
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
        if split != "unseen_topology" and not settings.services:
            cached_prior(DEFAULT_TOPOLOGY, settings, split)

    def _open(self, episode: Episode) -> None:
        self._task, self._split = episode.incident.task, episode.incident.split
        super()._open(episode)

    def begin(self, topology: Topology, observation: Observation) -> None:
        # A random call graph never comes again.
        comes_again = self._split != "unseen_topology" and not self._task.services
        prior = (cached_prior if comes_again else Prior)(topology, self._task, self._split)
        self.belief, self.topology, self.task = Belief(prior), topology, self._task
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
        prior, alive = self.belief.prior, self.belief.alive
        root, fault, severity = prior.position[alive], prior.fault[alive], prior.severity[alive]
        label = np.where(root < 0, -1, (root * len(prior.faults) + fault) * 3 + severity)
        labels, of = np.unique(label, return_inverse=True)
        chance = np.bincount(of, self.belief.weight.sum(1))
        best = np.sort(np.argsort(-chance, kind="stable")[:CLASSES])
        place = np.full(len(labels), -1)
        place[best] = np.arange(len(best))
        labels = labels[best]
        remedies, teams = [], []
        for one in labels:
            if one < 0:
                remedies.append("")
                teams.append(NONE)
                continue
            what, where = (
                prior.faults[one // 3 % len(prior.faults)],
                self.topology.services[one // 3 // len(prior.faults)],
            )
            remedies.append(what.remedy)
            teams.append(TEAMS.index(what.owner_at(where)))
        roots = np.where(labels < 0, NONE, labels // 3 // len(prior.faults))
        severities = np.where(labels < 0, 2, labels % 3)
        return Outcomes(
            roots,
            np.array(remedies),
            np.array(teams),
            severities,
            chance[best] / chance[best].sum(),
        ), place[of]

    def _options(self, outcomes: Outcomes) -> list[Answers]:
        """The sets of answers worth considering: likely roots, fixes and teams in every
        combination, and ignoring.
        """
        severity = int(np.bincount(outcomes.severity, outcomes.chance, minlength=3).argmax())
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
        return [*options, Answers(2, NONE, None, NONE, ignore=True)]

    def _answers(self) -> list[Action]:
        outcomes, _ = self._outcomes()
        options = self._options(outcomes)
        best = options[
            int((score_table(options, outcomes, self.task, self._step) @ outcomes.chance).argmax())
        ]
        roots = self.belief.roots()
        return answer_actions(
            best, self.topology, float(min(1.0, roots[-1] if best.ignore else roots[best.blame]))
        )

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
        """Whether asking `at` can matter: it may be the root, it may call one, or it is what users
        touch.
        """
        roots = self.belief.roots()
        return (
            self.topology.services[at].is_edge or max(roots[[at, *self.topology.below[at]]]) > 0.005
        )

    def _value(self, at: int, later: np.ndarray, outcomes: Outcomes, place: np.ndarray) -> float:
        """Expected score of the best answers after the lines that `at` would show at the next step."""
        belief, step = self.belief, self._step + 1
        known = place >= 0
        mass = belief.weight.sum(1)
        readings = [
            Reading("proof", fault.name)
            for fault in belief.prior.faults
            if fault.can_strike(self.topology.services[at])
        ]
        readings += [
            Reading("hint", remedy)
            for remedy in dict.fromkeys(FAULTS[r.subject].remedy for r in readings)
        ]
        readings += [
            Reading("callee", self.topology.names[other]) for other in self.topology.below[at]
        ]
        readings += [Reading("own")]
        chances = np.stack(
            [belief.says(at, [reading], step) for reading in readings]
        )  # (readings, alive)
        chances = np.stack(
            [
                np.bincount(place[known], (row * mass)[known], minlength=len(outcomes.root))
                for row in chances
            ]
        )
        chances /= np.maximum(
            np.bincount(place[known], mass[known], minlength=len(outcomes.root)), 1e-300
        )
        chances = chances[chances.max(1) > 0.0]
        chances = np.vstack(
            [chances, np.maximum(0.0, 1.0 - chances.sum(0))]
        )  # the rest tells nothing apart
        draws, orders = _handfuls(len(chances), DETAIL_LINES)
        seen = orders[:, None] * chances[draws].prod(1)  # (draws, outcomes)
        return float((later @ (seen * outcomes.chance).T).max(0).sum())

    def _severity_gain(self, at: int, outcomes: Outcomes, place: np.ndarray) -> float:
        """What the row of metrics that comes with the answer is worth for telling the severity."""
        belief, step = self.belief, self._step + 1
        severity, mass = belief.prior.severity[belief.alive], belief.weight.sum(1)
        errors, latency = (
            belief.states("errors", step)[:, at],
            belief.states("latency", step)[:, at],
        )
        usual = self.topology.network.rest_latency[at]
        bins = np.searchsorted((0.001, 0.01, 0.03, 0.05, 0.1, 0.3), errors) * 4 + np.searchsorted(
            (1.15, 1.4, 2.0), latency / usual
        )
        table = np.bincount(bins * 3 + severity, mass, minlength=84).reshape(-1, 3)
        return WEIGHTS["severity"] * float(table.max(1).sum() - table.sum(0).max())
