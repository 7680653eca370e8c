"""How the logs of the unseen cases write a line: (when, service, level, text) -> str."""

import json
from datetime import datetime, timedelta, timezone

ATHENS = timezone(timedelta(hours=2))
PINO = {"DEBUG": 20, "INFO": 30, "WARN": 40, "ERROR": 50, "FATAL": 60}
SEVERITY = {"DEBUG": 7, "INFO": 6, "WARN": 4, "ERROR": 3, "FATAL": 2}
PYTHON = {"WARN": "WARNING", "FATAL": "CRITICAL"}


def millis(when: datetime) -> str:
    """Milliseconds, three digits."""
    return f"{when.microsecond // 1000:03d}"


def iso(when: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a Z."""
    return f"{when:%Y-%m-%dT%H:%M:%S}.{millis(when)}Z"


def logback(when: datetime, service: str, level: str, text: str) -> str:
    """Logback as it comes: a time of day, a thread, a logger; no service."""
    thread = f"pool-2-thread-{when.second % 8}"
    return f"{when:%H:%M:%S}.{millis(when)} [{thread}] {level:5} c.acme.Main - {text}"


def spring(when: datetime, service: str, level: str, text: str) -> str:
    """Spring Boot 3 with an application name and an offset."""
    stamp = f"{when:%Y-%m-%dT%H:%M:%S}.{millis(when)}+00:00"
    thread = f"nio-8080-exec-{when.second % 9}"
    return f"{stamp} {level:>5} 1 --- [{service}] [{thread}] o.h.web.Api : {text}"


def pino(when: datetime, service: str, level: str, text: str) -> str:
    """Node's pino: levels are numbers, times are epoch milliseconds."""
    line = {"level": PINO[level], "time": int(when.timestamp() * 1000), "pid": 1}
    return json.dumps(line | {"hostname": "a7c1", "name": service, "msg": text})


def ecs(when: datetime, service: str, level: str, text: str) -> str:
    """JSON with the field names of Elastic."""
    line = {"@timestamp": iso(when), "log.level": level, "service.name": service}
    return json.dumps(line | {"message": text})


def rfc5424(when: datetime, service: str, level: str, text: str) -> str:
    """The newer syslog, with a priority."""
    return f"<{8 * 16 + SEVERITY[level]}>1 {iso(when)} rack7 {service} 411 - - {text}"


def journal(when: datetime, service: str, level: str, text: str) -> str:
    """What `journalctl -o short-iso` prints; the kernel has no process id."""
    name = "kernel" if service == "kernel" else f"{service}[{900 + len(service)}]"
    return f"{when:%Y-%m-%dT%H:%M:%S}+0000 node-b {name}: {text}"


def zap(when: datetime, service: str, level: str, text: str) -> str:
    """Zap's console: columns between tabs."""
    return f"{iso(when)}\t{level}\t{service}\tapp/run.go:88\t{text}"


def pod(when: datetime, service: str, level: str, text: str) -> str:
    """What `kubectl logs --prefix --timestamps` prints."""
    name = service if service[-2] == "-" else f"{service}-7f6d8b9c4-k2x8p"
    main = service.rstrip("-0123456789")
    return f"[pod/{name}/{main}] {when:%Y-%m-%dT%H:%M:%S.%f}123Z {level} {text}"


def python(when: datetime, service: str, level: str, text: str) -> str:
    """Python's logging with the usual four columns."""
    return (
        f"{when:%Y-%m-%d %H:%M:%S},{millis(when)} - {service} - {PYTHON.get(level, level)} - {text}"
    )


def python_athens(when: datetime, service: str, level: str, text: str) -> str:
    """Python's logging in local time, with the zone +0200."""
    local = f"{when.astimezone(ATHENS):%d/%b/%Y:%H:%M:%S %z}"
    return f"[{local}] [{PYTHON.get(level, level)}] {service}: {text}"


def python_timeless(when: datetime, service: str, level: str, text: str) -> str:
    """Python's logging as it comes: no time."""
    return f"{PYTHON.get(level, level)}:{service}:{text}"


def go(when: datetime, service: str, level: str, text: str) -> str:
    """Go's own log: no level; a good line and a bad one look alike."""
    return f"{when:%Y/%m/%d %H:%M:%S} {service}: {text}"


def postgres(when: datetime, service: str, level: str, text: str) -> str:
    """PostgreSQL; its everyday level is LOG."""
    name = {"INFO": "LOG", "WARN": "WARNING"}.get(level, level)
    return f"{when:%Y-%m-%d %H:%M:%S}.{millis(when)} UTC [{60 + when.second}] {name}:  {text}"


def ruby(when: datetime, service: str, level: str, text: str) -> str:
    """Ruby's Logger."""
    return f"{level[0]}, [{when:%Y-%m-%dT%H:%M:%S.%f} #1] {level:>5} -- {service}: {text}"


def klog(when: datetime, service: str, level: str, text: str) -> str:
    """Kubernetes' own: the text begins with the file and line of the source."""
    return f"{level[0]}{when:%m%d %H:%M:%S.%f}      17 {text}"


def old_compose(when: datetime, service: str, level: str, text: str) -> str:
    """The older docker-compose: an underscore, and the service's own clock."""
    return f"{service}_1 | {when:%b %d %H:%M:%S}.{millis(when)} {level.lower()}: {text}"


def access(when: datetime, service: str, level: str, text: str) -> str:
    """A combined access log; the service is the caller's address."""
    return f"{service} - - [{when:%d/%b/%Y:%H:%M:%S} +0000] {text}"


def access_json(when: datetime, service: str, level: str, text: str) -> str:
    """An access log of nginx as JSON; the text is `METHOD PATH STATUS UPSTREAM`."""
    method, path, status, upstream = text.split()
    line = {"time": f"{when:%Y-%m-%dT%H:%M:%S}+00:00", "remote_addr": service, "method": method}
    return json.dumps(line | {"uri": path, "status": int(status), "upstream": upstream})


def nginx_error(when: datetime, service: str, level: str, text: str) -> str:
    """The error log of nginx."""
    return f"{when:%Y/%m/%d %H:%M:%S} [{level.lower()}] 9#9: *{when.microsecond // 7} {text}"
