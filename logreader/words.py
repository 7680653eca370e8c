"""The words for understanding a log: the tables of `words.toml`, and patterns made of them."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def any_of(patterns: Sequence[str], flags: str = "") -> re.Pattern[str]:
    """Return a pattern that finds any of these alternatives; `flags` are such as `(?i)`."""
    return re.compile(flags + "|".join(patterns))


def word_of(words: str) -> re.Pattern[str]:
    """Return a pattern that matches one of these words, in any case, or an empty text."""
    return re.compile(f"(?i)^(?:{'|'.join(map(re.escape, words.split()))})?$")
