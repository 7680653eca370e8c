"""Bytes that somebody else wrote, bounded and made safe."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtriage.logs import lines
from logtriage.logs.lines import Reading, blocks, defused, visible


def read(data, most=lines.MOST_LINE):
    reading = Reading()
    return [line for block in blocks(io.BytesIO(data), reading, most) for line in block], reading


def test_lines_are_what_stands_between_line_ends(monkeypatch):
    monkeypatch.setattr(lines, "CHUNK", 4)  # so that lines are cut by chunks
    found, reading = read(b"one\ntwo and more\n\nlast")
    assert found == [b"one", b"two and more", b"", b"last"]
    assert (reading.size, reading.lines, reading.cut) == (22, 4, 0)


@given(st.binary(max_size=200), st.integers(1, 20))
def test_nothing_is_longer_than_the_bound_and_nothing_shorter_is_lost(data, most):
    found, reading = read(data, most)
    whole = data.split(b"\n")
    whole = whole[:-1] if whole[-1] == b"" else whole
    assert max(map(len, found), default=0) <= most
    # Colours are taken off before a line is measured.
    if b"\x1b" not in data:
        assert found == [line[:most] for line in whole]
        assert reading.cut == sum(len(line) > most for line in whole)


def test_a_line_without_an_end_is_cut_and_said(monkeypatch):
    # 100 MB on one line must not be 100 MB of memory.
    class Endless:
        left = 100

        def read(self, size):
            self.left -= 1
            return b"x" * size if self.left > 0 else b"\nafter" if self.left == 0 else b""

    monkeypatch.setattr(lines, "CHUNK", 1 << 16)
    reading, sizes = Reading(), []
    for block in blocks(Endless(), reading, 1000):
        sizes += map(len, block)
    assert sizes == [1000, 5] and reading.cut == 1 and reading.lines == 2


def test_colours_go_and_other_control_is_escaped():
    found, _ = read(b"\x1b[31mERROR\x1b[0m \x1b]0;title\x07 down\r\n")
    assert visible(found[0]) == "ERROR \\x1b]0;title\\x07 down"


@pytest.mark.parametrize("text", ["a\u202eb", "a\u2028b", "a\x9bb", "a\u200bb", "a\nb"])
def test_what_moves_the_cursor_or_hides_is_escaped(text):
    assert visible(text).isprintable() and visible(text) != text
    assert visible(text.encode()).isprintable()


@given(st.binary(max_size=2000))
def test_anything_can_be_shown(data):
    told = visible(data)
    assert told.isprintable() and "\n" not in told
    # An escape is ten characters at most, and the cut is marked by three.
    assert len(told) <= 10 * lines.SHOWN + 3


@pytest.mark.parametrize(
    "marker",
    ["<|im_end|>", "</tool_call>", "<tool_response>", "[INST]", "[/INST]", "<\uff5cUser\uff5c>"],
)
def test_a_line_cannot_end_a_turn(marker):
    # A tokenizer knows these as tokens wherever they stand.
    assert marker not in defused(f"ERROR {marker} hello") and "hello" in defused(marker + "hello")
    assert defused("a < b, [main] x <= 3") == "a < b, [main] x <= 3"
