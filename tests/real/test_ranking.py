"""Rules as policies: they ask once, blame three, and see no more than an agent does."""

import pytest

from logtriage.play.episode import Episode, final_score
from logtriage.real.cases import SOURCES
from logtriage.real.ranking import RankingPolicy, ranking_policy
from logtriage.real.real_episode import RealEpisode
from logtriage.real.rules import RULES
from logtriage.world.incidents import sample_incident


@pytest.mark.parametrize("source", SOURCES)
def test_it_asks_about_all_and_blames_three_in_order(source):
    told = []

    def rule(evidence):
        told.append(evidence)
        return sorted(evidence.graph.names)

    episode = RealEpisode.open(source, 0)
    policy = RankingPolicy(rule, "by name")
    policy.play([episode])
    assert episode.record.root_causes == sorted(episode.incident.topology.names)[:3]
    assert (episode.record.steps, episode.record.closed_by) == (5, "resolve")
    assert policy.ranking == sorted(episode.incident.topology.names)
    # One question brought the further metrics of everybody.
    assert len(told) == 1 and len(told[0].measures) > 5
    assert final_score(episode).total in (0.0, 1.0)


@pytest.mark.parametrize("name", ["random_ranking", *RULES])
def test_every_rule_plays_simulated_incidents_too(name):
    episode = Episode(sample_incident("single_crash", "test", 0))
    ranking_policy(name).play([episode])
    assert episode.done and len(set(episode.record.root_causes)) == 3


def test_an_unknown_rule_is_named_with_those_there_are():
    with pytest.raises(
        ValueError, match=r"unknown rule 'best'; choose one of random_ranking, loud"
    ):
        ranking_policy("best")
