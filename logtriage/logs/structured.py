"""Records of JSON and of `key=value` pairs: which of their fields is the time, the level, the
service and the message.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .levels import FAILED, SERVED, WARN, named_level
from .records import Reader, Record
from .times import STAMPS, Clock, number_to_second

# Names of fields, the more telling first; a dot goes down one level, unless the name has one.
TIMES = (
    *("@timestamp", "timestamp", "time", "ts", "datetime", "date", "asctime", "eventTime", "t"),
    *("timeUnixNano", "Timestamp", "TimeGenerated"),
)
LEVELS = (
    *("level", "severity", "lvl", "levelname", "log.level", "loglevel", "log_level"),
    *("severity_text", "severityText", "SeverityText", "priority", "@l", "Level"),
)
MESSAGES = (
    *("message", "msg", "MESSAGE", "log", "event", "text", "body", "Body", "short_message", "@m"),
    *("@mt", "textPayload", "jsonPayload.message", "Message"),
)
SERVICES = (
    *("service.name", "service", "service_name", "serviceName", "app", "application", "component"),
    *("kubernetes.labels.app", "kubernetes.container_name", "kubernetes.pod_name"),
    *("resource.service.name", "resource.labels.container_name", "container_name", "container"),
    *("k8s.container.name", "pod", "pod_name", "unit", "program", "process.name", "logger"),
    *("logger_name", "name"),
)
ERRORS = ("error", "err", "exception", "error.message", "exc_info", "stack", "cause")
STATUSES = ("status", "status_code", "statusCode", "http.status_code", "http.response.status_code")
REQUESTS = (
    "method",
    "path",
    "url",
    "uri",
    "request",
    "http.method",
    "route",
    "http.request.method",
)
MOST_SHAPES = 1_000  # sets of keys whose fields are remembered
MOST_KEYS = 4_000  # characters of such a set
MOST_LEVEL = 40  # characters of a level that is remembered
MOST_TEXT = 2_000  # characters of a message
DEEP = 8  # levels of a value that are looked into

Path = str | tuple[str, ...]  # a key, or keys from the outer object to the inner
# A key begins where a word does: to look for it from each letter would cost the square of a line.
PAIR = re.compile(r'(?<![\w.@-])([\w.@-]{1,200})=(?:"((?:[^"\\]|\\.)*)"|(\S*))')
_DECODER = json.JSONDecoder()


class Fields(NamedTuple):
    """Where the parts of a record stand in objects with certain keys; None for a part that they
    have not.
    """

    time: Path | None
    level: Path | None
    message: Path | None
    service: Path | None
    error: Path | None
    status: Path | None


def fields_of(one: Mapping[str, Any]) -> Fields:
    """Where the parts of this object stand."""
    status = _first(one, STATUSES) if _first(one, REQUESTS) else None
    return Fields(
        _first(one, TIMES),
        _first(one, LEVELS),
        _first(one, MESSAGES),
        _first(one, SERVICES),
        _first(one, ERRORS),
        status,
    )


def _first(one: Mapping[str, Any], names: Sequence[str]) -> Path | None:
    for name in names:
        if name in one:
            inner = one[name]
            if isinstance(inner, dict):
                if "name" in inner and names is SERVICES:
                    return (name, "name")
                if "message" in inner and names in (ERRORS, MESSAGES):
                    return (name, "message")
                continue
            return name
        path = tuple(name.split("."))
        if len(path) > 1 and _at(one, path) is not None:
            return path
    return None


def _at(one: Any, path: Path) -> Any:
    for name in (path,) if isinstance(path, str) else path:
        if not isinstance(one, dict):
            return None
        one = one.get(name)
    return one


def objects_of(line: bytes) -> list[dict[str, Any]]:
    """The objects that a line of JSON holds: one, those of an array, or none where it is no JSON.
    What is nested too deeply or has numbers of too many digits is none.
    """
    try:
        value, _ = _DECODER.raw_decode(line.decode("utf-8", "replace").strip())
    except (ValueError, RecursionError):
        return []
    if isinstance(value, dict):
        return [value]
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def pairs_of(line: bytes) -> list[dict[str, Any]]:
    """The `key=value` pairs of a line, as one object; none for a line without any."""
    text = line.decode("utf-8", "replace")
    if "\\" in text:  # a quote may be escaped
        pairs = {key: quoted or bare for key, quoted, bare in PAIR.findall(text)}
        return [pairs] if pairs else []
    pairs, key = {}, ""
    for place, part in enumerate(text.split('"')):
        if place % 2:  # within quotes
            pairs[key] = part
        else:
            for word in part.split():
                key, equals, value = word.partition("=")
                if equals:
                    pairs[key] = value
    return [pairs] if pairs else []


class Times:
    """Values of a field of times to seconds since 1970; -1 for what is none."""

    def __init__(self) -> None:
        self._minutes: dict[str, int] = {}

    def at(self, value: object) -> int:
        if isinstance(value, str):
            if value[16:17] == ":" and value[10:11] in ("T", " "):
                start = self._minutes.get(value[:16])
                if start is None:
                    if len(self._minutes) >= 50_000:
                        self._minutes.clear()
                    start = _parse(value[:16] + ":00" + value[19:])
                    self._minutes[value[:16]] = start
                second = value[17:19]
                return start + int(second) if start >= 0 and second.isdecimal() else -1
            if value.replace(".", "", 1).isdecimal() and len(value) < 30:
                return number_to_second(float(value))
            return _parse(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return number_to_second(value)
        return -1


def _parse(text: str) -> int:
    """A time in any of the ways in which logs write it."""
    line = text[:64].encode("utf-8", "replace")
    for stamp in STAMPS:
        found = stamp.pattern.search(line)
        if found:
            second = Clock(stamp).at(found[1], found[2], found[3])
            if second >= 0:
                return second
    return -1


def flat(value: object, deep: int = DEEP) -> str:
    """A value of a record as text of bounded length."""
    if isinstance(value, str):
        return value[:MOST_TEXT]
    if value is None or deep == 0:
        return ""
    if isinstance(value, dict):
        parts = [f"{key}={flat(one, deep - 1)}" for key, one in list(value.items())[:50]]
        return " ".join(parts)[:MOST_TEXT]
    if isinstance(value, list):
        return " ".join(flat(one, deep - 1) for one in value[:50])[:MOST_TEXT]
    # An integer of more digits than Python writes was none that it read: see `objects_of`.
    return str(value)[:MOST_TEXT]


class Picker:
    """Takes the parts of records from objects; what it works out of their keys and of the words for
    levels, it remembers.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Fields] = {}
        self._levels: dict[object, int | None] = {}
        self._at_time = Times().at

    def parts(self, one: dict[str, Any]) -> tuple[int, str | None, int | None, bytes | None]:
        """Second or -1, service, level and text of an object; None for what it does not say."""
        keys = tuple(one)
        fields = self._known.get(keys)
        if fields is None:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            fields = fields_of(one)
            if sum(map(len, keys)) + len(keys) <= MOST_KEYS:
                self._known[keys] = fields
        time, at_level, at_message, at_service, at_error, at_status = fields
        second, service, level, text = -1, None, None, None
        if time is not None:
            second = self._at_time(one[time] if type(time) is str else _at(one, time))
        if at_service is not None:
            service = one[at_service] if type(at_service) is str else _at(one, at_service)
            if type(service) is not str or not service:
                service = None
        if at_level is not None:
            level = self._level(one[at_level] if type(at_level) is str else _at(one, at_level))
        if at_status is not None and (level is None or level < WARN):
            level = _status_level(_at(one, at_status), level)
        if at_message is not None:
            message = one[at_message] if type(at_message) is str else _at(one, at_message)
            if type(message) is not str:
                message = flat(message)
            if at_error is not None:
                message += " " + flat(_at(one, at_error))
            text = message.encode("utf-8", "replace")
        return second, service, level, text

    def _level(self, value: object) -> int | None:
        if type(value) is not str or len(value) > MOST_LEVEL:
            return named_level(value)
        if value not in self._levels:
            if len(self._levels) >= MOST_SHAPES:
                self._levels.clear()
            self._levels[value] = named_level(value)
        return self._levels[value]


