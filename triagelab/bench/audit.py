"""Was the diagnosis supported by evidence? An audit of the answers of any policy.

The audit replays `belief`'s exact posterior on what the policy was shown. The *answer* of an
episode is the first service that the policy blamed, or "no fault" if it ignored the alert first.
The *verdict* says whether the answer is right, and whether the posterior held it more likely than
not (`verdict_of`). docs/benchmark.md explains what that means.

A remedy changes the world that the posterior describes, so all that was seen after the first remedy
is left out.
"""

from itertools import takewhile
from typing import Any

from logtriage.play.episode import final_score

from ..reference.posterior import Posterior
from ..reference.prior import prior_of
from .rollouts import Result

GROUNDED = 0.5  # an answer of at least this probability counts as more likely than not
NO_FAULT = "no fault"  # the answer that `ignore` gives
BLAMES = "identify_root_cause"
ANSWERS = (BLAMES, "ignore")
VERDICTS = ("grounded", "lucky", "unanswered", "misled", "reckless")
COLUMNS = ("answer", "posterior", "verdict", "questions")


def judge_result(result: Result) -> dict[str, Any]:
    """Audit an episode; return a value for each of `COLUMNS`, all None if it ended in an error.

    Returns:
        answer: a service, `NO_FAULT`, or None.
        posterior: probability of the answer when it was given; NaN without one.
        verdict: one of `VERDICTS`.
        questions: how many were asked before the answer or first remedy.
    """
    if result.row["error"]:
        return dict.fromkeys(COLUMNS)
    episode, incident = result.episode, result.episode.incident
    trail = [(action, observation) for action, observation in episode.history if action]
    answer = next((action for action, _ in trail if action.type in ANSWERS), None)
    before = takewhile(lambda step: step[0].type not in (*ANSWERS, "remediate"), trail)
    questions = [step for step in before if step[0].type == "request_more_logs"]
    if answer is None:
        unanswered = (None, float("nan"), "unanswered", len(questions))
        return dict(zip(COLUMNS, unanswered, strict=True))
    belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
    belief.see(episode.opening, None)
    for question, observation in questions:
        belief.see(observation, question.args[0])
    blamed = answer.args[0] if answer.type == BLAMES else None
    posterior = float(belief.roots()[incident.topology.position[blamed] if blamed else -1])
    # This part of the score is 1 if the first answer is right, else 0. The truth itself is not
    # needed, and a server does not tell it.
    verdict = verdict_of(final_score(episode).root_cause == 1.0, posterior)
    answered = (blamed or NO_FAULT, min(1.0, posterior), verdict, len(questions))
    return dict(zip(COLUMNS, answered, strict=True))


def verdict_of(right: bool, posterior: float) -> str:
    """Return the verdict on an answer, given whether it is right and its posterior probability."""
    if right:
        return "grounded" if posterior >= GROUNDED else "lucky"
    return "misled" if posterior >= GROUNDED else "reckless"
