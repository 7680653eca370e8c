"""The novice on-call. That it never sees the answer is tested with the drills."""

from random import Random

from logtriage.play.episode import Episode
from logtriage.policies.novice import MOST_ASKED, NovicePolicy


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


class Diary(NovicePolicy):
    """A novice that keeps what it asked."""

    def __init__(self, random):
        super().__init__(random)
        self.days, self.made_sure = [], 0

    def begin(self, topology, observation):
        super().begin(topology, observation)
        self.days.append(self._asked)

    def _ask(self, service):
        slowdowns = {name: self.slowdown(name) for name in self.topology.names}
        sure = service == self._asked[-1] and not self.proven(service) if self._asked else False
        if sure and self.fault_at(service):
            self.made_sure += 1
        elif set(self._asked) == set(self.topology.names):
            assert slowdowns[service] == max(slowdowns.values()) > 0
        else:
            assert service not in self._asked
        return super()._ask(service)


def test_nobody_is_asked_twice_before_all_were_asked_unless_to_make_sure():
    # An imitator of one that asks the same again never asks all, and reward finds nothing there.
    # One that never looks twice at a hint answers without proof.
    diary = Diary(Random("junior"))
    diary.play([Episode.open("silent_degradation", "train", index) for index in range(200)])
    assert diary.made_sure >= 10
    assert {len(asked) for asked in diary.days} == set(range(1, MOST_ASKED + 1))
