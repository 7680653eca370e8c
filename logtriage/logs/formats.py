"""Which way a log is written, found from its first lines.

| format | recognised by |
|---|---|
| `otlp` | JSON with `resourceLogs`, a batch a line or one document |
| `docker` | JSON lines of Docker's json-file driver: `log`, `stream`, `time` |
| `journald` | the journal's export (`journalctl -o export`) or its JSON (`-o json`) |
| `json` | any other objects, one a line or one document |
| `kubernetes` | files of a node (`TIME stdout F text`), or `kubectl logs --prefix` |
| `compose` | `docker compose logs`: `name-1  | text` |
| `logfmt` | `key=value` pairs |
| `syslog` | a time, a host and `process[id]:` |
| `text` | any other lines, with or without a time; those of `docker logs -t`, too |
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .journal import export_reader, journal_json_reader
from .lines import MOST_DOCUMENT, MOST_LINE
from .otlp import otlp_reader
from .records import Reader, text_reader
from .structured import docker_reader, object_reader, objects_of, pairs_of, payload_reader
from .times import Stamp, find_stamp

SAMPLE = 400  # lines by which a format is recognised
MOST = 0.6  # share of them that must look alike

CRI = re.compile(rb"()(?:stdout|stderr) [FP] ")
POD = re.compile(rb"\[(?:pod/)?([^/\]\s]{1,253})/[^/\]\s]{1,253}\] ?")
COMPOSE = re.compile(rb"(\w[\w.-]{0,200}?)\s*\| ?")
LOGFMT = re.compile(rb"(?:^|\s)(?:ts|time|timestamp|t|level|lvl|severity|msg|message)=")
SYSLOG = re.compile(
    rb"[\s:]*(?!(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL) )[\w.:-]{1,253} "
    rb"([A-Za-z_][\w./-]{0,100})(?:\([\w-]*\))?(?:\[\d+\])?: "
)
# What stands before or after the time in some formats that are text otherwise.
_MARKS = (("kubernetes", POD), ("compose", COMPOSE))


@dataclass(frozen=True)
class Format:
    """How a log is read.

    Attributes:
        name: as in the table above.
        reader: makes a reader; each stream needs its own.
        dated: what its times say (`times.Stamp.dated`); empty where it has none.
        most_line: bytes that are kept of a line.
        document: whether all of it is one value of JSON, over many lines.
    """

    name: str
    reader: Callable[[], Reader]
    dated: str = "date"
    most_line: int = MOST_LINE
    document: bool = False


def recognise(sample: Sequence[bytes]) -> Format:
    """The format of a log, from its first lines."""
    lines = [line for line in sample if line.strip()][:SAMPLE]
    if any(line.startswith(b"__REALTIME_TIMESTAMP=") for line in lines):
        return Format("journald", export_reader)
    if lines and lines[0].lstrip()[:1] in (b"{", b"["):
        found = _recognise_json(lines)
        if found is not None:
            return found
    for name, mark in _MARKS:
        if _most(lines, mark.match):
            heads = [(line, mark.match(line)) for line in lines]
            inner = [line[head.end() :] if head else line for line, head in heads]
            return _text(name, find_stamp(inner), before=mark)
    if _most(lines, lambda line: len(LOGFMT.findall(line)) >= 2):
        return Format("logfmt", lambda: object_reader(pairs_of))
    stamp = find_stamp(lines)
    if stamp is not None:
        found_after = [stamp.pattern.sub(b"", line, count=1).lstrip() for line in lines]
        if _most(found_after, CRI.match):
            return _text("kubernetes", stamp, after=CRI)
        if _most(found_after, SYSLOG.match):
            return _text("syslog", stamp, after=SYSLOG)
    return _text("text", stamp)


def _most(lines: Sequence[bytes], holds: Callable[[bytes], object]) -> bool:
    return bool(lines) and sum(bool(holds(line)) for line in lines) >= MOST * len(lines)


def _text(
    name: str,
    stamp: Stamp | None,
    before: re.Pattern[bytes] | None = None,
    after: re.Pattern[bytes] | None = None,
) -> Format:
    return Format(
        name,
        lambda: text_reader(stamp, before, after, payload_reader()),
        stamp.dated if stamp else "",
    )


def _recognise_json(lines: Sequence[bytes]) -> Format | None:
    objects = [one for line in lines for one in objects_of(line)]
    if not _most(lines, objects_of):
        # One document over many lines, or batches so long that their beginning is no JSON.
        batches = b'"resourceLogs"' in b"\n".join(lines)[:4096]
        if batches and len(lines) == 1:
            return Format("otlp", otlp_reader, most_line=MOST_DOCUMENT)
        if batches:
            return Format("otlp", otlp_reader, document=True)
        if len(lines) > 1 and lines[0].strip() in (b"[", b"{"):
            return Format("json", lambda: object_reader(objects_of), document=True)
        return None
    if _most(lines, lambda line: b'"resourceLogs"' in line):
        return Format("otlp", otlp_reader, most_line=MOST_DOCUMENT)
    if _keys(objects, "log", "stream", "time"):
        return Format("docker", docker_reader)
    if _keys(objects, "__REALTIME_TIMESTAMP"):
        return Format("journald", journal_json_reader)
    return Format("json", lambda: object_reader(objects_of))


def _keys(objects: Sequence[dict[str, object]], *names: str) -> bool:
    return sum(all(name in one for name in names) for one in objects) >= MOST * len(objects)
