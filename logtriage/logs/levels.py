"""How bad a line says that it is: by its level, and where it has none, by its words."""

import re

SERVED, CALM, WARN, ERROR, FAILED, FATAL = range(6)
# From `WARN` on a line is trouble. `SERVED` and `FAILED` are requests answered, as an access log
# notes them: well, or with a status of 500 to 599.
NAMES = ("INFO", "INFO", "WARN", "ERROR", "ERROR", "FATAL")

_WORDS = {
    CALM: "trace debug dbg fine finer finest verbose info information informational notice log"
    " config default normal unspecified note hint statement detail trc inf vrb ntc",
    WARN: "warn warning wrn",
    ERROR: "error err severe failure fail",
    FATAL: "fatal crit critical panic emerg emergency alert dpanic ftl",
}
LEVELS = {word: level for level, words in _WORDS.items() for word in words.split()}
# A level stands in capitals, in brackets, before a colon, or in a field; a word in a sentence is
# none. Each is looked for by itself, by patterns that begin with a sign or a capital: what goes
# before is looked at afterwards, which is many times as fast.
CAPITAL = re.compile(
    rb"(TRACE|DEBUG|FINE|INFO|NOTICE|WARNING|WARN|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|PANIC|EMERG"
    rb"|ALERT|LOG)(?![\w/.-])"
)
BRACKETED = re.compile(rb"[\[<|(]([A-Za-z]{3,13})[\]>|:)]")
NAMED = re.compile(rb": ")
WORD = re.compile(rb"(?:^|[^\w/.-])([A-Za-z]{3,13})$")
FIELD = re.compile(rb"(?:level|lvl|severity)[=:]\"?([A-Za-z]{3,13})")
INSIDE = re.compile(rb"[\w/.-]$")  # of a longer word
LOOK = 160  # bytes after its time in which the level of a line is looked for
# klog's letter, before its file and line, and Ruby's.
LETTER = re.compile(rb"([DIWEF])(?:\s+\d+ [\w./-]+:\d+\]|, \[)")
LETTERS = {b"D": CALM, b"I": CALM, b"W": WARN, b"E": ERROR, b"F": FATAL}
PRIORITY = re.compile(rb"^<(\d{1,3})>")  # of syslog

# Words by which a line without a level is judged, in small letters. To look for the parts of words
# first costs a tenth of what the pattern costs.
_PARTS = re.compile(
    rb"fatal|panic|segf|segm|oom|memory|dumped|error|fail|excep|traceback|refused|timed|timeo"
    rb"|time o|unrea|unava|unable|denied|cannot|could not|broken|reset|abort|kill|crash"
    rb"|corrupt|invalid|no sp|back-off|backoff|exited|exit code|status=[1-9]|not ready|expired"
)
_BAD = re.compile(
    rb"\b(?:fatal|panic|segfault|segmentation fault|oom-?kill|out of memory|core dumped)"
    rb"|killed process"
)
_WRONG = re.compile(
    rb"(?<![\w/.=-])(?:errors?|fail(?:ed|ure|s)?|failing|exceptions?|traceback|refused"
    rb"|timed? ?out|unreachable|unavailable|denied|cannot|could not|unable|broken pipe"
    rb"|reset by peer|aborted|killed|crash(?:ed|loopbackoff)?|corrupt(?:ed)?|invalid|expired"
    rb"|no space left|back-?off restarting|exited with|exit code|not ready)\b"
    rb"|code=(?:exited|killed|dumped)|exited, code"
)
# A number of errors tells how many there were, which may be none.
_COUNTED = re.compile(
    rb"\b(?:no|\d+|without|zero) (?:errors?|failed|failures?|exceptions?|timeouts?)\b"
    rb"|\b(?:errors?|failed|failures?|exceptions?|timeouts?)[:=] ?\d"
    rb"|exit(?:ed)?(?: with)? (?:code|status):? 0\b|status=0/"
)
# The status of an answer: in an access log, in a field, or after a word for an answer.
STATUS = re.compile(
    rb'\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^"\s]{1,2000}(?: HTTP/[\d.]+)?"?(?: -)?'
    rb"(?: (?:status:? ?)?|->|=>| -> )([1-5]\d\d)\b"
    rb"|\b(?:said|answer(?:s|ed)|return(?:s|ed)|repli(?:es|ed)|respond(?:s|ed)|got|status|status_code"
    rb"|HTTP|http|code)(?: with)?(?: status)?(?: HTTP)?[=: ]{1,2}\"?([1-5]\d\d)\b"
)
# The first of these by far, looked for beforehand: it begins with a word, and costs a tenth.
LOGGED = re.compile(rb'HTTP/[\d.]+" ([1-5]\d\d)\b')
# Answers of the client's own making that are trouble when there are suddenly many.
TURNED_AWAY = (b"401", b"403", b"407", b"429", b"499")