def _status_level(status: object, level: int | None) -> int | None:
    """The level of a request that was answered so; `level` for what is no status."""
    if isinstance(status, str) and status.isdecimal() and len(status) == 3:
        status = int(status)
    if isinstance(status, int) and 100 <= status < 600:
        return FAILED if status >= 500 else SERVED
    return level


def object_reader(parse: Callable[[bytes], list[dict[str, Any]]]) -> Reader:
    """A reader of lines that hold objects.

    Args:
        parse: the objects of a line.
    """
    parts = Picker().parts

    def read(lines: Sequence[bytes]) -> Iterator[Record]:
        for place, line in enumerate(lines):
            for one in parse(line):
                second, service, level, text = parts(one)
                yield second, service, level, line if text is None else text, place

    return read


def payload_reader() -> Callable[[bytes], tuple[int | None, str | None, bytes]]:
    """What reads level, service and text of a record that is the text of another."""
    parts = Picker().parts

    def read(text: bytes) -> tuple[int | None, str | None, bytes]:
        for one in objects_of(text):
            _, service, level, inner = parts(one)
            return level, service, text if inner is None else inner
        return None, None, text

    return read


def docker_reader() -> Reader:
    """A reader of the files of Docker's json-file driver, whose `log` may be JSON again."""
    times, payload = Times(), payload_reader()

    def read(lines: Sequence[bytes]) -> Iterator[Record]:
        for place, line in enumerate(lines):
            for one in objects_of(line):
                text = flat(one.get("log")).rstrip().encode("utf-8", "replace")
                level, service = None, None
                if text[:1] == b"{":
                    level, service, text = payload(text)
                if text:
                    yield times.at(one.get("time")), service, level, text, place

    return read
