"""Logs of OpenTelemetry in JSON: `resourceLogs` > `scopeLogs` > `logRecords`.

Read by hand: the protocol's own Python package would bring protobuf along, for the six fields that
are needed here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from .levels import named_level, otlp_level
from .records import Reader, Record
from .structured import DEEP, flat, objects_of
from .times import number_to_second

NAMES = ("service.name", "k8s.deployment.name", "k8s.container.name", "container.name")


def otlp_reader() -> Reader:
    """A reader of lines that hold a batch each."""

    def read(lines: Sequence[bytes]) -> Iterator[Record]:
        for place, line in enumerate(lines):
            for one in objects_of(line):
                for resource in _dicts(one.get("resourceLogs")):
                    service = _resource_name(resource.get("resource"))
                    for scope in _dicts(resource.get("scopeLogs")):
                        for record in _dicts(scope.get("logRecords")):
                            yield _otlp_record(record, service, place)

    return read


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _resource_name(resource: object) -> str | None:
    known = {
        one.get("key"): one.get("value", {})
        for one in _dicts(resource.get("attributes") if isinstance(resource, dict) else None)
        if isinstance(one.get("key"), str)
    }
    for name in NAMES:
        if name in known:
            return flat(_otlp_value(known[name])) or None
    return None


def _otlp_value(value: object, deep: int = DEEP) -> object:
    """An `AnyValue` as plain JSON has it."""
    if not isinstance(value, dict) or deep == 0:
        return value
    for kind, inner in value.items():
        if kind == "kvlistValue" and isinstance(inner, dict):
            pairs = _dicts(inner.get("values"))
            return {flat(one.get("key")): _otlp_value(one.get("value"), deep - 1) for one in pairs}
        if kind == "arrayValue" and isinstance(inner, dict):
            return [_otlp_value(one, deep - 1) for one in _dicts(inner.get("values"))]
        return inner
    return None


def _otlp_record(record: dict[str, Any], service: str | None, place: int) -> Record:
    level = otlp_level(record.get("severityNumber"))
    if level is None:
        level = named_level(record.get("severityText"))
    stated = record.get("timeUnixNano") or record.get("observedTimeUnixNano") or 0
    second = -1
    if isinstance(stated, int | float) or (isinstance(stated, str) and stated.isdecimal()):
        second = number_to_second(float(stated) if len(str(stated)) < 30 else 0)
    text = flat(_otlp_value(record.get("body")))
    for one in _dicts(record.get("attributes")):
        if one.get("key") == "exception.message":
            text += " " + flat(_otlp_value(one.get("value")))
    return second, service, level, text.encode("utf-8", "replace"), place
