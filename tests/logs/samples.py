"""Logs as programs write them, made here: the shape of a line is the program's, what it says is not
from any log. Each has a quiet hour, then trouble in its last minutes.
"""

import json
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2026, 11, 22, 3, 0, 0, tzinfo=UTC)
MINUTES, ONSET = 60, 52  # of the whole, and when the trouble begins
A_MINUTE = 12  # lines

# (who, level, text); `{n}` in a text is another number each time.
Line = tuple[str, str, str]


def minutes(usual: list[Line], trouble: list[Line], seed: str) -> list[tuple[datetime, Line]]:
    """Lines of an hour in order of time."""
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


# Name of a program to the shape of its lines, what is usual, and what the trouble prints.
LOGHUB = {
    "hdfs": (
        "{at:%y%m%d %H%M%S} 148 {level} {who}: {text}",
        [
            ("dfs.DataNode$PacketResponder", "INFO", "Received block blk_{n} from /10.0.0.7"),
            ("dfs.FSNamesystem", "INFO", "BLOCK* NameSystem.addStoredBlock: blk_{n} added"),
        ],
        [
            ("dfs.DataNode$DataXceiver", "ERROR", "writeBlock blk_{n} java.io.IOException: full"),
            ("dfs.FSNamesystem", "WARN", "blk_{n} has no valid replica on dfs.DataNode"),
        ],
    ),
    "spark": (
        "{at:%y/%m/%d %H:%M:%S} {level} {who}: {text}",
        [
            ("executor.Executor", "INFO", "Finished task {n} in stage 2. {n} bytes sent to driver"),
            ("storage.BlockManager", "INFO", "Found block rdd_{n} locally"),
        ],
        [("executor.Executor", "ERROR", "Exception in task {n}: java.lang.OutOfMemoryError: heap")],
    ),
    "zookeeper": (
        "{at:%Y-%m-%d %H:%M:%S},747 - {level:5} [main:{who}@774] - {text}",
        [
            ("NIOServerCxn", "INFO", "Closed socket connection for client /10.0.0.9:{n}"),
            ("FastLeaderElection", "INFO", "Notification time: {n}"),
        ],
        [("QuorumCnxManager", "WARN", "Cannot open channel to 3 at election address /10.0.0.3:1")],
    ),
    "openstack": (
        "nova-api.log.1.2026-11-22_13:53:08 {at:%Y-%m-%d %H:%M:%S}.008 2574 {level} {who} "
        "[req-{i:08x}-be08 - - -] {text}",
        [("nova.wsgi.server", "INFO", '10.0.0.1 "GET /v2/{n} HTTP/1.1" status: 200 len: 9')],
        [("nova.compute.manager", "ERROR", "Instance {n} failed to spawn: No valid host found")],
    ),
    "apache": (
        "[{at:%a %b %d %H:%M:%S %Y}] [{level}] {text}",
        [("mod_jk", "notice", "workerEnv.init() ok /etc/httpd/conf/workers{n}.properties")],
        [("mod_jk", "error", "mod_jk child workerEnv in error state {n}")],
    ),
    "openssh": (
        "{at:%b %d %H:%M:%S} host sshd[{i}]: {text}",
        [("sshd", "", "Accepted publickey for deploy from 10.0.0.{n} port {n} ssh2")],
        [("sshd", "", "Failed password for invalid user admin from 203.0.113.9 port {n} ssh2")],
    ),
}


def loghub(name: str) -> str:
    """The log of a program."""
    shape, usual, trouble = LOGHUB[name]
    return "\n".join(
        shape.format(at=at, i=2000 + i, who=who, level=level, text=text)
        for i, (at, (who, level, text)) in enumerate(minutes(usual, trouble, name[0]))
    )


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
PRIORITY = {"INFO": 6, "WARN": 4, "ERROR": 3, "FATAL": 2}
SEVERITY = {"INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}

# Name of a format to the shape of its lines that say of whom they are; None: made of JSON below.
WRITTEN = {
    "json": None,
    "logfmt": 'ts={at:%Y-%m-%dT%H:%M:%SZ} level={lower} service={who} msg="{text}"',
    "compose": "{who}-1  | {at:%Y-%m-%dT%H:%M:%S}.123456789Z {level} {text}",
    "kubernetes": (
        "[pod/{who}-7d9c5b7c9f-x2b4q/{who}] {at:%Y-%m-%dT%H:%M:%S}.123456789Z {level} {text}"
    ),
    "syslog": "{at:%b %d %H:%M:%S} node1 {who}[77]: {level} {text}",
    "journald": (
        "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP={second}000000\nPRIORITY={priority}\n"
        "_SYSTEMD_UNIT={who}.service\nMESSAGE={text}\n"
    ),
    "journald json": None,
    "otlp": None,
    "text": "{at:%Y-%m-%d %H:%M:%S},123 {level:5} [main] {who}: {text}",
}


def _record(name: str, at: datetime, who: str, level: str, text: str) -> dict:
    """A line of a format that is JSON."""
    if name == "json":
        return {"ts": at.isoformat(), "level": level.lower(), "service": who, "msg": text}
    second = int(at.timestamp())
    if name == "journald json":
        return {
            "__REALTIME_TIMESTAMP": f"{second}000000",
            "PRIORITY": str(PRIORITY[level]),
            "_SYSTEMD_UNIT": f"{who}.service",
            "MESSAGE": text,
        }
    record = {
        "timeUnixNano": f"{second}000000000",
        "severityNumber": SEVERITY[level],
        "body": {"stringValue": text},
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": who}}]}
    logs = [{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": [record]}]}]
    return {"resourceLogs": logs}


def shop() -> list[tuple[datetime, Line]]:
    """The lines of the shop."""
    return minutes(*SHOP, "shop")


def written(name: str) -> str:
    """The shop's log in a format."""
    lines, shape = [], WRITTEN[name]
    for at, (who, level, text) in shop():
        more = {"lower": level.lower(), "second": int(at.timestamp()), "priority": PRIORITY[level]}
        lines.append(
            shape.format(at=at, who=who, level=level, text=text, **more)
            if shape
            else json.dumps(_record(name, at, who, level, text))
        )
    return "\n".join(lines) + "\n"
