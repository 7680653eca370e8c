"""How bad a line is: by the level that it states, or if it states none, by its words."""

import re
from collections.abc import Iterator

from .causes import OWN
from .words import WORDS

SERVED, CALM, WARN, ERROR, FAILED, FATAL = range(6)
# A line is trouble from `WARN` on. `SERVED` and `FAILED` are requests in an access log that were
# answered well, or with a status of 500 to 599.
LEVEL_NAMES = ("INFO", "INFO", "WARN", "ERROR", "ERROR", "FATAL")
LEVELS = {
    word: level
    for level, name in ((CALM, "calm"), (WARN, "warn"), (ERROR, "error"), (FATAL, "fatal"))
    for word in WORDS["levels"][name].split()
}
# A level is in capitals, in brackets, before a colon, or in a field; a word in a sentence is not a
# level. Each has its own pattern, which begins with a sign or a capital. What stands before a match
# is checked afterwards, which is many times as fast.
CAPITAL, BRACKETED, NAMED, WORD, FIELD, INSIDE, LETTER, PRIORITY = (
    re.compile(pattern.encode()) for pattern in WORDS["stated"].values()
)
LETTERS = {b"D": CALM, b"I": CALM, b"W": WARN, b"E": ERROR, b"F": FATAL}
LOOK = 160  # how many bytes of a line after its time are searched for its level

DIED, BAD, WRONG, COUNTED, STATUS = (
    re.compile("|".join(words).encode())
    for words in (*WORDS["judged"].values(), WORDS["status"]["patterns"])
)
# By far the commonest form, so tried first: it begins with a word, and costs a tenth.
LOGGED = re.compile(rb'HTTP/[\d.]+" ([1-5]\d\d)\b')
TURNED_AWAY = {str(status).encode() for status in WORDS["status"]["turned_away"]}
SCALES = WORDS["scales"]


def stated_level(text: bytes) -> int | None:
    """Return the level that a line states; None if it states none."""
    if letter := LETTER.search(text, 0, LOOK):
        return LETTERS[letter[1]]
    for word in _likely_levels(text):
        if (level := LEVELS.get(word.lower().decode())) is not None:
            return level
    priority = PRIORITY.match(text)
    return named_level(int(priority[1]) & 7) if priority else None


def _likely_levels(text: bytes) -> Iterator[bytes]:
    """Yield the words that stand where a level may stand, the surest places first."""
    for match in CAPITAL.finditer(text, 0, LOOK):
        if not INSIDE.match(text[match.start() - 1 : match.start()]):
            yield match[1]
    for pattern in (BRACKETED, FIELD):
        yield from (match[1] for match in pattern.finditer(text, 0, LOOK))
    for sign in NAMED.finditer(text, 0, LOOK):
        if word := WORD.search(text, max(0, sign.start() - 14), sign.start()):
            yield word[1]


def level_of(text: bytes, status: bytes) -> int:
    """Return the level of a line by, in turn: that somebody died, stated trouble, `status`, any
    stated level, words.
    """
    small = text.lower()
    if DIED.search(small):
        return FATAL
    stated = stated_level(text)
    if status and (stated is None or stated < WARN):
        return level_of_status(status)
    if stated is not None:
        return stated
    if BAD.search(small):
        return FATAL
    if COUNTED.search(small):
        return CALM
    return ERROR if WRONG.search(small) or OWN.search(small) else CALM


def tells_cause(line: bytes, before: bytes) -> bool:
    """Whether a line tells what has happened to who speaks, and the record before it is calm."""
    calm = level_of(before, status_of(before)) < WARN
    return calm and bool(OWN.search(line.lower())) and level_of(line, b"") > WARN


def status_of(text: bytes) -> bytes:
    """Return the HTTP status that a line notes; empty if it notes none."""
    match = LOGGED.search(text) or STATUS.search(text)
    return next(filter(None, match.groups())) if match else b""


def level_of_status(status: bytes) -> int:
    """Return the level of a request that was answered with this status."""
    if status[:1] == b"5":
        return FAILED
    return WARN if status in TURNED_AWAY else SERVED


def named_level(value: object, field: str = "") -> int | None:
    """Return the level of a field: a word, a number of syslog or of its scale; None if neither."""
    if isinstance(value, str):
        if field == "s" and (letter := LETTERS.get(value[:1].encode())) is not None:
            return letter if len(value) == 1 or value[1:].isdecimal() else None
        known = LEVELS.get(value.strip().lower())
        if known is not None or not (value.isascii() and value.isdecimal()):
            return known
        value = int(value[:3])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if field not in SCALES and value < 8:
        return FATAL if value <= 2 else ERROR if value == 3 else WARN if value == 4 else CALM
    if field not in SCALES and value not in range(10, 70, 10):
        return None
    warn, error, fatal = SCALES.get(field, SCALES["other"])
    if value < error:
        return WARN if value >= warn else CALM
    return FATAL if value >= fatal else ERROR
