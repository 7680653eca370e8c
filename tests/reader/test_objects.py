"""Records of JSON and CSV, on lines and in documents."""

import io
import json
import time
from functools import partial

import pytest
from shop_log import read_in_parts

from logreader import objects
from logreader.levels import CALM, ERROR, FAILED, FATAL, WARN
from logreader.lines import Reading
from logreader.log import read_named, read_text
from logreader.objects import objects_in, objects_of, records_in

AT = 1795316645
WHO = ("web", "cart", "cart-db")
LEVELS = ("info", "info", "error")


def counted(log):
    """(service, level) to lines."""
    tally, counts = log.tally, {}
    for (_, number), lines in tally.counts.items():
        shape = tally.shapes[number]
        key = (tally.services[shape.service], shape.level)
        counts[key] = counts.get(key, 0) + lines
    return counts


def iso(second):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def rows(n):
    """(second, level, service, text)"""
    said = "request {} of a customer who has to wait"
    return [(AT + i, LEVELS[i % 3], WHO[i % 3], said.format(i)) for i in range(n)]


def plain(n):
    keys = ("time", "level", "service", "message")
    return [dict(zip(keys, (iso(at), *row), strict=True)) for at, *row in rows(n)]


def otlp(n):
    def record(at, level, text):
        head = {"timeUnixNano": str(at * 10**9), "severityText": level.upper()}
        return {**head, "body": {"stringValue": text}}

    def batch(name):
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]}
        records = [record(at, level, text) for at, level, who, text in rows(n) if who == name]
        return {"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": records}]}

    return {"resourceLogs": [batch(name) for name in WHO]}


def loki(n):
    def stream(name, level):
        values = [[str(at * 10**9), text] for at, _, who, text in rows(n) if who == name]
        return {"stream": {"app": name, "level": level}, "values": values}

    return {"status": "success", "data": {"result": [*map(stream, WHO, LEVELS)]}}


def elasticsearch(n):
    hits = []
    for at, level, who, text in rows(n):
        source = {"@timestamp": iso(at), "log": {"level": level}, "service": {"name": who}}
        hits.append({"_index": "logs", "_source": {**source, "message": text}})
    return {"took": 3, "hits": {"total": {"value": n}, "hits": hits}}


def holds_all(text, n):
    log = read_text(text)
    third = n // 3
    assert counted(log) == {("web", CALM): third, ("cart", CALM): third, ("cart-db", ERROR): third}
    assert {bucket for bucket, _ in log.tally.counts} == set(range(AT, AT + n))


@pytest.mark.parametrize("size", [1 << 20, 16_000])  # a third of OTLP is held at once
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("document", [plain, otlp, loki, elasticsearch])
def test_every_document_tells_the_same_and_is_read_whole(document, indent, size, monkeypatch):
    read_in_parts(monkeypatch, size)
    holds_all(json.dumps(document(300), indent=indent), 300)


@pytest.mark.parametrize("indent", [None, 1])
def test_an_object_has_the_line_that_it_begins_on(indent):
    rows = [{"service": "web", "message": f"{i} of \n lines"} for i in range(20)]
    data = ("\n\n" + json.dumps(rows, indent=indent)).encode()
    reading = Reading()
    parts = iter(partial(io.BytesIO(data).read, 37), b"")
    values = list(objects_in(parts, reading))
    begins = [2] * 20 if indent is None else [3 + 4 * i for i in range(20)]
    assert values == list(zip(rows, begins, strict=True))
    assert reading.lines == data.count(b"\n")


def test_of_what_is_no_json_the_rest_is_read():
    data = b'[{"a": 1}, {"b": nonsense}, {"c": {"d": 2}}, {"e": "'
    assert [value for value, _ in objects_in([data], Reading())] == [{"a": 1}, {"c": {"d": 2}}]


@pytest.mark.parametrize(
    ("field", "level"),
    [
        ({"level": 50}, ERROR),  # pino
        ({"PRIORITY": "3"}, ERROR),  # syslog
        ({"severityLevel": 2}, WARN),  # Azure
        ({"log.level": "CRITICAL"}, FATAL),
        ({"path": "/x", "status": 503}, FAILED),
        ({"path": "/x", "status": 503, "level": "info"}, FAILED),
        ({"error": {"message": "connection refused"}}, ERROR),
        ({"severityNumber": 17}, ERROR),  # OTLP
    ],
)
def test_the_level_of_a_record_is_found(field, level):
    rows = [{"ts": AT + i, "service": WHO[i % 3], "msg": f"no {i}", **field} for i in range(9)]
    assert {stated for _, stated in counted(read_text("\n".join(map(json.dumps, rows))))} == {level}


def test_a_namespace_does_not_speak():
    texts = ("page is shown", "basket is saved", "mail is sent")
    rows = []
    for i in range(60):
        pod = {"namespace_name": "kube-system" if i % 2 else "shop", "container_name": WHO[i % 3]}
        rows.append({"date": AT + i, "log": f"{texts[i % 3]} {i}", "kubernetes": pod})
    assert set(read_text("\n".join(map(json.dumps, rows))).tally.services) == set(WHO)


