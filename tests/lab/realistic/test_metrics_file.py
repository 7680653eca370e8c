"""A cluster's own metrics, as a file: read as an incident, ranked, and refused."""

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from typer.testing import CliRunner

from logtriage.__main__ import app
from logtriage.world.call_graph import CallGraph, Service
from triagelab.real.real_episode import call_graph
from triagelab.realistic.metrics_file import COLUMNS, rank_metrics, read_metrics
from triagelab.realistic.production_episode import production_case

BEFORE, EVERY = 20, 60  # samples before the window, seconds from one to the next
START = datetime(2026, 6, 20, 13, tzinfo=UTC)
SHOP = CallGraph((Service("web", "edge", ("cart",)), Service("cart", "app")))


def written(path, rows, header=COLUMNS):
    lines = [",".join(map(str, row)) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def at(number):
    return (START + timedelta(seconds=EVERY * number)).isoformat()


def series(values, service="cart", metric="p95"):
    return [(at(number), service, metric, value) for number, value in enumerate(values)]


def whole_case(index):
    """A simulated incident as a file, with a quiet time before it, and its call graph."""
    case, random, rows = production_case("test", index), Random(index), []
    for row in case.measures:
        ends = row.low or 0.0, row.high or 0.0
        quiet = [random.uniform(*ends) for _ in range(BEFORE)]
        values = [*quiet, *("" if value is None else value for value in row.values)]
        rows += series(values, row.service, row.name)
    return case, call_graph(case), rows


def test_the_window_is_the_last_samples_and_the_rest_tells_what_is_usual(tmp_path):
    path = written(tmp_path / "m.csv", series([*range(90, 111), 100, "", 101, 240, 250, 260]))
    evidence, read = read_metrics(path, SHOP)
    measure = evidence.measures["cart"]["p95"]
    assert measure.values == (100.0, None, 101.0, 240.0, 250.0, 260.0)
    assert (measure.usual, measure.low, measure.high) == (100.0, 91.0, 109.0)
    assert measure.deviation == pytest.approx(1.4826 * 5)
    assert "6 samples, one every 60 s from 2026-06-20 13:21:00Z on, and up to 21 before" in read


def test_where_the_trouble_began_can_be_said(tmp_path):
    rows = series([*[100] * 30, *[240] * 20, *[100] * 10])
    path = written(tmp_path / "m.csv", rows)
    evidence, _ = read_metrics(path, SHOP, at(30))
    assert evidence.measures["cart"]["p95"].values == (100.0, 100.0, *[240.0] * 4)
    stamps = [(int(START.timestamp()) + EVERY * n, *rest) for n, (_, *rest) in enumerate(rows)]
    again, _ = read_metrics(written(tmp_path / "unix.csv", stamps), SHOP, at(30))
    assert again == evidence


def test_a_simulated_incident_is_read_as_its_case_and_ranked(tmp_path):
    right = []
    for index in range(12):
        case, graph, rows = whole_case(index)
        path = written(tmp_path / "m.csv", rows)
        evidence, _ = read_metrics(path, graph)
        for row in case.measures:
            read = evidence.measures.get(row.service, {}).get(row.name)
            assert (read.values if read else (None,) * 6) == pytest.approx(row.values)
            if read and row.low is not None:
                assert row.low <= read.low <= read.usual <= read.high <= row.high
        answer = rank_metrics(path, graph)
        right.append(answer.suspects[0][0] == case.truth.root)
        assert (answer.root != "") == (answer.suspects[0][1] >= 0.5) == (answer.sure == "possible")
    assert sum(right) >= 6  # of twelve: a guess among 10 to 45 services finds none


def test_who_has_no_past_is_not_compared_with_it(tmp_path):
    # A pod that is new: one earlier sample says nothing of what is usual.
    rows = [*series([100, 101] * 20, "web"), *((at(33 + n), "cart", "p95", 100) for n in range(7))]
    evidence, read = read_metrics(written(tmp_path / "m.csv", rows), SHOP)
    assert evidence.measures["cart"]["p95"].usual is None
    assert evidence.measures["web"]["p95"].usual == 100.5
    assert read.endswith("up to 34 before; 2 of 2 services have metrics then")


def test_one_service_that_lags_or_runs_ahead_does_not_move_the_window(tmp_path):
    slow = [*[100] * 34, 100, 100, *[240] * 4]
    late = [(at(39 + n), "web", "p95", value) for n, value in enumerate([100, "", "", 100])]
    rows = [*series(slow), *series([100] * 40, metric="latency"), *series([100] * 40, "web")]
    rows += late[1:]
    evidence, _ = read_metrics(written(tmp_path / "m.csv", rows), SHOP)
    assert evidence.measures["cart"]["p95"].values == (100.0, 100.0, *[240.0] * 4)
    assert evidence.measures["web"]["p95"].values == (100.0,) * 6


def test_triage_prints_it(tmp_path):
    _, graph, rows = whole_case(0)
    path, shape = written(tmp_path / "m.csv", rows), tmp_path / "graph.yaml"
    services = [
        {"name": service.name, "calls": [*service.downstream]} for service in graph.services
    ]
    shape.write_text(json.dumps({"services": services}))
    command = ["triage", "--metrics", str(path), "--graph", str(shape)]
    printed = CliRunner().invoke(app, command)
    answer = rank_metrics(path, graph)
    assert printed.stdout == answer.text() + "\n" and printed.exit_code == (0 if answer.root else 3)
    assert f"suspects: {answer.suspects[0][0]} " in printed.stdout
    as_json = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert as_json["suspects"][0][0] == answer.suspects[0][0] and as_json["read"] == answer.read
    assert printed.stdout.splitlines()[-1].startswith(
        f"read {path}: 6 samples, one every 60 s from "
    )
    for arguments, says in (
        ([*command, "app.log"], "--metrics is asked by itself"),
        ([*command, "--policy", "trace"], "--metrics is asked by itself"),
        (command[:3], "--metrics needs the call graph"),
        (["triage", "app.log", "--began", at(0)], "--began belongs to --metrics"),
        (["triage"], "nothing to read; name log files"),
        ([*command, "--began", "noon"], "--began: 'noon' is no time"),
        ([*command[:2], "gone.csv", *command[3:]], "cannot read gone.csv: no such file"),
    ):
        refused = CliRunner().invoke(app, arguments)
        assert refused.exit_code == 1 and says in refused.stderr, refused.output


def test_a_quiet_cluster_is_not_enough_evidence(tmp_path):
    rows = [row for name in ("web", "cart") for row in series([100, 101, 99] * 15, name)]
    answer = rank_metrics(written(tmp_path / "m.csv", rows), SHOP)
    assert not answer.root and answer.text().startswith("not enough evidence: ")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (series([100] * 17), "11 samples before the window of 6, at least 12 are"),
        (series([100]), "no metric has samples of two times"),
        (series([100] * 30, "shop"), "unknown service 'shop'; known are web, cart"),
        (series([100] * 30, metric="p99"), "unknown metric 'p99'; known are latency, p95"),
        (series([*[100] * 30, "inf"]), "'inf' is no value; give a number"),
        (series([*[100] * 30, "fast"]), "'fast' is no value; give a number"),
        ([("noon", "cart", "p95", 1)], "'noon' is no time; write ISO 8601"),
        ([(1_781_960_000_000, "cart", "p95", 1)], "or Unix seconds (not milliseconds)"),
        ([("inf", "cart", "p95", 1)], "'inf' is no time"),
        (series([100] * 30) * 2, "two values of p95 of cart at 2026-06-20 13:00:00Z; combine"),
        (
            [*series([1] * 90), *series([1] * 90, "web"), *series([1] * 90, metric="cpu")[::5]],
            "cpu of cart has a sample every 300 s, most metrics every 60 s; bring all to one",
        ),
        ([], "expected rows under the header time,service,metric,value"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, rows, reason):
    with pytest.raises(ValueError, match=r"m\.csv: ") as refused:
        read_metrics(written(tmp_path / "m.csv", rows), SHOP)
    assert reason in str(refused.value)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="no CSV in UTF-8"):
        read_metrics(path, SHOP)
    written(path, series([1] * 30), ("when", "service", "metric", "value"))
    with pytest.raises(ValueError, match="expected rows under the header"):
        read_metrics(path, SHOP)
    written(path, series([1] * 30))
    with pytest.raises(ValueError, match="no sample is as late as '2027-01-01'"):
        read_metrics(path, SHOP, "2027-01-01")
