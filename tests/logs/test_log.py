"""Reading whole logs, in bounded memory, whatever they hold."""

import io
import json
import tracemalloc

import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.logs import tally
from logtriage.logs.answer import answer_of
from logtriage.logs.log import _bounded_document, read_log, read_text
from logtriage.logs.structured import Picker


def test_standard_input_and_files_are_one_log(tmp_path):
    file = tmp_path / "web.log"
    file.write_text("2026-11-22 03:00:00 INFO up\n")
    stdin = io.BytesIO(b"2026-11-22 03:00:01 ERROR down\n")
    log = read_log([file, "-"], stdin=stdin)
    assert log.tally.services == ["web", "log"] and log.tally.records == 2
    assert [file.name for file in log.files] == [str(file), "-"]


@pytest.mark.parametrize(
    ("name", "data", "way"),
    [
        ("web.log", b"\xff\xfeE\x00", "iconv -f UTF-16"),
        ("a b;rm.gz", b"\x1f\x8b\x08\x00", "gzip -dc '{}/a b;rm.gz' | ... triage -"),
        ("$(x).gz", b"\x1f\x8b\x08\x00", "gzip -dc '{}/$(x).gz' | ... triage -"),
        ("a\x1b[2J.gz", b"\x1f\x8b\x08\x00", "unpack it on the way"),
    ],
)
def test_a_command_takes_a_file_name_for_no_more_than_a_name(tmp_path, name, data, way):
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(ValueError) as told:
        read_log([file])
    assert str(told.value).isprintable() and way.format(tmp_path) in str(told.value)
    with pytest.raises(ValueError, match=r"gzip -dc - \| "):
        read_log(["-"], stdin=io.BytesIO(b"\x1f\x8b\x08\x00"))


def test_empty_lines_of_a_document_count():
    assert list(_bounded_document([[b"["], [b""] * 100, [b"]"]], 50)) == [b"[", *[b""] * 48]


def test_with_names_a_record_is_of_the_one_that_it_names():
    text = "ERROR basket-db is down\n2026 pod basket-db-7d9c5b7c9f-x2b4q gone\nnobody\n"
    log = read_text(text, ["web", "basket-db", "basket"])
    assert log.tally.services == ["basket-db", "log"]
    fields = read_text('{"service":"shop/basket-db-0","msg":"web"}\n' * 2, ["web", "basket-db"])
    assert fields.tally.services == ["basket-db"]


def test_a_file_of_a_known_service_is_of_it_whoever_its_lines_name(tmp_path):
    file, other = tmp_path / "web-0.log", tmp_path / "all.log"
    file.write_text("ERROR upstream basket failed\n")
    other.write_text("ERROR basket is down\n")
    assert read_log([file, other], ["basket", "web"]).tally.services == ["web", "basket"]


def test_names_that_differ_in_hexadecimal_letters_are_told_apart():
    # Calm lines of one shape are worked out once.
    text = "\n".join(f"2026-11-22 03:00:0{i} INFO {name}-db up" for i, name in enumerate("abc"))
    assert read_text(text, ["a-db", "b-db", "c-db"]).tally.services == ["a-db", "b-db", "c-db"]


