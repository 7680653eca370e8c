"""The value of an episode while it is played, against the scores that it speaks of."""

from random import Random

import numpy as np
import pytest
from sessions import at_random, played

from logtriage.ceiling.belief import BeliefPolicy, prior_of
from logtriage.ceiling.lookahead import Lookahead
from logtriage.ceiling.outcomes import NONE, Answers, Outcomes, answer_actions, score_table
from logtriage.ceiling.posterior import Posterior
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.train.credit import calls_made
from logtriage.train.privileged import Given, Takeover, scores, values
from logtriage.world.call_graph import TEAMS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SEVERITIES, TASKS


def opened(task, index):
    episode = Episode.open(task, "train", index)
    incident = episode.incident
    belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
    belief.see(episode.opening, None)
    return belief


@pytest.mark.parametrize("task", TASKS)
def test_the_values_of_an_episode_end_in_its_reward(task):
    random = Random(task)
    for index in range(12):
        group = [at_random(task, index, random) for _ in range(3)]
        found = values(group)
        for session, worth in zip(group, found, strict=True):
            assert len(worth) == len(calls_made(session)) + 1
            assert worth[-1] == pytest.approx(session.reward(), abs=1e-12)
            assert worth[0] == found[0][0]  # one opening
            assert values([session])[0] == worth  # whatever the others did


def test_who_has_answered_nothing_is_in_the_place_of_the_agent_itself():
    for task in TASKS:
        belief = opened(task, 1)
        alone, takeover = Lookahead(belief, 0), Takeover(belief, 0, Given())
        table = score_table(takeover._options, takeover._outcomes, TASKS[task], 0)
        assert np.allclose(takeover._table(0), table)
        now = alone._expected_now().max()
        assert takeover.value() == pytest.approx(now + max([0.0, *alone.gains().values()]))


@pytest.mark.parametrize("task", TASKS)
def test_what_is_completed_is_scored_as_the_score_has_it(task):
    # Under the outcome that is true, the score of what was done before and what completes it.
    random = Random(f"complete/{task}")
    for index in range(120):
        incident = sample_incident(task, "train", index)
        topology = incident.topology
        none = incident.injection is None
        truth = Outcomes(
            np.array([NONE if none else topology.position[incident.root]]),
            np.array(["" if none else incident.remedy]),
            np.array([NONE if none else TEAMS.index(incident.team)]),
            np.array([SEVERITIES.index(incident.severity)]),
            np.array([1.0]),
        )
        begun = at_random(task, index, random)
        episode, given, step = Episode(incident), Given(), 0
        for action, observation in begun.episode.history:
            if observation.done or step >= 5:
                break
            if action:
                episode.act(action)
            else:
                episode.refuse("")
            given, step = given.after(action, topology), step + 1
        service = random.randrange(len(topology.names))
        at = service if none or random.random() < 0.5 else topology.position[incident.root]
        option = Answers(
            given.severity if given.severity != NONE else random.randrange(3),
            given.blamed[0] if given.blamed else random.choice([NONE, at]),
            given.fixes[0]
            if given.fixes
            else random.choice([None, (at, incident.remedy or "scale")]),
            given.teams[0] if given.teams else random.choice([NONE, 0, 1, 2, 3]),
            ignore=random.random() < 0.3,
        )
        done = {"classify_severity": given.severity != NONE, "identify_root_cause": given.blamed}
        done |= {"remediate": given.fixes, "escalate": given.teams}
        for action in answer_actions(option, topology):
            if not done.get(action[0]) and not episode.done:
                episode.act(action)
        episode.abandon()
        table = scores([option], truth, given, incident.task, step)
        assert table[0, 0] == pytest.approx(episode.score.total, abs=1e-9), (index, option, given)


def test_what_is_learned_is_worth_something_and_a_wrong_answer_costs():
    incident = sample_incident("single_crash", "train", 2)
    innocent = next(name for name in incident.topology.names if name != incident.root)
    look = Action("request_more_logs", (incident.root,))
    right, wrong = (Action("identify_root_cause", (name,)) for name in (incident.root, innocent))
    (_, seen, good, _), (_, same, bad, _) = values(
        [played("single_crash", 2, look, answer, Action("resolve")) for answer in (right, wrong)]
    )
    assert seen == same and abs(good - seen) < 0.05 and bad < seen - 0.3


def test_the_value_of_an_opening_is_about_what_the_agent_earns():
    # A lower bound, since it looks one question ahead; in single crash one question is enough.
    episodes = [Episode.open("single_crash", "train", 9000 + i) for i in range(30)]
    expected = [values([played("single_crash", 9000 + i)])[0][0] for i in range(30)]
    BeliefPolicy().play(episodes)
    earned = np.mean([episode.score.total for episode in episodes])
    assert np.mean(expected) == pytest.approx(earned, abs=0.05)
