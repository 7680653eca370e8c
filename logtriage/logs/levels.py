"""How bad a line says that it is: by its level, and where it has none, by its words."""

from __future__ import annotations

import re

SERVED, CALM, WARN, ERROR, FAILED, FATAL = range(6)
# From `WARN` on a line is trouble. `SERVED` and `FAILED` are requests answered, as an access log
# notes them: well, or with a status of 500 to 599.
NAMES = ("INFO", "INFO", "WARN", "ERROR", "ERROR", "FATAL")

_CALM = (
    *("trace", "debug", "dbg", "fine", "finer", "finest", "verbose", "info", "information"),
    *("informational", "notice", "log", "config", "default", "normal", "unspecified", "note"),
    *("hint", "statement", "detail"),
)
_FATAL = ("fatal", "crit", "critical", "panic", "emerg", "emergency", "alert", "dpanic")
LEVELS = {
    **dict.fromkeys(_CALM, CALM),
    **dict.fromkeys(("warn", "warning"), WARN),
    **dict.fromkeys(("error", "err", "severe", "failure", "fail"), ERROR),
    **dict.fromkeys(_FATAL, FATAL),
}
# A level stands in capitals, in brackets, or before a colon; a word in a sentence is none.
_WORDS = "|".join(sorted(LEVELS, key=len, reverse=True))
_CAPITAL = (
    "TRACE|DEBUG|FINE|INFO|NOTICE|WARNING|WARN|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|PANIC|EMERG"
    "|ALERT|LOG"
)
LEVEL = re.compile(
    rf"(?<![\w/.-])(?:({_CAPITAL})(?![\w/.-])|[\[<|](?i:({_WORDS}))[\]>|:]"
    rf"|(?i:({_WORDS})): |(?:level|lvl|severity)=\"?(?i:({_WORDS}))\b)".encode()
)
LOOK = 120  # bytes after its time in which the level of a line is looked for
# klog's letter, before its file and line, and Android's, after process and thread.
LETTER = re.compile(rb"^([IWEF])\s+\d+ [\w./-]+:\d+\]|^\s*\d+ +\d+ ([VDIWEF]) ")
LETTERS = {b"V": CALM, b"D": CALM, b"I": CALM, b"W": WARN, b"E": ERROR, b"F": FATAL}

_BAD = re.compile(
    rb"(?i)\b(?:fatal|panic|segfault|segmentation fault|oom-?kill|out of memory|core dumped)"
)
_WRONG = re.compile(
    rb"(?i)(?<![\w/.=-])(?:errors?|fail(?:ed|ure|s)?|failing|exceptions?|traceback|refused"
    rb"|timed? ?out|unreachable|unavailable|denied|cannot|could not|unable|broken pipe"
    rb"|reset by peer|aborted|killed|crash(?:ed)?|corrupt(?:ed)?|invalid|no space left)\b"
)
_NOT_WRONG = re.compile(rb"(?i)\b(?:no|0|without|zero) (?:errors?|failures?|exceptions?)\b")
ACCESS = re.compile(
    rb'"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[^"]{0,2000}"(?: -)?(?: status:?)? (\d)\d\d\b'
)


def level_of(text: bytes) -> int:
    """The level of a line without its time: the one that it states, else by its words."""
    access = ACCESS.search(text)
    if access:
        return FAILED if access[1] == b"5" else SERVED
    stated = LEVEL.search(text, 0, LOOK)
    if stated:
        return LEVELS[(stated[1] or stated[2] or stated[3] or stated[4]).decode().lower()]
    letter = LETTER.search(text)
    if letter:
        return LETTERS[letter[1] or letter[2]]
    if _BAD.search(text):
        return FATAL
    if _WRONG.search(text) and not _NOT_WRONG.search(text):
        return ERROR
    return CALM


def named_level(value: object) -> int | None:
    """The level that a field of a structured record states, in words or in numbers: as syslog
    counts (0 to 7, the lower the worse), or as pino and bunyan do (10 to 60).
    """
    if isinstance(value, str):
        known = LEVELS.get(value.lower())
        if known is not None or not value.isdigit():
            return known
        value = int(value[:3])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value < 8:
        return FATAL if value <= 2 else ERROR if value == 3 else WARN if value == 4 else CALM
    return FATAL if value >= 60 else ERROR if value >= 50 else WARN if value >= 40 else CALM


def otlp_level(number: object) -> int | None:
    """The level of OTLP's `severityNumber`, 1 to 24; None for one that says nothing."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 1 <= number <= 24:
        return None
    return FATAL if number > 20 else ERROR if number > 16 else WARN if number > 12 else CALM
