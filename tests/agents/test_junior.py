"""The junior on-call. That it never sees the answer is tested with the drills."""

from random import Random

from logtriage.agents import junior
from logtriage.play.episode import Episode


def play(task, episodes=200):
    played = [Episode.open(task, "train", index) for index in range(episodes)]
    junior.JuniorPolicy(Random("junior")).play(played)
    return played


def test_the_junior_is_often_wrong():
    # Reward must have something to teach: who imitates the junior blames the root now and then.
    played = play("cascading_failure")
    assert 0.05 < sum(episode.score.root_cause for episode in played) / len(played) < 0.5


def test_the_junior_does_all_that_an_agent_can():
    # What is never imitated is never tried, and what is never tried is never rewarded.
    records = [episode.record for episode in play("silent_degradation")]
    assert {record.closed_by for record in records} == {"resolve", "ignore"}
    for given in ("root_causes", "teams", "remediations"):
        assert {len(getattr(record, given)) for record in records} == {0, 1}
    assert {record.severity for record in records} >= {"P2", "P3"}


def test_the_same_stream_plays_the_same():
    assert [one.record for one in play("single_crash", 20)] == [
        one.record for one in play("single_crash", 20)
    ]


class Diary(junior.JuniorPolicy):
    """A junior of whose questions one hears."""

    def __init__(self, random):
        super().__init__(random)
        self.days = []

    def begin(self, topology, observation):
        super().begin(topology, observation)
        self.days.append(self._asked)

    def _whom_to_ask(self):
        chosen = super()._whom_to_ask()
        if set(self._asked) == set(self.topology.names):  # all were, so whoever looks slowest
            excess = {name: self.slowdown(name) for name in self.topology.names}
            assert excess[chosen] == max(excess.values()) > 0
        return chosen


def test_nobody_is_asked_twice_before_all_were_asked_once():
    # Who imitates one that asks the same again never gets round, and reward finds nothing there.
    diary = Diary(Random("junior"))
    played = [Episode.open("silent_degradation", "train", index) for index in range(200)]
    diary.play(played)
    services = len(played[0].incident.topology.names)
    for asked in diary.days:
        first = asked[:services]
        assert len(set(first)) == len(first)
    patience = {len(asked) for asked in diary.days}
    assert patience == set(range(1, junior.MOST_ASKED + 1))


def test_time_is_left_for_an_answer():
    for episode in play("single_crash"):
        assert episode.record.closed_by != "timeout"
