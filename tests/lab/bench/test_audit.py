"""The audit: its posterior is `belief`'s own, its verdicts and regrets are what they are called,
and whoever is audited plays as if nobody looked.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.policies.scripted import ConstantPolicy
from logtriage.registry import make_policy
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY
from logtriage.world.topology_file import load_topology
from triagelab.bench.audit import (
    COLUMNS,
    GROUNDED,
    NO_FAULT,
    VERDICTS,
    judge,
    judge_result,
    verdict_of,
)
from triagelab.bench.rollouts import rollout
from triagelab.bench.score_tables import audit_table
from triagelab.reference.belief import WORTHWHILE, BeliefPolicy, Lookahead
from triagelab.reference.posterior import Posterior
from triagelab.reference.prior import prior_of

SHOP = load_topology(Path(__file__).parents[3] / "examples" / "shop.yaml")
SILENT = "silent_degradation"
audit = partial(rollout, judge=judge_result)


@pytest.fixture(scope="module")
def belief():
    return audit(BeliefPolicy(), list(TASKS), "test", 12)


def blames(service):
    return Action("identify_root_cause", (service,))


def asks(service):
    return Action("request_more_logs", (service,))


def judged(script, task=SILENT, index=0):
    """The audit of one incident played by a fixed script."""
    episode = Episode.open(task, "test", index)
    ConstantPolicy(script).play([episode])
    return judge(episode)


def believed(asked, task=SILENT, index=0):
    """The posterior of an incident after the opening and these questions, and the steps used."""
    episode = Episode.open(task, "test", index)
    posterior = Posterior(prior_of(DEFAULT_TOPOLOGY, TASKS[task], "test"))
    posterior.see(episode.opening, None)
    for name in asked:
        posterior.see(episode.act(asks(name)), name)
    return posterior, episode.record.steps


def test_belief_is_grounded_and_regrets_nothing(belief):
    # When belief plays, it states the probability of its answer: the audit must find the same.
    answered = belief[belief["answer"].notna()]
    assert len(answered) >= 0.95 * len(belief)
    assert list(answered["posterior"]) == list(answered["confidence"])
    assert (belief["verdict"] == "grounded").mean() > 0.95
    assert belief["weighed"].sum() > 10 and (belief["weighed"] == belief["questions"]).all()
    assert belief["question_regret"].max() == pytest.approx(0.0, abs=1e-12)
    assert belief["answer_regret"].max() <= WORTHWHILE


@pytest.mark.parametrize("name", ["random", "trace"])
def test_whoever_is_audited_plays_as_if_nobody_looked(name):
    plain, audited = (
        play(make_policy(name), list(TASKS), "test", 8, batch=5) for play in (rollout, audit)
    )
    assert list(audited.columns) == [*plain.columns, *COLUMNS]
    drop = ["seconds"]
    pd.testing.assert_frame_equal(
        audited[plain.columns].drop(columns=drop), plain.drop(columns=drop)
    )
    assert (audited[["question_regret", "answer_regret"]].min().dropna() >= 0.0).all()
    assert set(audited["verdict"]) <= set(VERDICTS)
    # The first answer decides: right is what earns the root cause, whoever answered.
    right = audited["verdict"].isin(["grounded", "lucky"])
    assert (right == (audited["root_cause"] == 1.0)).all()


def test_ignoring_answers_that_there_is_no_fault():
    for index in range(12):
        found = judged([Action("ignore")], index=index)
        alarm = Episode.open(SILENT, "test", index).incident.root is None
        assert found["answer"] == NO_FAULT
        assert found["posterior"] == believed([], index=index)[0].roots()[-1]
        assert found["verdict"] == verdict_of(alarm, found["posterior"])
    # no incident of this task is a false alarm, and the posterior knows it
    found = judged([Action("ignore")], "single_crash")
    assert (found["posterior"], found["verdict"]) == (0.0, "reckless")


def test_what_counts_as_an_answer_and_as_a_question():
    ask, blame = asks("user-db"), blames("payment-db")
    # The first valid answer counts.
    assert judged([blames("nobody"), blame, Action("ignore")])["answer"] == "payment-db"
    # Who never answers has no posterior, but asked.
    found = judged([ask, Action("escalate", ("sre",)), Action("resolve")])
    assert (found["answer"], found["verdict"], found["questions"]) == (None, "unanswered", 1)
    assert np.isnan(found["posterior"]) and np.isnan(found["answer_regret"])
    assert found["question_regret"] >= 0.0
    # What is seen after a remedy is left out.
    treated = judged([ask, Action("remediate", ("restart", "payment-db")), ask, ask, blame])
    assert treated == pytest.approx(judged([ask, blame]))
    # A question to all services is heard and not weighed,
    found = judged([asks("all"), blame])
    assert (found["questions"], found["weighed"]) == (1, 0) and np.isnan(found["question_regret"])
    at = DEFAULT_TOPOLOGY.position["payment-db"]
    assert found["posterior"] == believed(["all"])[0].roots()[at] != believed([])[0].roots()[at]
    # nor is one that leaves no time for severity, root cause, remedy, team, resolve.
    steps = TASKS["single_crash"].max_steps
    found = judged([ask] * steps, "single_crash")
    assert (found["questions"], found["weighed"]) == (steps, steps - 5)


@pytest.mark.parametrize("index", range(3))
def test_regret_is_the_best_choice_less_the_choice_made(index):
    posterior, steps = believed([], index=index)
    gains = Lookahead(posterior, steps).gains()
    best = max(0.0, *gains.values())
    for name in DEFAULT_TOPOLOGY.names:
        worth = Lookahead(posterior, steps).gains(also=name)[name]
        found = judged([asks(name), Action("ignore")], index=index)
        assert found["question_regret"] == pytest.approx(max(best, worth) - worth)
    assert judged([Action("ignore")], index=index)["answer_regret"] == pytest.approx(best)


def test_an_answer_is_borne_out_when_likelier_than_not():
    verdicts = [verdict_of(right, p) for right in (True, False) for p in (GROUNDED, 0.499)]
    assert verdicts == ["grounded", "lucky", "misled", "reckless"]


def test_a_graph_of_ones_own_has_a_posterior_of_its_own():
    own = partial(Episode.open, topology=SHOP)
    rows = audit(BeliefPolicy(), [SILENT], "test", 6, open_episode=own)
    assert set(rows["answer"].dropna()) <= {*SHOP.names, NO_FAULT}
    answered = rows[rows["answer"].notna()]
    assert list(answered["posterior"]) == list(answered["confidence"]) and len(answered) > 3


def row(verdict, questions=0, weighed=0, question=float("nan"), answer=0.0, policy="p", index=0):
    return {
        "task": "t", "index": index, "policy": policy, "verdict": verdict, "questions": questions,
        "weighed": weighed, "question_regret": question, "answer_regret": answer,
    }  # fmt: skip


def test_the_table_counts_verdicts_and_weighs_questions():
    frame = pd.DataFrame(
        [
            row("grounded", 3, 3, 0.1, 0.2, index=0), row("grounded", 1, 1, 0.5, 0.0, index=1),
            row("lucky", index=2), row("misled", 2, 0, index=3),
            row("unanswered", answer=float("nan"), index=4),
            row("reckless", policy="q", index=0), row("reckless", policy="q", index=1),
        ]
    )  # fmt: skip
    one, other = audit_table(frame).to_dict("records")
    assert [one[verdict] for verdict in VERDICTS] == [0.4, 0.2, 0.2, 0.2, 0.0]
    assert one["grounded_share_of_right"] is None  # three right answers bear no interval
    assert one["questions"] == 1.2
    assert one["question_regret"] == pytest.approx((3 * 0.1 + 0.5) / 4)  # a question, not a row
    assert one["answer_regret"] == pytest.approx(0.05)
    assert (other["policy"], other["reckless"]) == ("q", 1.0)
    assert other["grounded_share_of_right"] is None and np.isnan(other["question_regret"])


def test_the_same_incidents_after_another_seed_are_no_further_evidence():
    # Five seeds whose every verdict is the same say no more than one of them does.
    verdicts = ["grounded"] * 20 + ["lucky"] * 10 + ["misled"] * 10
    one = pd.DataFrame([row(verdict, index=i) for i, verdict in enumerate(verdicts)])
    five = pd.concat([one.assign(seed=f"seed-{seed}") for seed in range(5)])
    other = one.assign(policy="untrained")  # beside it, and without a seed
    five = pd.concat([five, other])
    [alone], [together, beside] = (audit_table(frame).to_dict("records") for frame in (one, five))
    assert beside["grounded_share_of_right"] == alone["grounded_share_of_right"]
    share, same = alone["grounded_share_of_right"], together["grounded_share_of_right"]
    assert share.mean == same.mean == pytest.approx(2 / 3) and share.low < share.mean < share.high
    assert share.high - share.low == pytest.approx(same.high - same.low, rel=0.05)
