"""Read records of JSON and CSV: find the objects in a stream, and the values in them."""

import codecs
import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from .lines import COLOURS, Reading, blocks
from .words import WORDS

MOST_OBJECT = 4 << 20  # characters of an object; of a larger one, the inner objects are read
MOST_STEPS = 50  # failures in a row to read an object, before the search takes larger steps
MOST_KEYS = 4_096  # names of fields that are cached
MOST_TEXT = 2_000  # characters of a message
DEEP = 6  # levels of nesting that are read
MOST_NESTED = 60  # levels that are searched for records
DECODER = json.JSONDecoder()
# The names of the parts of a record, as `short` writes them, the most telling first.
FIELDS: dict[str, list[str]] = {part: names.split() for part, names in WORDS["fields"].items()}

KeyPath = tuple[str, ...]  # keys from the outer object to the inner


def objects_of(text: str) -> list[Any]:
    """Return the value of a line of JSON, in a list; an empty list if the line is not JSON."""
    try:
        value, end = DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return []
    return [value] if text[end:].strip() in ("", ",", "]") else []


def objects_in(parts: Iterable[bytes], reading: Reading) -> Iterator[tuple[Any, int]]:
    """Yield the objects of a JSON document, each with its line; if too large, its inner objects."""
    parts, decode = iter(parts), codecs.getincrementaldecoder("utf-8")("replace").decode
    text, place, line, steps, ended = "", 0, 0, 0, False
    tried = 0  # length at which the current object was still incomplete
    while True:
        start = text.find("{", place)
        size = len(text) - start
        if start < 0 or (size < 2 * tried and not ended):
            if ended:
                return
            keep = place if start >= 0 else len(text)
            line += text.count("\n", place, keep)
            chunk = next(parts, b"")
            ended = not chunk
            reading.lines += chunk.count(b"\n")
            text, place = text[keep:] + decode(chunk, final=ended), 0
            continue
        line += text.count("\n", place, start)
        try:
            value, place = DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            near = len(text) - getattr(error, "pos", start) < 100
            unfinished = near or "Unterminated" in str(error)
            if unfinished and not ended and size < MOST_OBJECT:
                place, tried = start, size
                continue
            steps += 1
            place = min(len(text), start + (1 if steps < MOST_STEPS else 10_000))
        else:
            yield value, line
            steps = 0
        line += text.count("\n", start, place)
        tried = 0


def csv_rows(
    delimiter: str, parts: Iterable[bytes], reading: Reading
) -> Iterator[tuple[dict[str, str], int]]:
    """Yield the rows of CSV, keyed by the names in the first row, each with its line number."""
    lines = chain.from_iterable(blocks(parts, reading))
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


def records_in(
    value: Any, around: Mapping[str, Any] | None = None, deep: int = MOST_NESTED
) -> Iterator[dict[str, Any]]:
    """Yield the innermost objects of a value's lists, with the fields of those around them."""
    around = around or {}
    if deep == 0:
        return
    if isinstance(value, list):
        for entry in value:
            if isinstance(entry, list) and len(entry) == 2:  # Loki: a time and a line
                yield {**around, "time": entry[0], "message": entry[1]}
            else:
                yield from records_in(entry, around, deep - 1)
    elif isinstance(value, dict):
        nested = {dict, list} & set(map(type, value.values()))
        if nested:
            value = {key: _plain(field, key) for key, field in value.items()}
        lists = _lists(value) if nested else {}
        if not lists:
            yield _unwrapped({**around, **value} if around else value)
            return
        rest = {key: field for key, field in value.items() if key not in lists}
        for field in lists.values():
            yield from records_in(field, {**around, **rest}, deep - 1)


def _lists(value: Mapping[str, Any], deep: int = MOST_NESTED) -> dict[str, Any]:
    """Return the fields of an object that hold lists of records; none if it has a message."""
    lists: dict[str, Any] = {}
    if deep == 0 or any(short(key) in FIELDS["message"] for key in value):
        return lists
    for key, field in value.items():
        holds = isinstance(field, list) and field and isinstance(field[0], dict | list)
        if holds or (isinstance(field, dict) and _lists(field, deep - 1)):
            lists[key] = field
    return lists


def _plain(value: Any, name: str = "", deep: int = MOST_NESTED) -> Any:
    """Return a value of OTLP as plain JSON, and a message of the journal in bytes as text."""
    if isinstance(value, dict) and len(value) == 1:
        kind, inner = next(iter(value.items()))
        if kind in ("stringValue", "intValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    if isinstance(value, dict) and "attributes" in value and deep:
        return {**value, "attributes": _plain(value["attributes"], deep=deep - 1)}
    pairs = value if isinstance(value, list) and deep else []
    if pairs and short(name) in FIELDS["message"] and all(type(byte) is int for byte in pairs):
        text = bytes(byte & 255 for byte in pairs)
        return COLOURS.sub(b"", text).decode("utf-8", "replace")
    if pairs and all(isinstance(pair, dict) and pair.keys() == {"key", "value"} for pair in pairs):
        return {str(pair["key"]): _plain(pair["value"], deep=deep - 1) for pair in pairs}
    return value


def _unwrapped(record: dict[str, Any]) -> dict[str, Any]:
    """If the message of a record is itself a JSON object, replace it by its fields."""
    for key, text in record.items():
        if isinstance(text, str) and text[:2] in ('{"', "{ ") and short(key) in FIELDS["message"]:
            for inner in objects_of(text):
                if isinstance(inner, dict):
                    return {**{name: record[name] for name in record if name != key}, **inner}
    return record


@lru_cache(MOST_KEYS)
def short(key: str) -> str:
    """Return the name of a field as the tables write it: in small letters, without `_-@.`."""
    return key.lower().translate(str.maketrans("", "", "_-@."))


def flattened(value: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the paths and values of an object."""
    for key, field in value.items():
        if isinstance(field, dict) and len(path) < DEEP:
            yield from flattened(field, (*path, key))
        elif isinstance(field, str | int | float):
            yield (*path, key), field


def at(record: Any, paths: Sequence[KeyPath]) -> Any:
    """Return the value at the first of these paths that an object has; None if it has none."""
    for path in paths:
        value = record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and value != "":
            return value
    return None


def flat(value: object, deep: int = DEEP) -> str:
    """Return a value of a record as text of bounded length."""
    if isinstance(value, str):
        return value[:MOST_TEXT]
    if value is None or deep == 0:
        return ""
    if isinstance(value, dict):
        parts = [f"{key}={flat(field, deep - 1)}" for key, field in islice(value.items(), 50)]
        return " ".join(parts)[:MOST_TEXT]
    if isinstance(value, list):
        return " ".join(flat(entry, deep - 1) for entry in value[:50])[:MOST_TEXT]
    return str(value)[:MOST_TEXT]
