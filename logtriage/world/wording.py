"""What the software in the cluster prints: Envoy, Spring Boot with HikariCP, PostgreSQL, RabbitMQ.

The lines are in `wording.txt`, in sections `[kind ... kind-of-service]`. The last line of every
section is held out: it occurs only in the split `unseen_wording`. `wording_varied.txt` has more
lines for every section. No split prints these; they are for training, if an incident asks for them
(`Incident.varied_wording`). There `<a|b>` is a choice: each combination of a line's choices is a
line. Fields are filled from the simulator's state at the moment of logging:

| field | meaning |
|---|---|
| `{latency}` | the service's p95 latency, ms |
| `{errors}` | share of its requests that fail, per cent |
| `{usage}` | connection pool in use, per cent |
| `{cpu}` | utilisation, per cent |
| `{rate}` | arriving requests per second |
| `{callee}` | the called service that the line is about |
| `{wait}` `{failures}` | that service's latency (ms) and errors (per cent) |
| `{n}` | a meaningless detail, 1 to 9 |
"""

import re
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

# (fault, kind) for proofs, (remedy, kind) for hints, ("fails" or "slow", kind), or (kind,)
Key = tuple[str, ...]
Book = dict[str, dict[Key, tuple[str, ...]]]  # kind of line to key to templates, `LEVEL text` each

_CHOICE = re.compile("<(.*?)>")
_WORD, _FIGURE = re.compile(r"([\w-]+(?:\.[\w-]+)*)"), re.compile(r"[\d.]*\d")


def _read_file(name: str) -> Book:
    books: Book = {}
    for line in files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind, *key = line.strip("[]").split()
            entry = tuple(key)
            books.setdefault(kind, {})[entry] = ()
        elif line and not line.startswith("#"):
            books[kind][entry] += (line,)
    return books


BOOKS = _read_file("wording.txt")
VARIED_BOOKS = _read_file("wording_varied.txt")  # their templates hold choices, see `choices`


def choices(template: str) -> list[str]:
    """Return every template that a template of `VARIED_BOOKS` stands for."""
    parts = _CHOICE.split(template)  # text and choices alternate
    versions = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in product(*versions)]


class Reading(NamedTuple):
    """What a line says: its kind, and its subject (such as a fault, remedy or callee), if any."""

    kind: str
    subject: str = ""


@cache
def _readings() -> dict[str, Reading]:
    """Map every line, with `#` for figures and `{}` for a callee, to what it says."""
    readings: dict[str, Reading] = {}
    for kind, book in (*VARIED_BOOKS.items(), *BOOKS.items()):
        for key, templates in book.items():
            reading = Reading(kind, key[0] if len(key) > 1 else "")
            for template in templates:
                filled = re.sub(r"{\w+}", "1", template.replace("{callee}", "{}"))
                readings |= dict.fromkeys(choices(_FIGURE.sub("#", filled)), reading)
    return readings


def read_line(line: str) -> tuple[str, Reading]:
    """Return (service, reading) of a log line, from its text alone; `unknown` for other text."""
    level, _, rest = line.partition(" ")
    service, _, text = rest.partition(" ")
    words, readings = _WORD.split(f"{level} {text}"), _readings()
    masked = [_FIGURE.sub("#", word) for word in words]
    if reading := readings.get("".join(masked)):
        return service, reading
    for i in range(3, len(words), 2):  # any word after the level may be the callee
        if "".join((*masked[:i], "{}", *masked[i + 1 :])) in readings:
            return service, Reading("callee", words[i])
    return service, Reading("unknown")
