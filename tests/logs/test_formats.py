"""Ways to write a log: each is recognised, and says the same."""

import json
import time

import pytest
import samples

from logtriage.logs.formats import recognise
from logtriage.logs.log import read_log, read_text
from logtriage.logs.structured import pairs_of

NAMED = {"journald json": "journald"}


def counted(log):
    """(service, level) to lines."""
    tally, counts = log.tally, {}
    for (_, service, shape), lines in tally.counts.items():
        key = (tally.services[service], tally.shapes[shape].level)
        counts[key] = counts.get(key, 0) + lines
    return counts


@pytest.mark.parametrize("name", samples.WRITTEN)
def test_every_format_tells_the_same(name):
    log = read_text(samples.written(name))
    assert log.files[0].format.name == NAMED.get(name, name)
    assert log.tally.records == len(samples.shop())
    assert counted(log) == counted(read_text(samples.written("json")))
    seconds = sorted(bucket for bucket, _, _ in log.tally.counts)
    expected = sorted({int(at.timestamp()) for at, _ in samples.shop()})
    first, last = expected[0], expected[-1]
    assert seconds[-1] - seconds[0] == last - first


@pytest.mark.parametrize("name", samples.LOGHUB)
def test_every_line_of_a_sample_is_a_record_with_a_time(name):
    text = samples.loghub(name)
    log = read_text(text)
    assert log.tally.records == len(text.splitlines())
    assert all(bucket >= 0 for bucket, _, _ in log.tally.counts)


def test_files_are_of_the_services_in_their_names(tmp_path):
    at = "2026-11-22T03:04:05.123456789Z"
    files = {
        "cart.log": f"{at} stdout F ERROR disk full\n",  # a file of a node
        "web.log": json.dumps({"log": "WARN slow\n", "stream": "stderr", "time": at}) + "\n",
        "mail.log": f"{at} INFO sent\n",  # docker logs -t
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text * 3)
    log = read_log([tmp_path / name for name in files])
    assert [file.format.name for file in log.files] == ["kubernetes", "docker", "text"]
    assert counted(log) == {("cart", 3): 3, ("web", 2): 3, ("mail", 1): 3}
    assert {bucket for bucket, _, _ in log.tally.counts} == {1795316645}


def test_a_document_of_many_records_is_read():
    rows = [json.loads(line) for line in samples.written("json").splitlines()[:50]]
    assert read_text(json.dumps(rows, indent=1)).tally.records == 50
    one = json.loads(samples.written("otlp").splitlines()[0])
    log = read_text(json.dumps(one, indent=2))
    assert log.files[0].format.document and log.tally.records == 1
    many = {"resourceLogs": one["resourceLogs"] * 30}
    assert read_text(json.dumps(many)).tally.records == 30


def test_what_is_nested_in_a_record_is_found():
    at = "2026-11-22T03:04:05Z"
    rows = [
        {"@timestamp": at, "log": {"level": "error"}, "service": {"name": "cart"}, "message": "no"},
        {"ts": 1795316645.5, "level": 50, "kubernetes": {"container_name": "cart"}, "msg": "no"},
        {"time": at, "severity": "ERROR", "app": "cart", "event": "no", "error": {"message": "x"}},
        {"timestamp": at, "path": "/x", "status": 503, "service": "cart", "message": "GET /x"},
    ]
    log = read_text("\n".join(map(json.dumps, rows)))
    assert counted(log) == {("cart", 3): 3, ("cart", 4): 1}
    assert {bucket for bucket, _, _ in log.tally.counts} == {1795316645}


def test_text_with_json_after_its_time_is_read():
    line = '2026-11-22T03:04:05Z {"level":"warn","service":"cart","msg":"slow"}'
    assert counted(read_text(f"{line}\n{line}")) == {("cart", 2): 2}


def test_of_a_stack_trace_what_happened_is_counted():
    lines = [
        "2026-11-22 03:04:05 ERROR [main] cart: request failed",
        "java.lang.IllegalStateException: no pool",
        "\tat com.example.Cart.load(Cart.java:12)",
        "Caused by: java.net.ConnectException: refused by basket-db:5432",
        "\t... 12 more",
        "2026-11-22 03:04:06 INFO [main] cart: done",
    ]
    log = read_text("\n".join(lines))
    assert log.tally.records == 4 and log.files[0].reading.lines == 6


def test_a_journal_entry_may_have_line_ends():
    message = b"first line\nERROR second line"
    entry = (
        b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795316645000000\n_SYSTEMD_UNIT=web.service\n"
        b"PRIORITY=3\nMESSAGE\n" + len(message).to_bytes(8, "little") + message + b"\n"
        b"COREDUMP\n" + (5).to_bytes(8, "little") + b"\x00\n\n\n\x7f\n_PID=7\n\n"
    )
    log = read_text((entry * 2).decode())
    assert counted(log) == {("web", 3): 2}
    assert "first line" in log.tally.shapes[0].example


@pytest.mark.parametrize("lines", [[], [b""], [b"\x00\xff"], [b"{"], [b"["], [b"{}"], [b"[1, 2]"]])
def test_anything_has_a_format(lines):
    reader = recognise(lines).reader()
    list(reader(lines))


def test_pairs_may_have_escaped_quotes():
    assert pairs_of(rb'ts=1 k8s.pod="a" msg="say \"no\" x=1" user@x= left') == [
        {"ts": "1", "k8s.pod": "a", "msg": r"say \"no\" x=1", "user@x": ""}
    ]


def test_a_long_word_is_read_in_time():
    # A line of 64 KiB took 45 seconds when a key was looked for from each of its letters.
    began = time.process_time()
    for line in (b"a" * 65_000 + b"\\", b'a="' + b"\\a" * 32_000, b'="\\' * 16_000):
        pairs_of(line)
    assert time.process_time() - began < 2.0


def test_a_mark_is_taken_off_only_where_a_line_begins():
    # A sign like it further on is of the text: here it ends the time.
    lines = [b"web-1  | up"] * 6 + [b"(2026-11-22T03:04:05 | up"] * 4
    found = recognise(lines)
    assert found.name == "compose" and found.dated == "date"