def test_no_bound_is_passed(monkeypatch):
    monkeypatch.setattr(tally, "MOST_SERVICES", 5)
    monkeypatch.setattr(tally, "MOST_SHAPES", 7)
    monkeypatch.setattr(tally, "MOST_CELLS", 50)
    words = [f"{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(400)]
    lines = [
        json.dumps({"ts": 1795316645 + 37 * i, "service": f"x{one}", "level": "error", "msg": one})
        for i, one in enumerate(words)
    ]
    log = read_text("\n".join(lines))
    assert log.tally.records == 400 == sum(log.tally.counts.values())
    assert len(log.tally.services) == 6 and tally.OTHERS in log.tally.services
    assert len(log.tally.shapes) == 8 and len(log.tally.counts) <= 50
    assert log.tally.width > 1
    answer_of(log)


def test_what_is_kept_of_a_line_and_of_a_name_is_bounded():
    long = "é" * 7_000
    row = {"ts": 1795316645, "service": "web" + long, "level": long, "msg": long, long: 1}
    log = read_text(json.dumps(row, ensure_ascii=False))
    assert [len(text) for _, (_, _, _, text) in log.tally.kept()] == [tally.KEPT]
    assert max(map(len, log.tally._spelled)) == tally.SPELLING
    picker = Picker()
    picker.parts(row)
    assert not picker._known and not picker._levels


def test_memory_does_not_grow_with_the_log():
    line = b"2026-11-22 03:%02d:%02d INFO [main] web: request %d took 3 ms\n"

    class Stream:
        """Some megabytes that are nowhere at once."""

        def __init__(self, chunks):
            self.left = chunks

        def read(self, size):
            self.left -= 1
            rows = [line % (self.left % 60, i % 60, i) for i in range(1000)]
            return b"".join(rows) if self.left >= 0 else b""

    def peak(chunks):
        tracemalloc.start()
        read_log(["-"], stdin=Stream(chunks))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(24) < 1.5 * peak(6)


HOSTILE = {
    "empty": b"",
    "binary": bytes(range(256)) * 400,
    "nul": b"\x00" * 5000,
    "one line": b"ERROR " + b"x" * (1 << 21),
    "deep": b"[" * 100_000 + b"\n" + b'{"a":' * 50_000 + b"\n",
    "huge number": b'{"level":' + b"9" * 5000 + b',"msg":"x"}\n' * 3,
    "long number": b'{"ts": 1%s, "level": 1%s, "msg": 1%s}\n' % ((b"0" * 400,) * 3) * 3,
    "long time": b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":1%s}]}]}]}\n'
    % (b"0" * 400)
    * 3,
    "no digit": '{"ts": "²", "level": "²", "status": "²", "path": "/", "msg": "²"}\n'.encode() * 3,
    "no time": '{"__REALTIME_TIMESTAMP": "²", "PRIORITY": [], "MESSAGE": "²"}\n'.encode() * 3,
    "infinite": b'{"ts": 1e999, "level": NaN, "msg": Infinity}\n' * 3,
    "journal": b"__REALTIME_TIMESTAMP=" + b"9" * 400 + b"\nMESSAGE\n" + b"\xff" * 100,
    "odd types": b'{"ts": [], "level": {}, "service": 3, "msg": null}\n' * 3,
    "odd otlp": b'{"resourceLogs": [1, {"scopeLogs": {"x": 2}}, {"resource": []}]}\n' * 3,
    "odd docker": b'{"log": 3, "stream": "x", "time": 7}\n' * 3,
    "far times": b"1970-01-01 00:00:00 ERROR a\n9999-12-31 23:59:59 ERROR b\n",
    "control": b"2026-11-22 03:00:00 ERROR \x1b]0;x\x07\x1b[2J\x9b31m\r\n" * 3,
    "shell": b"2026-11-22 03:00:00 ERROR [main] $(rm -rf ~);`x`: down\n" * 3,
    "names": b'{"service": "\\u001b[2J;rm -rf ~", "level": "error", "msg": "x"}\n' * 3,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_data(tmp_path, name):
    file = tmp_path / "x.log"
    file.write_bytes(HOSTILE[name])
    answer = answer_of(read_log([file]))
    told = answer.text()
    assert all(line.isprintable() for line in told.split("\n"))
    assert json.loads(json.dumps(answer.as_json()))["sure"] == "not enough evidence"
    assert not answer.next and len(told) < 20_000


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=120), max_size=30), st.sampled_from([*samples.WRITTEN]))
def test_noise_among_the_lines_of_a_format_does_not_stop_reading(noise, name):
    lines = samples.written(name).encode().split(b"\n")[:60]
    for i, one in enumerate(noise):
        lines.insert(7 * i % len(lines), one)
    answer_of(read_text(b"\n".join(lines).decode("latin-1"))).text()
