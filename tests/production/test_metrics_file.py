"""A cluster's own metrics, as a file: read as an incident, ranked, and refused."""

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from typer.testing import CliRunner

from logtriage.__main__ import app
from logtriage.production.metrics_file import COLUMNS, rank_metrics, read_metrics
from logtriage.production.production_cases import production_case
from logtriage.world.call_graph import CallGraph, Service

BEFORE, EVERY = 40, 60  # samples before the window, seconds from one to the next
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
    case, random = production_case("test", index), Random(index)
    callees = {name: [b for a, b in case.calls if a == name] for name in case.services}
    graph = CallGraph(tuple(Service(name, "unknown", tuple(callees[name])) for name in callees))
    rows = []
    for one in case.measures:
        ends = one.low or 0.0, one.high or 0.0
        quiet = [random.uniform(*ends) for _ in range(BEFORE)]
        values = [*quiet, *("" if value is None else value for value in one.values)]
        rows += series(values, one.service, one.name)
    return case, graph, rows


def test_the_window_is_the_last_samples_and_the_rest_tells_what_is_usual(tmp_path):
    path = written(tmp_path / "m.csv", series([*range(90, 111), 100, "", 101, 240, 250, 260]))
    evidence, read = read_metrics(path, SHOP)
    measure = evidence.measures["cart"]["p95"]
    assert measure.values == (100.0, None, 101.0, 240.0, 250.0, 260.0)
    assert (measure.usual, measure.low, measure.high) == (100.0, 91.0, 109.0)
    assert measure.deviation == pytest.approx(1.4826 * 5)
    assert "6 samples, one every 60 s from 2026-06-20 13:21:00Z on, and 21 before" in read


def test_where_the_trouble_began_can_be_said(tmp_path):
    rows = series([*[100] * 30, *[240] * 20, *[100] * 10])
    path = written(tmp_path / "m.csv", rows)
    evidence, _ = read_metrics(path, SHOP, at(30))
    assert evidence.measures["cart"]["p95"].values == (100.0, 100.0, *[240.0] * 4)
    stamps = [(int(START.timestamp()) + EVERY * n, *rest) for n, (_, *rest) in enumerate(rows)]
    again, _ = read_metrics(written(tmp_path / "unix.csv", stamps), SHOP, at(30))
    assert again == evidence


def test_a_simulated_incident_is_ranked_as_its_case_would_be(tmp_path):
    right = []
    for index in range(12):
        case, graph, rows = whole_case(index)
        answer = rank_metrics(written(tmp_path / "m.csv", rows), graph)
        right.append(answer.suspects[0][0] == case.truth.root)
        assert sum(chance for _, chance in answer.suspects) + answer.nothing <= 1.0 + 1e-5
        assert (answer.root != "") == (answer.suspects[0][1] >= 0.5) == (answer.sure == "possible")
    assert sum(right) >= 6  # a guess among 10 to 45 services finds one


def test_triage_prints_it(tmp_path):
    _, graph, rows = whole_case(0)
    path, shape = written(tmp_path / "m.csv", rows), tmp_path / "graph.yaml"
    shape.write_text(
        json.dumps(
            {"services": [{"name": one.name, "calls": [*one.downstream]} for one in graph.services]}
        )
    )
    command = ["triage", "--metrics", str(path), "--graph", str(shape)]
    told = CliRunner().invoke(app, command)
    answer = rank_metrics(path, graph)
    assert told.stdout == answer.text() + "\n" and told.exit_code == (0 if answer.root else 3)
    assert f"suspects: {answer.suspects[0][0]} " in told.stdout
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert found["suspects"][0][0] == answer.suspects[0][0] and found["read"] == answer.read
    for more in (["app.log"], ["--policy", "trace"]):
        refused = CliRunner().invoke(app, [*command, *more])
        assert refused.exit_code == 1 and "--metrics goes with --graph" in refused.stderr


def test_a_quiet_cluster_is_not_enough_evidence(tmp_path):
    rows = [row for name in ("web", "cart") for row in series([100, 101, 99] * 15, name)]
    answer = rank_metrics(written(tmp_path / "m.csv", rows), SHOP)
    assert not answer.root and answer.text().startswith("not enough evidence: ")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (series([100] * 17), "11 samples before the window of 6, at least 12 are needed"),
        (series([100]), "no metric has samples of two times"),
        (series([100] * 30, "shop"), "unknown service 'shop'; known are web, cart"),
        (series([100] * 30, metric="p99"), "unknown metric 'p99'; known are latency, p95"),
        (series([*[100] * 30, "inf"]), "'inf' is no value; give a number"),
        (series([*[100] * 30, "fast"]), "'fast' is no value; give a number"),
        ([("noon", "cart", "p95", 1)], "'noon' is no time; write ISO 8601"),
        ([], "expected rows under the header time,service,metric,value"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, rows, told):
    with pytest.raises(ValueError, match=r"m\.csv: ") as refused:
        read_metrics(written(tmp_path / "m.csv", rows), SHOP)
    assert told in str(refused.value)


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
