"""`production` through the same episode as all else: cases, texts, scores, and who plays."""

import itertools

import numpy as np
import pytest
from lab_helpers import blames

from logtriage.catalogue import draw_end, open_incident
from logtriage.play.actions import Action
from logtriage.play.observation import render
from triagelab.real.evidence import gather
from triagelab.realistic import production_episode
from triagelab.realistic.features import arrays_of_evidence, features
from triagelab.realistic.generator import Block
from triagelab.realistic.mesh import BLOCK
from triagelab.realistic.production_episode import ProductionEpisode, names_path, production_case
from triagelab.realistic.production_policies import ASK_ALL, PRODUCTION_POLICIES

FAULTY = next(at for at in range(40) if len(production_case("train", at).truth.path) > 2)
QUIET = next(at for at in range(200) if not production_case("train", at).truth.root)


def played(index, *actions):
    episode = ProductionEpisode.open("train", index)
    for action in actions:
        episode.act(action)
    return episode


def test_the_root_blamed_first_is_worth_all():
    truth = production_case("train", FAULTY).truth
    fixed = Action("remediate", (truth.remedy, truth.root)), Action("escalate", (truth.team,))
    right = played(FAULTY, *map(blames, truth.path), *fixed, Action("resolve"))
    score, case = right.score, right.case
    assert score.total == score.root_cause == score.remediation == score.escalation == 1.0
    assert names_path(right.record.root_causes, case)
    html = draw_end(right)
    assert "score 1.00" in html and "path to the users" in html and truth.remedy in html
    short = played(FAULTY, blames(truth.root), Action("resolve"))
    assert short.score.total == 1.0 and not names_path(short.record.root_causes, case)
    late = played(FAULTY, blames(truth.path[1]), blames(truth.root), Action("resolve"))
    assert late.score.total == 0.0


def test_dismissing_is_right_only_where_nothing_is_wrong():
    assert played(QUIET, Action("ignore")).score.total == 1.0
    assert played(FAULTY, Action("ignore")).score.total == 0.0
    truth = production_case("train", FAULTY).truth
    assert played(FAULTY, blames(truth.root), Action("ignore")).score.total == 0.0
    service = production_case("train", QUIET).services[0]
    blamed = played(QUIET, blames(service), Action("ignore"))
    assert blamed.score.total == 0.0
    assert not production_episode.found_root(blamed.record, blamed.case)


def test_the_truth_is_nowhere_before_the_end():
    for index in range(12):
        episode = ProductionEpisode.open("test", index)
        truth = episode.case.truth
        texts = [repr(episode.incident), render(episode.opening, episode.incident.topology)]
        texts += [repr(episode._ask(name)) for name in ("all", *episode.case.services)]
        text = " ".join(texts)
        assert truth.fault == "none" or truth.fault not in text
        assert truth.how not in text and "nan" not in text.lower().split()


def test_the_path_goes_up_along_calls():
    for index in range(40):
        case = production_case("train", index)
        calls = {tuple(call) for call in case.calls}
        path = case.truth.path
        assert path[:1] == ((case.truth.root,) if case.truth.root else ())
        assert all((above, below) in calls for below, above in itertools.pairwise(path))


def test_a_case_says_what_its_block_says():
    # The ranker learns from blocks and plays cases: three digits and the order are all that differ.
    block = Block("train", 2)
    numbers = features(block.seen)
    for at in (0, 5, 9):
        episode = ProductionEpisode.open("train", 2 * BLOCK + at)
        names = production_episode.names_of("train", 2 * BLOCK + at)
        graph = episode.incident.topology
        order = [names.index(name) for name in graph.names]
        seen = gather(graph, [episode.opening, episode.act(ASK_ALL)])
        played = features(arrays_of_evidence(seen))[0]
        off = np.abs(played - numbers[at][order])
        assert np.quantile(off, 0.99) < 0.1 and np.median(off) < 1e-3


def test_unknown_coordinates_are_refused():
    with pytest.raises(ValueError, match="choose one of train, test"):
        open_incident("production", "unseen_topology", 0)
    with pytest.raises(ValueError, match="-1"):
        open_incident("production", "test", -1)


@pytest.mark.parametrize("name", PRODUCTION_POLICIES)
def test_every_policy_plays_to_the_end(name):
    policy = PRODUCTION_POLICIES[name](0)
    episodes = [ProductionEpisode.open("test", index) for index in range(4)]
    for result in policy.play(episodes):
        assert result.episode.record.closed_by in ("resolve", "ignore")
        way = result.episode.record.root_causes
        calls = {tuple(call) for call in result.episode.case.calls}
        assert all((above, below) in calls for below, above in itertools.pairwise(way))


def test_the_path_to_users_follows_who_suffers_most_and_ends_where_nobody_does():
    callers = {"db": ["cart", "ads"], "cart": ["web"], "ads": ["web"], "web": []}
    hurts = {"db": 0.0, "cart": 0.5, "ads": 0.7, "web": 0.2}
    path = production_episode.path_to_users
    assert path("db", callers.get, hurts.get) == ["db", "ads", "web"]
    assert path("db", callers.get, (hurts | {"web": 0.09}).get) == ["db", "ads"]
