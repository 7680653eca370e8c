"""The novice on-call. That it never sees the answer is tested with the drills."""

from random import Random

from logtriage.play.episode import Episode
from logtriage.policies.novice import NovicePolicy


def play(task, episodes=200):
    played = [Episode.open(task, "train", index) for index in range(episodes)]
    NovicePolicy(Random("novice")).play(played)
    return played


def test_the_novice_is_often_wrong():
    # Reward must have something to teach: who imitates the novice must often blame wrongly.
    played = play("cascading_failure")
    assert 0.05 < sum(episode.score.root_cause for episode in played) / len(played) < 0.5


def test_the_novice_does_all_that_an_agent_can():
    # What is never imitated is never tried, and what is never tried is never rewarded.
    records = [episode.record for episode in play("silent_degradation")]
    assert {record.closed_by for record in records} == {"resolve", "ignore"}  # in time, too
    for given in ("root_causes", "teams", "remediations"):
        assert {len(getattr(record, given)) for record in records} == {0, 1}
    assert {record.severity for record in records} >= {"P2", "P3"}
