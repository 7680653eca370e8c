"""What an episode is worth while it is played, to somebody who knows the simulator: the expected
score of the exact posterior agent (`agents.belief`), if it took over now.

It is privileged: no trainer of a real agent has the distributions of the real world. It never looks
at an incident's truth. It is what `Lookahead` says of an agent that has answered nothing yet, with
what has been answered taken as given and paid for:

- Who takes over may first ask one service, unless a service was blamed, a remedy applied or a team
  paged already.
  That is a lower bound: where several questions are needed, as in silent degradation, it is well
  below what the agent earns in the end.
- Hypotheses that are by far less likely than the likeliest are dropped (`UNLIKELY`), for speed.
- After a remedy the belief stands still: the hypotheses are of a world that nobody touched. Whether
  it was the right one shows at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ceiling.belief import prior_of
from ..ceiling.lookahead import RELEVANT, Lookahead
from ..ceiling.outcomes import NONE, Answers, Outcomes
from ..ceiling.posterior import Posterior
from ..play.actions import Action
from ..play.scoring import FALSE_PAGE_COST, FRUITLESS_COST, REPEAT_COST, WEIGHTS
from ..play.tools import MALFORMED_COST, ToolSession
from ..world.call_graph import TEAMS, CallGraph
from ..world.tasks import PAR_STEPS, SEVERITIES, Task
from .credit import calls_made

# Hypotheses below this share of the likeliest are dropped: a value changes by 0.005 on average, and
# takes two thirds of the time.
UNLIKELY = 1e-4


@dataclass(frozen=True)
class Given:
    """What has been answered so far; positions and indices as in `Answers`, in order."""

    severity: int = NONE
    blamed: tuple[int, ...] = ()
    fixes: tuple[tuple[int, str], ...] = ()
    teams: tuple[int, ...] = ()
    repeats: int = 0

    @property
    def committed(self) -> bool:
        """Whether more than the severity has been answered."""
        return bool(self.blamed or self.fixes or self.teams)

    def after(self, action: Action | None, topology: CallGraph) -> Given:
        """What has been answered once this was done, too."""
        if action is None:
            return self
        if action.type == "classify_severity":
            again = self.severity != NONE
            severity = self.severity if again else SEVERITIES.index(action.args[0])
            return replace(self, severity=severity, repeats=self.repeats + again)
        if action.type == "identify_root_cause":
            blamed = (*self.blamed, topology.position[action.args[0]])
            return replace(self, blamed=blamed, repeats=self.repeats + bool(self.blamed))
        if action.type == "remediate":
            remedy, service = action.args
            fixes = (*self.fixes, (topology.position[service], remedy))
            return replace(self, fixes=fixes, repeats=self.repeats + bool(self.fixes))
        if action.type == "escalate":
            teams = (*self.teams, TEAMS.index(action.args[0]))
            return replace(self, teams=teams, repeats=self.repeats + bool(self.teams))
        return self


class Takeover(Lookahead):
    """What can be expected after `step` steps by an agent that takes over from another.

    Args:
        belief, step: as in `Lookahead`.
        given: what the other has answered.
    """

    def __init__(self, belief: Posterior, step: int, given: Given) -> None:
        self.given = given
        super().__init__(belief, step)

    def value(self) -> float:
        """Expected score of the best way to go on: to answer now, or to ask one service first."""
        now = float(self._expected_now().max())
        if self.given.committed:
            return now
        return now + max([0.0, *self.gains().values()])

    def _worth_considering(self, outcomes: Outcomes) -> list[Answers]:
        """What `Lookahead` considers, as far as it has not been answered otherwise and there is
        time for.
        """
        given = self.given
        found: dict[Answers, None] = {}
        left = self.task.max_steps - self.step
        # Who is short of time may leave the severity out, too.
        said = (True,) if left >= PAR_STEPS[1] else (True, False)
        for option in super()._worth_considering(outcomes):
            for says in said:
                one = Answers(
                    severity=option.severity if says and given.severity == NONE else given.severity,
                    blame=given.blamed[0] if given.blamed else option.blame,
                    fix=given.fixes[0] if given.fixes else option.fix,
                    team=given.teams[0] if given.teams else option.team,
                    ignore=option.ignore,
                )
                if option.ignore:  # what was answered stays so, and no more is
                    one = one._replace(blame=NONE, fix=None, team=NONE)
                # The last step need not close the incident: then time is up.
                if _steps_of(one, given) <= left + (not one.ignore):
                    found[one] = None
        return list(found)

    def _tells(self, at: int) -> bool:
        """As in `Lookahead`; once the severity is given, edges are no exception."""
        if self.given.severity == NONE:
            return super()._tells(at)
        return float(self.belief.roots()[[at, *self.topology.below[at]]].max()) > RELEVANT

    def _table(self, step: int) -> np.ndarray:
        return scores(self._options, self._outcomes, self.given, self.task, step)

    def _severity_gain(self, at: int) -> float:
        return 0.0 if self.given.severity != NONE else super()._severity_gain(at)


def _steps_of(option: Answers, given: Given) -> int:
    """Steps that are left to do, closing the incident included."""
    steps = 1 + (option.severity != NONE and given.severity == NONE)
    if option.ignore:
        return steps
    return steps + (
        (option.blame != NONE and not given.blamed)
        + (option.fix is not None and not given.fixes)
        + (option.team != NONE and not given.teams)
    )


def scores(
    options: Sequence[Answers], outcomes: Outcomes, given: Given, task: Task, step: int
) -> np.ndarray:
    """`rewards.score` of every option under every outcome, when it completes what was given before
    in `step` steps.

    Args:
        options: complete sets of answers, those given before included; of one that ignores, only
            its severity counts.
        outcomes: of a single fault or none.
        given: what was answered before, and is paid for.
        task: its length counts.
        step: steps used.

    Returns:
        (options, outcomes).
    """

    def column(values: list) -> np.ndarray:
        return np.array(values)[:, None]

    fault, severe = outcomes.root >= 0, outcomes.severity < SEVERITIES.index("P3")
    ignores = column([one.ignore for one in options])
    blame, team = column([one.blame for one in options]), column([one.team for one in options])
    fixed = column([one.fix is not None for one in options])
    at = column([one.fix[0] if one.fix else NONE for one in options])
    remedy = column([one.fix[1] if one.fix else "" for one in options])

    severity = column([one.severity for one in options])
    steps = step + 1 + ((severity != NONE) & (given.severity == NONE))
    for answer, before in (
        (blame != NONE, given.blamed),
        (fixed, given.fixes),
        (team != NONE, given.teams),
    ):
        steps = steps + (answer & ~ignores & (not before))

    blamed = fault & (outcomes.root == blame)
    mended = fault & (outcomes.root == at) & (outcomes.remedy == remedy)
    paged = fault & (outcomes.team == team)
    cost = np.full(len(fault), REPEAT_COST * given.repeats)
    gone = mended
    for service, tried in given.fixes:
        right = fault & (outcomes.root == service) & (outcomes.remedy == tried)
        gone = gone | right
        cost = cost + FRUITLESS_COST * ~right
    cost = cost + FALSE_PAGE_COST * len(given.teams) * ~fault
    classified = WEIGHTS["severity"] * (outcomes.severity == severity)
    answered = (
        classified
        + WEIGHTS["root_cause"] * blamed
        + WEIGHTS["remediation"] * mended
        + WEIGHTS["escalation"] * paged
        + _speed(steps, 1, task) * gone
        - cost
        - (0.0 if given.fixes else FRUITLESS_COST * (fixed & ~mended))
        - (0.0 if given.teams else FALSE_PAGE_COST * ((team != NONE) & ~fault))
    )
    wrong_team = np.where(team != NONE, ~paged, severe)
    answered = np.where(blamed & wrong_team, 0.0, np.clip(answered, 0.0, 1.0))
    silent = (
        WEIGHTS["root_cause"] * (not given.blamed)
        + WEIGHTS["remediation"] * (not given.fixes)
        + WEIGHTS["escalation"] * (not given.teams)
    )
    dismissed = np.clip(classified + silent + _speed(steps, 0, task) - cost, 0.0, 1.0)
    return np.where(ignores, np.where(fault, 0.0, dismissed), answered)


def _speed(steps: np.ndarray, faults: int, task: Task) -> np.ndarray:
    """What speed adds to the score of an episode of so many steps."""
    par = PAR_STEPS[faults]
    return WEIGHTS["speed"] * (1.0 - np.clip((steps - par) / (task.max_steps - par), 0.0, 1.0))


def values(sessions: Sequence[ToolSession]) -> list[list[float]]:
    """What episodes of one incident were worth: of each, at the opening and after each call. After
    the last it is the reward, which has all that was earned.

    What several have in common is worked out once.

    Args:
        sessions: closed episodes of a single fault or none, at the same incident.

    Raises:
        ValueError: for a task of two faults.
    """
    episode = sessions[0].episode
    incident = episode.incident
    opening = Posterior(prior_of(incident.topology, incident.task, incident.split))
    opening.see(episode.opening, None)
    opening.keep_likelier_than(UNLIKELY)
    beliefs: dict[tuple, Posterior] = {(): opening}  # by what was asked, and after which step
    worth: dict[tuple, float] = {}

    def expected(asked: tuple, given: Given, step: int) -> float:
        if (asked, given, step) not in worth:
            worth[asked, given, step] = Takeover(beliefs[asked], step, given).value()
        return worth[asked, given, step]

    found = []
    for session in sessions:
        asked: tuple = ()
        given, malformed = Given(), 0
        row = [expected(asked, given, 0)]
        count = len(calls_made(session))
        for step, (action, observation) in enumerate(session.episode.history, 1):
            if observation.done:
                break
            malformed += action is None
            if action and action.type == "request_more_logs" and not given.fixes:
                before, asked = asked, (*asked, (step, action.args[0]))
                if asked not in beliefs:
                    beliefs[asked] = beliefs[before].copy()
                    beliefs[asked].see(observation, action.args[0])
                    beliefs[asked].keep_likelier_than(UNLIKELY)
            given = given.after(action, incident.topology)
            row.append(expected(asked, given, step) - MALFORMED_COST * malformed)
        if count:
            # From the call that closed it on there is nothing to expect, but what further calls
            # cost. Who walked away has done so with the last call.
            row = row[:count]
            further = range(count - len(row), -1, -1)
            row += [session.reward() + MALFORMED_COST * calls for calls in further]
        found.append(row)
    return found
