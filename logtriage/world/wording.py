"""What the software in the cluster prints: Envoy, Spring Boot with HikariCP, PostgreSQL, RabbitMQ.

The lines stand in `wording.txt`, in sections `[kind ... kind-of-service]`. The last line of every
section is held out: it occurs only in the split `unseen_wording`. `wording_varied.txt` has more
words for every section, which no split prints: they are for training, where an incident asks for
them (`Incident.varied_wording`). There `<a|b>` is a choice: each combination of the choices of a
line is a line. Fields are filled from the simulator's state at the moment of logging:

| field | meaning |
|---|---|
| `{latency}` | the service's p95 latency, ms |
| `{errors}` | share of its requests that fail, per cent |
| `{usage}` | connection pool in use, per cent |
| `{cpu}` | utilisation, per cent |
| `{rate}` | arriving requests per second |
| `{callee}` | the called service it speaks of |
| `{wait}` `{failures}` | that one's latency (ms) and errors (per cent) |
| `{n}` | a detail of no meaning, 1 to 9 |
"""

import re
import string
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

# (fault, kind) of proofs, (remedy, kind) of hints, ("fails" or "slow", kind), or (kind,)
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
    """Every template that a template of `VARIED_BOOKS` stands for."""
    parts = _CHOICE.split(template)  # text and choices by turns
    versions = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(one) for one in product(*versions)]


class Reading(NamedTuple):
    """What a line says: its kind, and its subject (fault, remedy, or called service, if any)."""

    kind: str
    subject: str = ""


def _readings(books: Book) -> Iterator[tuple[str, Reading]]:
    for kind, book in books.items():
        for key, templates in book.items():
            for template in templates:
                yield template, Reading(kind, key[0] if len(key) > 1 else "")


@cache
def _readers() -> dict[str, list[tuple[tuple[str, ...], Reading, int]]]:
    """Level to (literals, reading, index of the callee among the fields) of its templates."""
    readers: dict[str, list[tuple[tuple[str, ...], Reading, int]]] = {}
    for template, reading in _readings(BOOKS):
        parts = list(string.Formatter().parse(template))
        literals = (*(literal for literal, _, _, _ in parts), *([""] if parts[-1][1] else []))
        names = [name for _, name, _, _ in parts]
        callee = names.index("callee") if "callee" in names else -1
        level, _, rest = literals[0].partition(" ")
        readers.setdefault(level, []).append(((rest, *literals[1:]), reading, callee))
    return readers


@cache
def _varied_readings() -> dict[str, Reading]:
    """What every varied line says, its figures being `#` and its callee `{}`."""
    readings: dict[str, Reading] = {}
    for template, reading in _readings(VARIED_BOOKS):
        masked = _FIGURE.sub("#", re.sub(r"{\w+}", "1", template.replace("{callee}", "{}")))
        readings |= dict.fromkeys(choices(masked), reading)
    return readings


def read_line(line: str) -> tuple[str, Reading]:
    """Read a log line as an expert would: (service, reading). Unknown text reads as kind `unknown`.

    The inverse of the wording, by text alone; nothing of the incident is consulted.
    """
    level, _, rest = line.partition(" ")
    service, _, text = rest.partition(" ")
    for literals, reading, callee in _readers().get(level, ()):
        if not text.startswith(literals[0]):
            continue
        at, fields = len(literals[0]), []
        for literal in literals[1:]:
            end = text.find(literal, at) if literal else len(text)
            if end < 0:
                break
            fields.append(text[at:end])
            at = end + len(literal)
        else:
            if at == len(text):
                return service, Reading("callee", fields[callee]) if callee >= 0 else reading
    return service, _read_varied(f"{level} {text}")


def _read_varied(line: str) -> Reading:
    words, readings = _WORD.split(line), _varied_readings()
    masked = [_FIGURE.sub("#", word) for word in words]
    if reading := readings.get("".join(masked)):
        return reading
    for i in range(3, len(words), 2):  # any word after the level may be the callee
        if "".join((*masked[:i], "{}", *masked[i + 1 :])) in readings:
            return Reading("callee", words[i])
    return Reading("unknown")
