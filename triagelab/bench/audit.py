"""Did the policy know when it blamed? An audit of the diagnosis of any policy.

The audit replays `belief`'s exact posterior on what the policy was shown. The *answer* of an
episode is the first service that the policy blamed, or "no fault" if it ignored the alert first.
The *verdict* says whether the answer is right, and whether the posterior held it more likely than
not (`verdict_of`). docs/benchmark.md explains what that means.

*Regret* is the expected score that a choice gave up, by `belief`'s lookahead: the best of asking
any one service and of answering at once, minus the choice made. The lookahead assumes an agent that
has answered nothing yet and answers next, so regrets do not add up over an episode. All questions
are counted, but only those to one service that leave time for all answers are weighed.

A remedy changes the world that the posterior describes, so all that was seen after the first remedy
is left out, questions included.
"""

from itertools import takewhile
from typing import Any

from logtriage.play.actions import ALL_SERVICES
from logtriage.play.episode import BaseEpisode, final_score

from ..reference.belief import Lookahead
from ..reference.posterior import Posterior
from ..reference.prior import prior_of
from .rollouts import Result

GROUNDED = 0.5  # an answer of at least this probability counts as more likely than not
NO_FAULT = "no fault"  # the answer that `ignore` gives
BLAMES = "identify_root_cause"
ANSWERS = (BLAMES, "ignore")
VERDICTS = ("grounded", "lucky", "unanswered", "misled", "reckless")
COLUMNS = (
    *("answer", "posterior", "verdict"),
    *("questions", "weighed", "question_regret", "answer_regret"),
)


def judge(episode: BaseEpisode, regrets: bool = True) -> dict[str, Any]:
    """Audit a closed episode; return a value for each of `COLUMNS`.

    Args:
        regrets: whether to compute the regrets, which is slow.

    Returns:
        answer: a service, `NO_FAULT`, or None.
        posterior: probability of the answer when it was given; NaN without one.
        verdict: one of `VERDICTS`.
        questions, weighed: questions before the answer or first remedy; those that have a regret.
        question_regret: mean over the weighed questions; NaN if there are none.
        answer_regret: of answering when it did, or of an earlier remedy; NaN without an answer.
    """
    incident = episode.incident
    belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
    belief.see(episode.opening, None)
    trail = [(action, observation) for action, observation in episode.history if action]
    before = [*takewhile(lambda one: one[0].type not in (*ANSWERS, "remediate"), trail)]
    questions = [one for one in before if one[0].type == "request_more_logs"]
    weighed = []
    for question, observation in questions:
        service = question.args[0]
        if regrets and service != ALL_SERVICES:
            gains = Lookahead(belief, observation.step - 1).gains(also=service)
            weighed += [max(0.0, *gains.values()) - gains[service]] if gains else []
        belief.see(observation, service)
    row: dict[str, Any] = {
        "answer": None,
        "posterior": float("nan"),
        "verdict": "unanswered",
        "questions": len(questions),
        "weighed": len(weighed),
        "question_regret": sum(weighed) / len(weighed) if weighed else float("nan"),
        "answer_regret": float("nan"),
    }
    answer = next((action for action, _ in trail if action.type in ANSWERS), None)
    if answer is None:
        return row
    blamed = answer.args[0] if answer.type == BLAMES else None
    posterior = float(belief.roots()[incident.topology.position[blamed] if blamed else -1])
    # This part of the score is 1 if the first answer is right, else 0. The truth itself is not
    # needed, and a server does not tell it.
    right = final_score(episode).root_cause == 1.0
    row |= {
        "answer": blamed or NO_FAULT,
        "posterior": min(1.0, posterior),
        "verdict": verdict_of(right, posterior),
    }
    if regrets:
        _, decided = trail[len(before)]
        gains = Lookahead(belief, decided.step - 1).gains()
        row["answer_regret"] = max(0.0, *gains.values()) if gains else 0.0
    return row


def verdict_of(right: bool, posterior: float) -> str:
    """Return the verdict on an answer, given whether it is right and its posterior probability."""
    if right:
        return "grounded" if posterior >= GROUNDED else "lucky"
    return "misled" if posterior >= GROUNDED else "reckless"


def judge_result(result: Result) -> dict[str, Any]:
    """Return `judge`'s columns for a result, all None if the episode ended in an error."""
    return dict.fromkeys(COLUMNS) if result.row["error"] else judge(result.episode)
