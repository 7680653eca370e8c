"""The audit: its posterior is `belief`'s own, its verdicts are what they are called, and whoever is
audited plays as if nobody looked.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from lab_helpers import asks, blames

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies.scripted import ConstantPolicy
from logtriage.registry import make_policy
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY
from triagelab.bench.audit import COLUMNS, NO_FAULT, VERDICTS, judge_result, verdict_of
from triagelab.bench.rollouts import Result, rollout
from triagelab.reference.belief import BeliefPolicy
from triagelab.reference.posterior import Posterior
from triagelab.reference.prior import prior_of

SILENT = "silent_degradation"
audit = partial(rollout, judge=judge_result)


def judged(script, task=SILENT, index=0):
    """The audit of one incident played by a fixed script."""
    episode = Episode.open(task, "test", index)
    ConstantPolicy(script).play([episode])
    return judge_result(Result({"error": ""}, episode, ()))


def believed(asked, index=0):
    """The posterior of the roots of an incident after the opening and these questions."""
    episode = Episode.open(SILENT, "test", index)
    posterior = Posterior(prior_of(DEFAULT_TOPOLOGY, TASKS[SILENT], "test"))
    posterior.see(episode.opening, None)
    for name in asked:
        posterior.see(episode.act(asks(name)), name)
    return posterior.roots()


def test_belief_is_grounded():
    belief = audit(BeliefPolicy(), list(TASKS), "test", 12)
    # When belief plays, it states the probability of its answer: the audit must find the same.
    answered = belief[belief["answer"].notna()]
    assert len(answered) >= 0.95 * len(belief)
    assert list(answered["posterior"]) == list(answered["confidence"])
    assert (belief["verdict"] == "grounded").mean() > 0.95


@pytest.mark.parametrize("name", ["random", "trace"])
def test_whoever_is_audited_plays_as_if_nobody_looked(name):
    plain, audited = (
        play(make_policy(name), list(TASKS), "test", 8, batch=5) for play in (rollout, audit)
    )
    assert list(audited.columns) == [*plain.columns, *COLUMNS]
    kept = plain.columns.drop("seconds")
    pd.testing.assert_frame_equal(audited[kept], plain[kept])
    assert set(audited["verdict"]) <= set(VERDICTS)
    # The first answer decides: right is what earns the root cause, whoever answered.
    right = audited["verdict"].isin(["grounded", "lucky"])
    assert (right == (audited["root_cause"] == 1.0)).all()


def test_ignoring_answers_that_there_is_no_fault():
    for index in range(12):
        audited = judged([Action("ignore")], index=index)
        alarm = Episode.open(SILENT, "test", index).incident.root is None
        assert audited["answer"] == NO_FAULT
        assert audited["posterior"] == believed([], index=index)[-1]
        assert audited["verdict"] == verdict_of(alarm, audited["posterior"])
    # no incident of this task is a false alarm, and the posterior knows it
    audited = judged([Action("ignore")], "single_crash")
    assert (audited["posterior"], audited["verdict"]) == (0.0, "reckless")


def test_what_counts_as_an_answer_and_as_a_question():
    ask, blame = asks("user-db"), blames("payment-db")
    # The first valid answer counts.
    assert judged([blames("nobody"), blame, Action("ignore")])["answer"] == "payment-db"
    # Who never answers has no posterior, but asked.
    audited = judged([ask, Action("escalate", ("sre",)), Action("resolve")])
    assert (audited["answer"], audited["verdict"], audited["questions"]) == (None, "unanswered", 1)
    assert np.isnan(audited["posterior"])
    # What is seen after a remedy is left out.
    treated = judged([ask, Action("remediate", ("restart", "payment-db")), ask, ask, blame])
    assert treated == pytest.approx(judged([ask, blame]))
    # A question to all services is one, and is heard.
    audited = judged([asks("all"), blame])
    assert audited["questions"] == 1
    at = DEFAULT_TOPOLOGY.position["payment-db"]
    assert audited["posterior"] == believed(["all"])[at] != believed([])[at]


def test_an_answer_is_borne_out_when_likelier_than_not():
    verdicts = [verdict_of(right, p) for right in (True, False) for p in (0.5, 0.499)]
    assert verdicts == ["grounded", "lucky", "misled", "reckless"]
