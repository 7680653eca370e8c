"""Records of JSON and CSV: the objects in a stream, and which of their fields is the time, the
level, the speaker and the message.
"""

import codecs
import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from .levels import CALM, WARN, level_of_status, named_level
from .lines import Reading
from .times import FORMS, Clock, find_forms, time_of
from .words import WORDS

MOST_OBJECT = 4 << 20  # characters of an object; a larger one is read by its inner objects
MOST_STEPS = 50  # into an object that is no whole one
MOST_KEYS = 4_096  # names of fields remembered
MOST_TEXT = 2_000  # characters of a message
SAMPLE = 200  # values of a field, and fields of a file, that are looked at
DEEP = 6  # levels of a value that are looked into
DECODER = json.JSONDecoder()

# Names of fields, as `short` has them; the more telling first.
TIMES, LEVELS, MESSAGES, ERRORS, STATUSES, REQUESTS = (
    names.split() for names in WORDS["fields"].values()
)

Path = tuple[str, ...]  # keys from the outer object to the inner


def objects_of(text: str) -> list[Any]:
    """The value that a line of JSON is, in a list; an empty one where it is no JSON."""
    try:
        value, end = DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return []
    return [value] if text[end:].strip() in ("", ",", "]") else []


def objects_in(parts: Iterable[bytes], reading: Reading) -> Iterator[tuple[Any, int]]:
    """The objects of a document of JSON, of whatever size, each with its line. Of an object that is
    too large to be held, the inner objects.
    """
    parts, decode = iter(parts), codecs.getincrementaldecoder("utf-8")("replace").decode
    text, place, line, steps = "", 0, 0, 0
    tried = 0  # characters with which the object at hand was not whole
    ended = False
    while True:
        start = text.find("{", place)
        while start >= 0 and (ended or len(text) - start >= 2 * tried):
            line += text.count("\n", place, start)
            try:
                value, place = DECODER.raw_decode(text, start)
            except (ValueError, RecursionError) as error:
                size = len(text) - start
                near = size - (getattr(error, "pos", start) - start) < 100
                unfinished = near or "Unterminated" in str(error)
                if unfinished and not ended and size < MOST_OBJECT:
                    place, tried = start, size
                    break
                steps += 1
                place = min(len(text), start + (1 if steps < MOST_STEPS else 10_000))
            else:
                yield value, line
                steps = 0
            line += text.count("\n", start, place)
            tried = 0
            start = text.find("{", place)
        if ended:
            return
        keep = place if start >= 0 else len(text)
        line += text.count("\n", place, keep)
        chunk = next(parts, b"")
        ended = not chunk
        reading.lines += chunk.count(b"\n")
        text, place = text[keep:] + decode(chunk, final=ended), 0


def rows_in(lines: Iterable[bytes], delimiter: str) -> Iterator[tuple[dict[str, str], int]]:
    """The rows of CSV, by the names in its first line, each with its line."""
    texts = (line.decode("utf-8", "replace").replace("\0", "") + "\n" for line in lines)
    reader = csv.reader(texts, delimiter=delimiter)
    header: list[str] = []
    while True:
        line = reader.line_num
        try:
            row = next(reader, None)
        except csv.Error:  # a field without an end
            continue
        if row is None:
            return
        if header:
            yield dict(zip(header, row, strict=False)), line
        header = header or row