def test_an_error_that_begins_after_the_sample_is_read():
    calm = {"service": "web", "level": "info", "msg": "served"}
    failed = {"service": "web", "level": "error", "msg": "failed", "err": "no such host"}
    rows = [{"ts": AT + i, **(calm if i < 3_000 else failed)} for i in range(3_010)]
    log = read_text("\n".join(map(json.dumps, rows)))
    assert "failed no such host" in {shape.example for shape in log.tally.shapes}


def test_whom_a_record_names_as_its_upstream_is_part_of_what_it_says():
    row = {"service": "web", "level": "error", "msg": "request failed", "upstream": "cart"}
    log = read_text("\n".join(json.dumps({"ts": AT + i, **row}) for i in range(9)))
    assert {shape.example for shape in log.tally.shapes} == {"request failed cart"}


def test_a_time_that_is_half_a_surrogate_pair_is_no_time():
    rows = [{"ts": "2026-11-22T03:00:00Z", "service": "web", "msg": "no"}] * 9
    log = read_text("\n".join(map(json.dumps, [*rows, {**rows[0], "ts": "\ud800"}])))
    assert log.tally.records == 10 and log.files[0].layout.zoned


@pytest.mark.parametrize("records", [1, 2, 3])
def test_few_records_are_of_the_service_that_they_name(records):
    rows = [{"ts": AT + i, "service": "web", "msg": f"no {i}"} for i in range(records)]
    assert read_text("\n".join(map(json.dumps, rows))).tally.services == ["web"]


def test_what_is_nested_in_a_record_is_found():
    texts = [json.dumps({"level": "warn", "msg": f"slow {i}"}) for i in range(9)]
    rows = [
        {"@timestamp": iso(AT), "kubernetes": {"container_name": WHO[i % 3]}, "log": text}
        for i, text in enumerate(texts)
    ]
    log = read_text("\n".join(map(json.dumps, rows)))
    assert counted(log) == {(who, WARN): 3 for who in WHO}
    assert {bucket for bucket, _ in log.tally.counts} == {AT}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_rows_of_a_table_are_records(mark, delimiter):
    table = [["service", "time", "level", "message"]]
    table += [[who, iso(at), level, text] for at, level, who, text in rows(30)]
    holds_all(mark + "\n".join(map(delimiter.join, table)), 30)


@pytest.mark.parametrize("between", ["", "an empty page\n"])
def test_a_row_of_several_lines_has_the_number_of_its_first(between):
    rows = ['web,info,"one\ntwo\nthree"', "cart,info,fine", f'web,error,"{between}no\nroom"']
    text = "\n".join(["service,level,message", *rows * 3])
    begins = [line for _, line in objects.csv_rows(",", [text.encode()], Reading())]
    long = 3 + bool(between)
    step = 4 + long - 1
    assert begins == [1 + step * i + at for i in range(3) for at in (0, 3, 4)]
    tally = read_text(text).tally
    assert [shape.at for shape in tally.shapes if shape.level == ERROR] == [(0, 5)]


def test_a_line_of_json_lines_has_its_number_whatever_stands_before():
    rows = [json.dumps(row) for row in plain(30)]
    rows[5] = "no json at all"
    rows[7] = '{"message": "' + "x" * 100_000 + '"}'
    rows += [json.dumps({**plain(1)[0], "level": "fatal", "message": "the last"})]
    tally = read_named({"log": "\n".join(rows).encode()}).tally
    (last,) = [shape for shape in tally.shapes if shape.level == FATAL]
    assert last.at == (0, 30) and tally.records == 31


@pytest.mark.parametrize(
    "text",
    ["{" * 100_000, '{"' * 100_000, "[" * 100_000, '{"a":' * 50_000, '{"a": "x', "", "1 2", "\0"],
)
def test_what_is_no_whole_object_is_none(text):
    began = time.process_time()
    assert objects_of(text) in ([], [""])
    list(objects_in([text.encode()], Reading()))
    read_text(text + "\n" + text)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("depth", [50, 300, 900])
@pytest.mark.parametrize("pair", [('{"a":', "}"), ("[", "]"), ('{"msg":', "}"), ('[{"b":', "}]")])
def test_a_deep_object_is_read_or_left_but_not_followed_for_ever(pair, depth):
    row = '{"a":' + pair[0] * depth + "1" + pair[1] * depth + "}\n"
    assert read_text(row + '{"msg": "x", "level": "error"}\n' * 3).tally.records >= 3


def test_records_of_a_batch_have_what_stands_around_them():
    batch = {"host": "n1", "events": [{"msg": "a"}, {"msg": "b", "host": "n2"}]}
    assert list(records_in(batch)) == [{"host": "n1", "msg": "a"}, {"host": "n2", "msg": "b"}]
    assert list(records_in([1, None, "x", {}])) == [{}]
