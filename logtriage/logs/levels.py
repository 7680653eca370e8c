"""How bad a line says that it is: by its level, and where it has none, by its words."""

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
# A level stands in capitals, in brackets, before a colon, or in a field; a word in a sentence is
# none. Each is looked for by itself, by patterns that begin with a sign or a capital: what goes
# before is looked at afterwards, which is many times as fast.
CAPITAL = re.compile(
    rb"(TRACE|DEBUG|FINE|INFO|NOTICE|WARNING|WARN|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|PANIC|EMERG"
    rb"|ALERT|LOG)(?![\w/.-])"
)
BRACKETED = re.compile(rb"[\[<|]([A-Za-z]{3,13})[\]>|:]")
NAMED = re.compile(rb": ")
WORD = re.compile(rb"(?:^|[^\w/.-])([A-Za-z]{3,13})$")
FIELD = re.compile(rb"(?:level|lvl|severity)=\"?([A-Za-z]{3,13})")
INSIDE = re.compile(rb"[\w/.-]$")  # of a longer word
LOOK = 120  # bytes after its time in which the level of a line is looked for
# klog's letter, before its file and line, and Android's, after process and thread.
LETTER = re.compile(rb"^([IWEF])\s+\d+ [\w./-]+:\d+\]|^\s*\d+ +\d+ ([VDIWEF]) ")
LETTERS = {b"V": CALM, b"D": CALM, b"I": CALM, b"W": WARN, b"E": ERROR, b"F": FATAL}

# Words by which a line without a level is judged, in small letters. To look for the parts of words
# first costs a tenth of what the pattern costs.
_PARTS = tuple(
    part.encode()
    for part in (
        *("fatal", "panic", "segf", "segm", "oom", "memory", "dumped", "error", "fail", "excep"),
        *(
            "traceback",
            "refused",
            "timed",
            "timeo",
            "time o",
            "unrea",
            "unava",
            "unable",
            "denied",
            "cannot",
        ),
        *("could not", "broken", "reset", "abort", "kill", "crash", "corrupt", "invalid", "no sp"),
    )
)
_BAD = re.compile(
    rb"\b(?:fatal|panic|segfault|segmentation fault|oom-?kill|out of memory|core dumped)"
)
_WRONG = re.compile(
    rb"(?<![\w/.=-])(?:errors?|fail(?:ed|ure|s)?|failing|exceptions?|traceback|refused"
    rb"|timed? ?out|unreachable|unavailable|denied|cannot|could not|unable|broken pipe"
    rb"|reset by peer|aborted|killed|crash(?:ed)?|corrupt(?:ed)?|invalid|no space left)\b"
)
_NOT_WRONG = re.compile(rb"\b(?:no|0|without|zero) (?:errors?|failures?|exceptions?)\b")
ACCESS = re.compile(
    rb'"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[^"]{0,2000}"(?: -)?(?: status:?)? (\d)\d\d\b'
)


def stated_level(text: bytes) -> tuple[int, int] | None:
    """The level that a line states, and where what states it ends; None where it states none."""
    for found in CAPITAL.finditer(text, 0, LOOK):
        if not INSIDE.match(text[found.start() - 1 : found.start()]):
            return LEVELS[found[1].lower().decode()], found.end()
    for found in BRACKETED.finditer(text, 0, LOOK):
        if (level := LEVELS.get(found[1].lower().decode())) is not None:
            return level, found.end()
    for found in NAMED.finditer(text, 0, LOOK):
        word = WORD.search(text, max(0, found.start() - 14), found.start())
        if word and (level := LEVELS.get(word[1].lower().decode())) is not None:
            return level, found.end()
    for found in FIELD.finditer(text, 0, LOOK) if b"=" in text else ():
        if (level := LEVELS.get(found[1].lower().decode())) is not None:
            return level, found.end()
    letter = LETTER.match(text)
    return (LETTERS[letter[1] or letter[2]], letter.end()) if letter else None


def level_of(text: bytes) -> int:
    """The level of a line without its time: the one that it states, else by its words."""
    access = ACCESS.search(text) if b'"' in text else None
    if access:
        return FAILED if access[1] == b"5" else SERVED
    stated = stated_level(text)
    if stated:
        return stated[0]
    small = text.lower()
    for part in _PARTS:
        if part in small:
            break
    else:
        return CALM
    if _BAD.search(small):
        return FATAL
    return ERROR if _WRONG.search(small) and not _NOT_WRONG.search(small) else CALM


def named_level(value: object) -> int | None:
    """The level that a field of a structured record states, in words or in numbers: as syslog
    counts (0 to 7, the lower the worse), or as pino and bunyan do (10 to 60).
    """
    if isinstance(value, str):
        known = LEVELS.get(value.lower())
        if known is not None or not (value.isascii() and value.isdecimal()):
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