def stated_level(text: bytes) -> int | None:
    """The level that a line states; None where it states none."""
    for found in CAPITAL.finditer(text, 0, LOOK):
        if not INSIDE.match(text[found.start() - 1 : found.start()]):
            return LEVELS[found[1].lower().decode()]
    for pattern in (BRACKETED, FIELD):
        for found in pattern.finditer(text, 0, LOOK):
            if (level := LEVELS.get(found[1].lower().decode())) is not None:
                return level
    for found in NAMED.finditer(text, 0, LOOK):
        word = WORD.search(text, max(0, found.start() - 14), found.start())
        if word and (level := LEVELS.get(word[1].lower().decode())) is not None:
            return level
    letter = LETTER.match(text)
    if letter:
        return LETTERS[letter[1]]
    priority = PRIORITY.match(text)
    return numbered_level(int(priority[1]) & 7) if priority else None


def level_of(text: bytes, status: bytes) -> int:
    """The level of a line: of a request, by its status (`status_of`); else the one that it states,
    else by its words.
    """
    stated = stated_level(text)
    if status and (stated is None or stated < WARN):
        return level_of_status(status)
    return judged_level(text) if stated is None else stated


def judged_level(text: bytes) -> int:
    """The level of a line that states none, by its words."""
    small = text.lower()
    if not _PARTS.search(small):
        return CALM
    if _BAD.search(small):
        return FATAL
    return ERROR if _WRONG.search(small) and not _COUNTED.search(small) else CALM


def status_of(text: bytes) -> bytes:
    """The HTTP status that a line notes; empty where it notes none."""
    found = LOGGED.search(text)
    if found:
        return found[1]
    found = STATUS.search(text)
    return found[1] or found[2] if found else b""


def level_of_status(status: bytes) -> int:
    """The level of a request that was answered so."""
    if status[:1] == b"5":
        return FAILED
    return WARN if status in TURNED_AWAY else SERVED


# Scales of numbers: the least number of a warning, an error and what is worse.
SCALES = {"severitynumber": (13, 17, 21), "severitylevel": (2, 3, 4), "pino": (40, 50, 60)}


def numbered_level(number: float, field: str = "") -> int | None:
    """The level that a number states: as syslog counts (0 to 7, the lower the worse), as pino and
    bunyan do (10 to 60), or, by the name of its field, as OTLP (1 to 24) or Azure (0 to 4) do; None
    for one that tells none.
    """
    if field not in SCALES and number < 8:
        return FATAL if number <= 2 else ERROR if number == 3 else WARN if number == 4 else CALM
    if field not in SCALES and number not in (10, 20, 30, 40, 50, 60):
        return None
    warn, error, fatal = SCALES.get(field, SCALES["pino"])
    return (
        FATAL if number >= fatal else ERROR if number >= error else WARN if number >= warn else CALM
    )


def named_level(value: object, field: str = "") -> int | None:
    """The level that a field of a structured record states, in words or in numbers."""
    if isinstance(value, str):
        known = LEVELS.get(value.strip().lower())
        if known is not None or not (value.isascii() and value.isdecimal()):
            return known
        value = int(value[:3])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return numbered_level(value, field)
