"""Bytes that somebody else wrote: unpacked, cut into lines of bounded length, made safe to show."""

import bz2
import gzip
import importlib
import io
import lzma
import pkgutil
import re
import time
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shop_log import read_in_parts

import logreader
from logreader import layouts, lines, log, speakers, times
from logreader.lines import Reading, blocks, defused, quoted, unpacked
from logtriage.play.actions import QUOTED, visible

TEXT = b"2026-11-22 03:00:00 ERROR web: down\n" * 2_000
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def read(data, size=1_000):
    reading, parts = Reading(), iter(partial(io.BytesIO(data).read, size), b"")
    return [line for block in blocks(parts, reading) for line in block], reading


@given(st.binary(max_size=200).filter(lambda data: b"\x1b" not in data), st.integers(1, 20))
def test_nothing_is_longer_than_the_bound_and_nothing_shorter_is_lost(data, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MOST_LINE", most)
        kept, reading = read(data, 7)
    whole = data.split(b"\n")
    whole = whole[:-1] if whole[-1] == b"" else whole
    assert kept == [line[:most] for line in whole]
    assert reading.cut == sum(len(line) > most for line in whole)
    assert reading.lines == len(whole)


@pytest.mark.parametrize("packed", PACKERS)
def test_what_is_packed_is_unpacked_in_files_and_on_standard_input(tmp_path, packed):
    data = PACKERS[packed](TEXT)
    assert unpacked(io.BytesIO(data), "x").read() == TEXT
    path = tmp_path / f"web.log.{packed}"
    path.write_bytes(data)
    stdin = io.BytesIO(PACKERS[packed](TEXT))
    read = log.read_log([path, "-"], stdin=stdin)
    assert [file.records for file in read.files] == [2_000, 2_000]


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("most", [0.5, 0.98, 1.0])
def test_a_packed_file_that_is_cut_or_damaged_is_named(tmp_path, packed, most, monkeypatch):
    read_in_parts(monkeypatch, 1 << 12)
    path = tmp_path / "web.log"
    data = bytearray(PACKERS[packed](Random(0).randbytes(1 << 15)))  # more than one chunk
    data[len(data) // 2] ^= 0xFF if most == 1.0 else 0
    path.write_bytes(data[: int(len(data) * most)])
    with pytest.raises(ValueError, match=r"web\.log is no whole packed file"):
        log.read_log([path])


@pytest.mark.parametrize("start", lines.REFUSED)
@pytest.mark.parametrize("name", ["web.log", "a b;rm", "$(x)", "-rf", "a\x1b[2J"])
def test_what_cannot_be_read_is_refused_with_the_command_that_helps(start, name):
    helps = {b"(": "zstd -dc", b"P": "unzip -p"}.get(start[:1], "iconv -f UTF-16 -t UTF-8")
    with pytest.raises(ValueError) as refused:
        log.read_named({name: start + b"E\x00" * 40})
    assert f"{helps} {quoted(name)} | ... triage -" in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_shell_takes_a_file_name_for_one_word_and_no_option():
    words = {"web.log": "web.log", "a b;rm": "'a b;rm'", "$(x)": "'$(x)'", "-rf": "./-rf", "-": "-"}
    words |= {"a\x1b[2J": "", "a\nb": "", "x\u202ey": ""}
    assert {name: quoted(name) for name in words} == words


def test_colours_go_and_other_control_is_escaped():
    kept, _ = read(b"\x1b[31mERROR\x1b[0m #033[1;32mx#033[0m \x1b]0;title\x07 down\r\n")
    assert visible(kept[0]) == "ERROR x \\x1b]0;title\\x07 down"


@given(st.binary(max_size=2000) | st.text(max_size=500))
def test_anything_can_be_shown(data):
    text = visible(data)
    assert text.isprintable() and "\n" not in text
    # An escape is ten characters at most, and the cut is marked by three.
    assert len(text) <= 10 * QUOTED + 3


@pytest.mark.parametrize(
    "marker",
    ["<|im_end|>", "</tool_call>", "<tool_response>", "[INST]", "[/INST]", "<\uff5cUser\uff5c>"],
)
def test_a_line_cannot_end_a_turn(marker):
    # A tokenizer knows these as tokens wherever they stand.
    assert marker not in defused(f"ERROR {marker} hello") and "hello" in defused(marker + "hello")
    assert defused("a < b, [main] x <= 3") == "a < b, [main] x <= 3"


MODULES = [
    importlib.import_module(f"logreader.{module.name}")
    for module in pkgutil.iter_modules(logreader.__path__)
]
PATTERNS = {
    f"{module.__name__.split('.')[-1]}.{name}": (value.search, value.pattern)
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
} | {f"times.FORMS[{i}]": (form.pattern.search, b"") for i, form in enumerate(times.FORMS)}
# Two are looked for at the start alone.
PATTERNS["layouts.PAYLOAD"] = layouts.PAYLOAD.match, b""
PATTERNS["speakers.STATED"] = speakers.STATED.match, b""
PATTERNS["layouts.TITLE"] = layouts.TITLE.fullmatch, ""
PATTERNS |= {
    f"speakers.places[{i}]": (place.pattern.match, b"")
    for i, place in enumerate(speakers.places([speakers.Headed(b"a=1 level=info", -1)]))
}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_is_slow_on_a_long_line_of_one_character(name):
    look, kind = PATTERNS[name]
    for sign in "\0 -./:=aA0_@\"'[{<e1":
        text = sign * (lines.MOST_LINE // 4)
        best = 9.0
        for _ in range(2):  # of two, for others may use the processor
            began = time.process_time()
            look(text.encode() if isinstance(kind, bytes) else text)
            best = min(best, time.process_time() - began)
            if best < 0.05:
                break
        assert best < 0.1, sign
