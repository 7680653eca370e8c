"""Logs as programs write them, made here: the shape of a line is the program's, what it says is not
from any log. Each has a quiet hour, then trouble in its last minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2026, 11, 22, 3, 0, 0, tzinfo=UTC)
MINUTES, ONSET = 60, 52  # of the whole, and when the trouble begins
A_MINUTE = 12  # lines

# (who, level, text) by kind of system: what is usual, and what the trouble prints.
Line = tuple[str, str, str]


def minutes(usual: list[Line], trouble: list[Line], seed: str) -> list[tuple[datetime, Line]]:
    """Lines of an hour in order of time; `{n}` in a text is another number each time."""
    random = Random(seed)
    lines = []
    for minute in range(MINUTES):
        for _ in range(A_MINUTE):
            lines.append((minute, random.choice(usual)))
        if minute >= ONSET:
            lines += [(minute, random.choice(trouble)) for _ in range(6)]
    made = []
    for minute, (who, level, text) in lines:
        at = START + timedelta(minutes=minute, seconds=random.randrange(60))
        made.append((at, (who, level, text.replace("{n}", str(random.randrange(1000, 10**6))))))
    return sorted(made, key=lambda one: one[0])


HDFS = (
    [
        (
            "dfs.DataNode$PacketResponder",
            "INFO",
            "Received block blk_{n} of size {n} from /10.0.0.7",
        ),
        ("dfs.FSNamesystem", "INFO", "BLOCK* NameSystem.addStoredBlock: blockMap updated blk_{n}"),
    ],
    [
        ("dfs.DataNode$DataXceiver", "ERROR", "writeBlock blk_{n} java.io.IOException: disk full"),
        ("dfs.FSNamesystem", "WARN", "blk_{n} has no valid replica on dfs.DataNode"),
    ],
)
SPARK = (
    [
        (
            "executor.Executor",
            "INFO",
            "Finished task {n} in stage 2. {n} bytes result sent to driver",
        ),
        ("storage.BlockManager", "INFO", "Found block rdd_{n} locally"),
    ],
    [("executor.Executor", "ERROR", "Exception in task {n}: java.lang.OutOfMemoryError: heap")],
)
ZOOKEEPER = (
    [
        ("NIOServerCxn", "INFO", "Closed socket connection for client /10.0.0.9:{n}"),
        ("FastLeaderElection", "INFO", "Notification time: {n}"),
    ],
    [("QuorumCnxManager", "WARN", "Cannot open channel to 3 at election address /10.0.0.3:{n}")],
)
OPENSTACK = (
    [
        (
            "nova.osapi_compute.wsgi.server",
            "INFO",
            '10.0.0.1 "GET /v2/{n} HTTP/1.1" status: 200 len: 9',
        )
    ],
    [("nova.compute.manager", "ERROR", "Instance {n} failed to spawn: No valid host was found")],
)
APACHE = (
    [("mod_jk", "notice", "workerEnv.init() ok /etc/httpd/conf/workers{n}.properties")],
    [("mod_jk", "error", "mod_jk child workerEnv in error state {n}")],
)
OPENSSH = (
    [("sshd", "", "Accepted publickey for deploy from 10.0.0.{n} port {n} ssh2")],
    [("sshd", "", "Failed password for invalid user admin from 203.0.113.9 port {n} ssh2")],
)


def hdfs() -> str:
    return "\n".join(
        f"{at:%y%m%d %H%M%S} 148 {level} {who}: {text}"
        for at, (who, level, text) in minutes(*HDFS, "h")
    )


def spark() -> str:
    return "\n".join(
        f"{at:%y/%m/%d %H:%M:%S} {level} {who}: {text}"
        for at, (who, level, text) in minutes(*SPARK, "s")
    )


def zookeeper() -> str:
    return "\n".join(
        f"{at:%Y-%m-%d %H:%M:%S},747 - {level:5} [main:{who}@774] - {text}"
        for at, (who, level, text) in minutes(*ZOOKEEPER, "z")
    )


def openstack() -> str:
    return "\n".join(
        f"nova-api.log.1.2026-11-22_13:53:08 {at:%Y-%m-%d %H:%M:%S}.008 2574 {level} {who} "
        f"[req-{i:08x}-be08 - - -] {text}"
        for i, (at, (who, level, text)) in enumerate(minutes(*OPENSTACK, "o"))
    )


def apache() -> str:
    return "\n".join(
        f"[{at:%a %b %d %H:%M:%S %Y}] [{level}] {text}"
        for at, (_, level, text) in minutes(*APACHE, "a")
    )


def openssh() -> str:
    return "\n".join(
        f"{at:%b %d %H:%M:%S} host sshd[{2000 + i}]: {text}"
        for i, (at, (_, _, text)) in enumerate(minutes(*OPENSSH, "l"))
    )


LOGHUB: dict[str, Callable[[], str]] = {
    "hdfs": hdfs,
    "spark": spark,
    "zookeeper": zookeeper,
    "openstack": openstack,
    "apache": apache,
    "openssh": openssh,
}

# A shop: the database below runs out of connections, and whoever calls it complains.
SHOP = (
    [
        ("web", "INFO", "GET /basket/{n} 200"),
        ("basket", "INFO", "basket {n} loaded"),
        ("basket-db", "INFO", "checkpoint {n} complete"),
        ("catalog", "INFO", "price of {n} read"),
        ("catalog", "WARN", "cache miss for item {n}"),
    ],
    [
        ("web", "ERROR", "upstream basket answered 503 after {n} ms"),
        ("basket", "ERROR", "connection to basket-db timed out after {n} ms"),
        ("basket", "ERROR", "connection to basket-db timed out after {n} ms"),
        ("basket-db", "FATAL", "sorry, too many clients already: pid {n}"),
    ],
)


def shop() -> list[tuple[datetime, Line]]:
    """The lines of the shop."""
    return minutes(*SHOP, "shop")


def _json(at: datetime, who: str, level: str, text: str) -> str:
    return json.dumps({"ts": at.isoformat(), "level": level.lower(), "service": who, "msg": text})


def _logfmt(at: datetime, who: str, level: str, text: str) -> str:
    return f'ts={at:%Y-%m-%dT%H:%M:%SZ} level={level.lower()} service={who} msg="{text}"'


def _compose(at: datetime, who: str, level: str, text: str) -> str:
    return f"{who}-1  | {at:%Y-%m-%dT%H:%M:%S}.123456789Z {level} {text}"


def _pods(at: datetime, who: str, level: str, text: str) -> str:
    return f"[pod/{who}-7d9c5b7c9f-x2b4q/{who}] {at:%Y-%m-%dT%H:%M:%S}.123456789Z {level} {text}"


def _syslog(at: datetime, who: str, level: str, text: str) -> str:
    return f"{at:%b %d %H:%M:%S} node1 {who}[77]: {level} {text}"


def _export(at: datetime, who: str, level: str, text: str) -> str:
    priority = {"INFO": 6, "WARN": 4, "ERROR": 3, "FATAL": 2}[level]
    return (
        f"__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP={int(at.timestamp())}000000\nPRIORITY={priority}\n"
        f"_SYSTEMD_UNIT={who}.service\nMESSAGE={text}\n"
    )


def _journal(at: datetime, who: str, level: str, text: str) -> str:
    priority = {"INFO": "6", "WARN": "4", "ERROR": "3", "FATAL": "2"}[level]
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": f"{int(at.timestamp())}000000",
            "PRIORITY": priority,
            "_SYSTEMD_UNIT": f"{who}.service",
            "MESSAGE": text,
        }
    )


def _otlp(at: datetime, who: str, level: str, text: str) -> str:
    number = {"INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}[level]
    record = {
        "timeUnixNano": f"{int(at.timestamp())}000000000",
        "severityNumber": number,
        "body": {"stringValue": text},
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": who}}]}
    logs = [{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": [record]}]}]
    return json.dumps({"resourceLogs": logs})


def _text(at: datetime, who: str, level: str, text: str) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S},123 {level:5} [main] {who}: {text}"


# Name of a format to how it writes a line that says of whom it is.
WRITTEN = {
    "json": _json,
    "logfmt": _logfmt,
    "compose": _compose,
    "kubernetes": _pods,
    "syslog": _syslog,
    "journald": _export,
    "journald json": _journal,
    "otlp": _otlp,
    "text": _text,
}


def written(name: str) -> str:
    """The shop's log in a format."""
    write = WRITTEN[name]
    return "\n".join(write(at, *line) for at, line in shop()) + "\n"
