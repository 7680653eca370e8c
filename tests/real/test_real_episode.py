"""Real incidents as episodes: played to their end, and the truth nowhere before."""

import pytest

from logtriage.play.actions import Action
from logtriage.play.observation import three_digits
from logtriage.play.prompts import render
from logtriage.real import real_episode as real
from logtriage.real import real_rows as rows
from logtriage.real.cases import SOURCES, Series, load_source


def every_case():
    return [(source, i) for source in SOURCES for i in range(len(load_source(source).cases))]


@pytest.mark.parametrize("source", SOURCES)
def test_every_case_plays_to_its_end(source):
    for index, case in enumerate(load_source(source).cases):
        right, wrong = real.RealEpisode.open(source, index), real.RealEpisode.open(source, index)
        shown = [render(right.opening, right.incident.topology)]
        shown.append(render(right.act(Action("request_more_logs", ("all",)))))
        for service in case.services[: real.MAX_STEPS - 5]:
            shown.append(render(right.act(Action("request_more_logs", (service,)))))
        assert "nan" not in "\n".join(shown).lower().split()
        right.act(Action("identify_root_cause", (case.truth.root,)))
        assert right.score is None
        right.act(Action("resolve"))
        assert right.done and right.score.total == right.score.root_cause == right.score.gate == 1.0
        wrong.act(
            Action("identify_root_cause", (next(s for s in case.services if s != case.truth.root),))
        )
        wrong.act(Action("identify_root_cause", (case.truth.root,)))
        wrong.abandon()
        assert wrong.record.closed_by == "timeout" and wrong.score.total == 0.0
        assert real.top(wrong.record.root_causes, case)


def test_the_truth_is_nowhere_before_the_end():
    """Neither the fault, nor where the source tells of it, nor more of the root than of others."""
    for source, index in every_case():
        episode = real.RealEpisode.open(source, index)
        truth, services = episode.incident.case.truth, episode.incident.topology.names
        shown = [repr(episode.incident), repr(episode.opening)]
        shown += [repr(episode._ask(name)) for name in ("all", *services)]
        text = " ".join(shown)
        assert truth.how == "" or truth.how not in text
        assert truth.origin not in text
        assert truth.fault not in text or truth.fault in ("errors", "exception", "return")
        assert truth.root not in repr(episode.incident)


def test_a_question_about_a_service_brings_all_that_is_on_record_of_it():
    episode = real.RealEpisode.open("nezha-trainticket", 0)
    case, service = episode.incident.case, "ts-basic-service"
    seen = episode.act(Action("request_more_logs", (service,)))
    assert {row.service for row in (*seen.metrics, *seen.measures, *seen.counts)} == {service}
    assert len(seen.measures) == len(case.metrics[service])
    assert {service} <= {one.caller for one in seen.calls} | {one.callee for one in seen.calls}
    assert all(service in (one.caller, one.callee) for one in seen.calls)
    assert len(seen.lines) == len(case.logs[service])
    assert all(line.split()[:2] == ["INFO", service] for line in seen.lines)
    everything = episode.act(Action("request_more_logs", ("all",)))
    assert len(everything.measures) == sum(map(len, case.metrics.values()))
    assert len(everything.calls) == len(case.edges.rows) and everything.lines is None


def test_calls_are_told_as_their_caller_feels_them():
    boutique = real.RealEpisode.open("nezha-onlineboutique", 0).incident.case
    row = dict(zip(boutique.edges.columns, boutique.edges.rows[0], strict=True))
    call = rows.call_times(boutique)[0]
    assert (call.wait, call.served) == (row["client_p50_ms"], row["server_p50_ms"])
    tickets = real.RealEpisode.open("nezha-trainticket", 0).incident.case
    row = dict(zip(tickets.edges.columns, tickets.edges.rows[0], strict=True))
    call = rows.call_times(tickets)[0]
    assert call.wait == row["callee_p90_ms"] + row["beyond_p90_ms"]
    assert call.rate == row["calls_per_min"]


def test_availability_is_told_as_errors():
    case = load_source("petshop").cases[0]
    (alert,) = rows.alerts(case)
    assert (alert.metric, alert.value) == ("errors", three_digits(100.0 - case.alerts[0].value))
    table = {row.service: row for row in rows.metrics(case)}
    worst = min(case.metrics[alert.service]["availability_pct"].values[case.window.zero :])
    assert table[alert.service].errors == three_digits(100.0 - worst)


@pytest.mark.parametrize(
    "values, usual, expected",
    [((9, 1, 5), 2, 5), ((9, 3, 0), 2, 0), ((9, 1, None), 2, 1), ((9, None, None), 2, None)],
)
def test_the_current_value_is_the_farthest_from_usual_since_zero(values, usual, expected):
    series = Series(values=[None if v is None else float(v) for v in values], usual=float(usual))
    assert rows.current(series, zero=1) == expected
    assert rows.current(Series(values=[1.0, 2.0]), zero=0) == 2.0  # of no usual the last