def records_in(value: Any, around: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """The records of a value: the innermost objects of its lists, each with what stands around it,
    as batches of OTLP, Loki, CloudWatch and Elasticsearch have them.
    """
    around = around or {}
    if isinstance(value, list):
        for one in value:
            if isinstance(one, list) and len(one) == 2:  # of Loki: a time and a line
                yield {**around, "time": one[0], "message": one[1]}
            else:
                yield from records_in(one, around)
    elif isinstance(value, dict):
        if not around and not {dict, list} & set(map(type, value.values())):
            yield _unwrapped(value)
            return
        plain = {key: _plain(one) for key, one in value.items()}
        lists = _lists(plain)
        if not lists:
            yield _unwrapped({**around, **plain})
            return
        rest = {key: one for key, one in plain.items() if key not in lists}
        for one in lists.values():
            yield from records_in(one, {**around, **rest})


def _lists(value: Mapping[str, Any]) -> dict[str, Any]:
    """The lists of records among the fields of an object, or what holds them; none in one that has
    a message.
    """
    found: dict[str, Any] = {}
    if any(short(key) in MESSAGES for key in value):
        return found
    for key, one in value.items():  # no comprehension: what is deep would need twice the frames
        holds = isinstance(one, list) and one and isinstance(one[0], dict | list)
        if holds or (isinstance(one, dict) and _lists(one)):
            found[key] = one
    return found


def _plain(value: Any) -> Any:
    """A value of OTLP as plain JSON has it; any other as it is."""
    if isinstance(value, dict) and len(value) == 1:
        kind, inner = next(iter(value.items()))
        if kind.endswith("Value") and kind[:-5] in ("string", "int", "bool", "double", "bytes"):
            return inner
    if isinstance(value, dict) and "attributes" in value:
        return {**value, "attributes": _plain(value["attributes"])}
    if isinstance(value, list) and value:
        pairs = [one for one in value if isinstance(one, dict) and one.keys() == {"key", "value"}]
        if len(pairs) == len(value):
            return {str(one["key"]): _plain(one["value"]) for one in pairs}
    return value


def _unwrapped(record: dict[str, Any]) -> dict[str, Any]:
    """A record with the fields of the record that its message is, where it is JSON again."""
    for key, text in record.items():
        if isinstance(text, str) and text[:2] in ('{"', "{ ") and short(key) in MESSAGES:
            for inner in objects_of(text):
                if isinstance(inner, dict):
                    return {**{name: record[name] for name in record if name != key}, **inner}
    return record


@lru_cache(MOST_KEYS)
def short(key: str) -> str:
    """The name of a field as the tables have it."""
    return key.lower().translate(str.maketrans("", "", "_-@."))


def flattened(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The paths and values of an object."""
    for key, one in value.items():
        if isinstance(one, dict) and len(path) < DEEP:
            yield from flattened(one, (*path, key))
        elif isinstance(one, str | int | float):
            yield (*path, key), one


def at(one: Any, paths: Sequence[Path]) -> Any:
    """The value at the first of these paths that an object has; None where it has none."""
    for path in paths:
        value = one
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and value != "":
            return value
    return None


class Fields:
    """Where records have their parts but for the speaker: each part by the paths to try in turn,
    found in a sample of records.
    """

    def __init__(self, sample: Sequence[Mapping[str, Any]]) -> None:
        values: dict[Path, list[Any]] = defaultdict(list)
        for one in sample:
            for path, value in flattened(one):
                values[path].append(value)
        common = sorted(values, key=lambda path: -len(values[path]))[:SAMPLE]

        def named(names: Sequence[str]) -> list[Path]:
            """The paths with one of these names, by their last part or their last two."""
            ranks = {
                path: min(names.index(name) for name in _names(path) if name in names)
                for path in common
                if set(_names(path)) & set(names)
            }
            return sorted(ranks, key=lambda path: (ranks[path], len(path)))

        def share(path: Path, read: Callable[[Any], Any], nothing: Any) -> float:
            """The share of the values at a path of which something is read."""
            some = values[path][:SAMPLE]
            return sum(bool(read(value) != nothing) for value in some) / len(some)

        everything = partial(time_of, clocks=[Clock(form) for form in FORMS])
        timed = [path for path in common if share(path, everything, -1) > 0.8]
        self.time = [path for path in named(TIMES) if path in timed] or timed[:1]
        written = (
            [str(one).encode("utf-8", "replace") for one in values[self.time[0]]] if timed else []
        )
        self.clocks = [Clock(form) for form in find_forms(written[:SAMPLE])]  # of times as text
        levels = [
            path
            for path in named(LEVELS)
            if share(path, partial(named_level, field=short(path[-1])), None) > 0.8
        ]
        self.level = levels or [path for path in common if share(path, worded_level, None) > 0.95]
        self.message = [path for path in named(MESSAGES) if isinstance(values[path][0], str)]
        self.error = [path for path in named(ERRORS) if path not in self.message][:2]
        requests = any(_names(path)[0] in REQUESTS for path in common)
        self.status = named(STATUSES) if requests or not self.message else []

    def second_of(self, one: Any) -> int:
        """When a record was made; -1 where it does not say."""
        return time_of(at(one, self.time), self.clocks)

    def level_of(self, one: Any) -> int | None:
        """The level that a record states, of a request by its status; None where it states none."""
        level = None
        for path in self.level:
            name = short(path[-1])
            level = named_level(at(one, (path,)), name)
            if name == "priority" and level == CALM:
                level = None  # of what a program prints, its text may say more
            if level is not None:
                break
        status = str(at(one, self.status) or "") if self.status else ""
        if len(status) == 3 and status.isdecimal() and (level is None or level < WARN):
            return level_of_status(status.encode())
        return level

    def message_of(self, one: Any) -> str:
        """What a record says, with the error that it tells of."""
        value = at(one, self.message)
        if isinstance(value, list) and all(type(byte) is int for byte in value):  # of the journal
            value = bytes(byte & 255 for byte in value).decode("utf-8", "replace")
        text = flat(one if value is None else value)
        for path in self.error:
            error = at(one, (path,))
            text += f" {flat(error)}" if error is not None and error != value else ""
        return text[:MOST_TEXT]


def _names(path: Path) -> tuple[str, str]:
    return short(path[-1]), short("".join(path[-2:]))


def worded_level(value: Any) -> int | None:
    """The level that a word is; None for a number, too."""
    return None if not isinstance(value, str) or value.isdecimal() else named_level(value)


def flat(value: object, deep: int = DEEP) -> str:
    """A value of a record as text of bounded length."""
    if isinstance(value, str):
        return value[:MOST_TEXT]
    if value is None or deep == 0:
        return ""
    if isinstance(value, dict):
        parts = [f"{key}={flat(one, deep - 1)}" for key, one in islice(value.items(), 50)]
        return " ".join(parts)[:MOST_TEXT]
    if isinstance(value, list):
        return " ".join(flat(one, deep - 1) for one in value[:50])[:MOST_TEXT]
    return str(value)[:MOST_TEXT]
