"""The words by which a log is understood: the tables of `words.toml`, and patterns of them."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
KINDS: dict[str, str] = WORDS["kinds"]  # of services, to what their names say


def any_of(patterns: Sequence[str], flags: str = "") -> re.Pattern[str]:
    """What finds the first of some alternatives; `flags` such as `(?i)`."""
    return re.compile(flags + "|".join(patterns))


def any_bytes(patterns: Sequence[str]) -> re.Pattern[bytes]:
    """The same for bytes."""
    return re.compile("|".join(patterns).encode())


def word_of(words: str) -> re.Pattern[str]:
    """What matches a text that is one of these words, of whatever case, or empty."""
    return re.compile(f"(?i)^(?:{'|'.join(map(re.escape, words.split()))})?$")
