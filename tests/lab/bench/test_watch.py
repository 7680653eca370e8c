"""A policy watched in the terminal, and the README's first picture, of the same incident."""

from xml.etree import ElementTree

from helpers import refusal, run

from logtriage.play.actions import Action
from logtriage.play.episode import Episode, final_score
from logtriage.policies.scripted import LoudestPolicy
from logtriage.recorded import AFTER, BEFORE, CHOSEN, GAINED, LOST, WHY, recorded_actions
from triagelab.bench import watch
from triagelab.bench.published import RESULTS, read
from triagelab.bench.smollm2_stages import FILE, WATCHED, policy_of
from triagelab.reference.belief import BeliefPolicy


def test_the_language_model_is_watched_as_it_is_recorded():
    done = run("watch", "--pause", 0)
    assert done.exit_code == 0
    assert done.output.index(BEFORE) < done.output.index(AFTER)
    lines = [line for line in done.output.splitlines() if "score: " in line]
    by_column = {line.index("score: "): float(line.split("score: ")[1]) for line in lines}
    assert [by_column[column] > 0.5 for column in sorted(by_column)] == [False, True]
    assert "name both" in refusal("watch", "--beside", "base")
    assert "is not recorded on incident 200 of test" in refusal("watch", "--index", 200)


def test_a_script_that_is_recorded_plays_nevertheless():
    ((_, policy),) = watch.players_of(["belief"], *CHOSEN)
    assert isinstance(policy, BeliefPolicy)


def test_two_policies_play_one_incident_side_by_side():
    asked = ("watch", "loudest", "--beside", "trace", "--index", 7, "--pause", 0)
    done = run(*asked)
    assert done.exit_code == 0
    assert "bad deploy at notification-service" in done.output
    assert done.output.count("score: ") == 2
    assert done.output.index("trace") < done.output.index("loudest")  # as before and after
    assert "(it was: " in done.output  # `loudest` blames the edge, in red
    for arguments, message in (
        (("nobody",), "no such folder"),
        (("trace", "--task", "crash"), "unknown task"),
        (("trace", "--split", "tests"), "unknown split"),
    ):
        assert message in refusal("watch", *arguments)


def telling(before, after):
    """The cascades of `test` that show best what was learned, the best first.

    `before` and `after` are the episodes of a model before and after GRPO, by incident. At first it
    blames another service than the root and scores below 0.5, and then above 0.9; the loudest
    service is not the root, and the team to page is the root's owner. Deep roots come first, then
    short episodes.
    """
    learned = (before["score"] < 0.5) & (before["root_cause"] == 0.0) & (after["score"] > 0.9)
    ranked = []
    for index in after.index[learned]:
        episode = Episode.open("cascading_failure", "test", int(index))
        incident, loudest = episode.incident, LoudestPolicy()
        loudest.open(episode)
        graph, root = incident.topology, str(incident.root)
        if loudest.loudest() != root and incident.team == graph.service(root).owner:
            ranked.append((-graph.depth[root], after["steps"][index], index))
    return [index for _, _, index in sorted(ranked)]


def test_what_it_shows_by_default_is_chosen_by_a_rule():
    frame = read(FILE)
    frame = frame[(frame["task"] == "cascading_failure") & (frame["split"] == "test")]
    before, after = (
        frame[frame["policy"] == policy_of(stage)].set_index("index").sort_index()
        for stage in (WATCHED[BEFORE], WATCHED[AFTER])
    )
    assert telling(before, after)[0] == CHOSEN[-1]
    gained = (before["score"] < 0.5) & (after["score"] > 0.5)
    reverse = (before["score"] > 0.5) & (after["score"] < 0.5)
    assert (gained.sum(), reverse.sum(), len(gained)) == (GAINED, LOST, 100)
    assert f"in {GAINED} of {len(gained)} cascades; the reverse happens in {LOST}" in WHY
    chosen = run("watch", "trace", "--pause", 0)
    assert "Chosen since" in chosen.output and f"incident {CHOSEN[-1]} of test" in chosen.output
    assert "Chosen since" not in run("watch", "trace", "--index", 7, "--pause", 0).output


def test_the_picture_shows_what_is_recorded():
    """It was drawn by `triagelab/bench/picture.py` of commit `ecd8a8cd`; change it by hand."""
    picture = ElementTree.parse(RESULTS.parent / "docs" / "incident.svg")
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    incident = Episode.open(*CHOSEN).incident
    assert f"so were {GAINED} of 100 cascades; the reverse happened in {LOST}." in texts
    assert any(text.startswith(f"It began at {incident.root};") for text in texts)
    for name in (BEFORE, AFTER):
        episode = Episode.open(*CHOSEN)
        for action in map(Action.from_text, recorded_actions(*CHOSEN)[name]):
            episode.act(action)
            said = " on ".join(action.args)
            assert any(text.endswith(said) for text in texts), action
        assert f"{final_score(episode).total:.2f}" in texts
