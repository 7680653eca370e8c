from copy import deepcopy
from dataclasses import replace

import pytest

from logtriage.bench.registry import POLICIES, make_policy
from logtriage.play.episode import Episode
from logtriage.policies import scripted as policies
from logtriage.policies.scripted import (
    ConstantPolicy,
    TrainedConstantPolicy,
    best_constant_script,
    constant_scripts,
    mean_script_score,
)
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS

EPISODES = 40
PLAYED = [name for name in POLICIES if name != "belief"]  # which needs seconds for an incident


@pytest.fixture(scope="module")
def scripted():
    quick = {"constant": TrainedConstantPolicy(10)}
    return {name: quick.get(name) or make_policy(name) for name in POLICIES}


@pytest.fixture(scope="module")
def scores(scripted):
    """The scores of each policy by task."""
    found = {}
    for name in PLAYED:
        for task in TASKS:
            episodes = [Episode.open(task, "test", index) for index in range(EPISODES)]
            deepcopy(scripted[name]).play(episodes)
            found[name, task] = [episode.score for episode in episodes]
    return found


def mean(scores, part="total"):
    return sum(getattr(score, part) for score in scores) / len(scores)


def test_policies_differ_on_cascading_failure_as_they_should(scores):
    task = "cascading_failure"
    loudest, trace = (mean(scores[name, task], "root_cause") for name in ("loudest", "trace"))
    assert loudest < 0.35 and trace >= loudest + 0.30  # the root is rarely the loudest
    assert mean(scores["constant", task]) < mean(scores["loudest", task])


def test_scores_run_from_chance_to_the_oracle(scores):
    for task in TASKS:
        assert mean(scores["oracle", task]) == 1.0 and mean(scores["random", task]) < 0.15
    for name in PLAYED:  # no script solves it
        assert name == "oracle" or mean(scores[name, "silent_degradation"]) <= 0.90, (
            f"{name} solves silent degradation: too easy a task, or a policy that knows too much"
        )


class Sealed:
    """An incident of which only what may be known can be read."""

    def __init__(self, incident):
        self.task, self.split, self.topology = incident.task, incident.split, incident.topology

    def __getattr__(self, name):
        raise AssertionError(f"the policy reads incident.{name}")


class Behind:
    """An episode seen through its observations alone; `incident` replaces its truth."""

    def __init__(self, episode, incident):
        self._episode, self.incident, self.opening = episode, incident, episode.opening
        self.actions = []

    @property
    def done(self):
        return self._episode.done

    def act(self, action):
        self.actions.append(action)
        return self._episode.act(action)


def another_truth(incident):
    """The same call graph with the answers of another incident, all four of them different."""
    others = (sample_incident(incident.task.name, "train", index) for index in range(500))
    own = {incident.root, incident.remedy, incident.team}
    other = next(
        one for one in others if one.injection and not {one.root, one.remedy, one.team} & own
    )
    severity = "P1" if incident.severity != "P1" else "P2"
    return replace(incident, index=incident.index + 1, severity=severity, injection=other.injection)


def actions_of(policy, incident, shown):
    episode = Behind(Episode(incident), shown)
    deepcopy(policy).play([episode])  # a copy, so that the policy's random stream stays
    return episode.actions


@pytest.mark.parametrize("name", POLICIES)
def test_only_the_oracle_is_given_the_answer(name, scripted):
    # The same observations with another truth, and with none: who is not told must do the same.
    for task in TASKS:
        for index in range(2 if name == "belief" else 15):
            incident = sample_incident(task, "test", index)
            honest = actions_of(scripted[name], incident, incident)
            misled = actions_of(scripted[name], incident, another_truth(incident))
            if name == "oracle":
                assert misled != honest
                with pytest.raises(ValueError, match="oracle needs the truth"):
                    actions_of(scripted[name], incident, Sealed(incident))
            else:
                assert honest == misled == actions_of(scripted[name], incident, Sealed(incident))


def test_the_constant_script_is_the_best_of_all_candidates(monkeypatch):
    rounds = {}

    def recorded(script, incidents):
        # It must not be chosen on what it is judged by.
        assert {incident.split for incident in incidents} == {"train"}
        found = mean_script_score(script, incidents)
        if len(rounds.get(len(incidents), ())) % 40 == 0:  # as if it were played
            episodes = [Episode(incident) for incident in incidents]
            ConstantPolicy(script).play(episodes)
            played = [episode.score.total for episode in episodes]
            assert found == sum(played) / len(played)
        rounds.setdefault(len(incidents), {})[tuple(script)] = found
        return found

    monkeypatch.setattr(policies, "mean_script_score", recorded)
    best_constant_script.cache_clear()
    found = best_constant_script("single_crash", incidents=20)
    assert set(rounds[10]) == {tuple(script) for script in constant_scripts("single_crash")}
    finalists = rounds[20]
    assert len(finalists) >= 100 and finalists[found] == max(finalists.values())
    left_out = [mean for script, mean in rounds[10].items() if script not in finalists]
    assert max(left_out) <= min(rounds[10][script] for script in finalists)
