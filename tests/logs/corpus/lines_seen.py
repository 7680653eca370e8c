"""How the logs of the seen cases write a line: (when, service, level, text) -> str."""

import json
from datetime import datetime, timedelta, timezone

BERLIN = timezone(timedelta(hours=2))


def millis(when: datetime) -> str:
    """Milliseconds, three digits."""
    return f"{when.microsecond // 1000:03d}"


def iso(when: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a Z."""
    return f"{when:%Y-%m-%dT%H:%M:%S}.{millis(when)}Z"


def plain(when: datetime, service: str, level: str, text: str) -> str:
    """A date, a level, the service in brackets."""
    return f"{when:%Y-%m-%d %H:%M:%S},{millis(when)} {level:5} [{service}] {text}"


def plain_berlin(when: datetime, service: str, level: str, text: str) -> str:
    """Local time with its zone +0200."""
    return f"{when.astimezone(BERLIN):%Y-%m-%d %H:%M:%S %z} {level} {service}: {text}"


def plain_utc(when: datetime, service: str, level: str, text: str) -> str:
    """UTC with its name."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC {level} {service}: {text}"


def clock_only(when: datetime, service: str, level: str, text: str) -> str:
    """A time of day, no date, no service: the file's name tells it."""
    return f"{when:%H:%M:%S}.{millis(when)} {level:5} {text}"


def timeless(when: datetime, service: str, level: str, text: str) -> str:
    """No time at all."""
    return f"[{level.lower()}] {text}"


def json_iso(when: datetime, service: str, level: str, text: str) -> str:
    """JSON with an ISO time."""
    line = {"time": iso(when), "level": level.lower(), "service": service, "message": text}
    return json.dumps(line)


def json_epoch(when: datetime, service: str, level: str, text: str) -> str:
    """JSON with seconds since 1970."""
    line = {"ts": round(when.timestamp(), 3), "lvl": level, "app": service, "msg": text}
    return json.dumps(line)


def logfmt(when: datetime, service: str, level: str, text: str) -> str:
    """Key=value pairs."""
    said = json.dumps(text)
    return f"time={iso(when)} level={level.lower()} app={service} msg={said}"


def syslog(when: datetime, service: str, level: str, text: str) -> str:
    """RFC 3164 without a priority; the kernel has no process id."""
    name = "kernel" if service == "kernel" else f"{service}[{700 + len(service)}]"
    return f"{when:%b %d %H:%M:%S} node-3 {name}: {text}"


def klog(when: datetime, service: str, level: str, text: str) -> str:
    """Kubernetes' own: the text begins with the file and line of the source."""
    return f"{level[0]}{when:%m%d %H:%M:%S.%f}       1 {text}"


def compose(when: datetime, service: str, level: str, text: str) -> str:
    """What `docker compose logs -t` prints."""
    return f"{service + '-1':14}| {when:%Y-%m-%dT%H:%M:%S.%f}000Z {level} {text}"


def access(when: datetime, service: str, level: str, text: str) -> str:
    """An access log of nginx; the service is the caller's address."""
    return f"{service} - - [{when:%d/%b/%Y:%H:%M:%S} +0000] {text}"


def nginx_error(when: datetime, service: str, level: str, text: str) -> str:
    """The error log of nginx."""
    return f"{when:%Y/%m/%d %H:%M:%S} [{level.lower()}] 31#31: *{when.microsecond // 10} {text}"
