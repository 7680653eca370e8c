"""Real incidents as episodes: played to their end, and the truth nowhere before."""

import hashlib

import pytest
from lab_helpers import asks, blames, secrets

from logtriage.play.actions import Action
from logtriage.play.observation import render
from triagelab.real import real_episode as real
from triagelab.real.cases import SOURCES, load_source


def test_what_an_agent_reads_of_the_cases_never_changes():
    # Published results are of these texts.
    texts = []
    for source in SOURCES:
        for index in range(len(load_source(source).cases)):
            episode = real.RealEpisode.open(source, index)
            texts.append(render(episode.opening, episode.incident.topology))
            texts.append(render(episode.act(asks("all"))))
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    assert digest[:32] == "d05e3a6718eb6cf0269e4e2fe9c698e3"


@pytest.mark.parametrize("source", SOURCES)
def test_every_case_plays_to_its_end_and_hides_the_truth_until_then(source):
    for index, case in enumerate(load_source(source).cases):
        right, wrong = real.RealEpisode.open(source, index), real.RealEpisode.open(source, index)
        root = case.truth.root
        text = " ".join(repr(right._ask(name)) for name in ("all", *case.services))
        text += render(right.opening, right.incident.topology) + repr(right.opening)
        assert "nan" not in text.lower().split()
        assert not [secret for secret in secrets(case) if secret in text]
        assert root not in repr(right.incident)

        right.act(blames(root))
        assert right.score is None
        right.act(Action("resolve"))
        assert right.done and right.score.total == right.score.root_cause == right.score.gate == 1.0
        wrong.act(blames(next(name for name in case.services if name != root)))
        wrong.act(blames(root))
        wrong.abandon()
        assert wrong.record.closed_by == "timeout" and wrong.score.total == 0.0
        assert real.blames_root(wrong.record.root_causes, case)


def test_a_question_about_a_service_shows_all_that_is_on_record_of_it():
    episode = real.RealEpisode.open("nezha-trainticket", 0)
    case, service = episode.case, "ts-basic-service"
    seen = episode.act(asks(service))
    assert {row.service for row in (*seen.metrics, *seen.measures, *seen.counts)} == {service}
    assert len(seen.measures) == sum(row.service == service for row in case.measures)
    assert seen.calls and all(service in (call.caller, call.callee) for call in seen.calls)
    assert len(seen.lines) == len(case.logs[service])
    assert all(line.split()[:2] == ["INFO", service] for line in seen.lines)
    everything = episode.act(asks("all"))
    assert everything.measures == case.measures and everything.calls == case.call_times
    assert everything.lines is None
