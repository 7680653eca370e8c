"""The ways in which programs print one line of a log."""

import json
from datetime import datetime
from random import Random

LEVELS = {
    # letter: word, pino number, syslog priority, Serilog, Postgres, Tomcat, Redis
    "D": ("DEBUG", 20, 135, "DBG", "DEBUG1", "FINE", "."),
    "I": ("INFO", 30, 134, "INF", "LOG", "INFO", "*"),
    "W": ("WARN", 40, 132, "WRN", "WARNING", "WARNING", "#"),
    "E": ("ERROR", 50, 131, "ERR", "ERROR", "SEVERE", "#"),
    "F": ("FATAL", 60, 130, "FTL", "FATAL", "SEVERE", "#"),
}

PLAIN = {
    "log4j": "{day} {clock},{ms3} {LEVEL:5} [{thread}] {logger} - {text}",
    "spring": (
        "{day}T{clock}.{ms3}{offset} {LEVEL:>5} 1 --- [{svc}] [{thread}] {logger:40} : {text}"
    ),
    "rfc3164": "{mon} {dd:>2} {clock} {svc} {logger}: {text}",
    "rfc5424": "<{pri}>1 {iso} {host} {svc} {pid} - - {text}",
    "logfmt": 'time="{iso}" level={level} service={svc} msg={quoted}',
    "logfmt_file": "ts={iso} caller={source} level={level} msg={quoted}",
    "golog": "{slashday} {clock} {text}",
    "klog": "{letter}{mm}{dd:0>2} {clock}.{us6}       1 {source}] {text}",
    "python": "{day} {clock},{ms3} - {logger} - {PYLEVEL} - {text}",
    "pyservice": "{day} {clock},{ms3} {PYLEVEL} {svc} {text}",
    "gunicorn": "[{day} {clock} +0000] [{pid}] [{PYLEVEL}] {text}",
    "celery": "[{day} {clock},{ms3}: {PYLEVEL}/ForkPoolWorker-{tid}] {text}",
    "nginx": "{slashday} {clock} [{nginx}] {pid}#{pid}: {text}",
    "access": "10.12.{tid}.7 - - [{dd:0>2}/{mon}/{year}:{clock} +0000] {text}",
    "compose": "{svc}-1  | {iso} {LEVEL} {text}",
    "kubectl": "[pod/{svc}-6f9c7d5b8-x2x{pod}/{svc}] {iso} {LEVEL} {text}",
    "stern": "{svc}-79d4bf6c5d-{pod}kqzt {svc} {iso} [{LEVEL}] {text}",
    "cri": "{day}T{clock}.{ns9}Z {stream} F {LEVEL} {text}",
    "postgres": "{day} {clock}.{ms3} UTC [{pid}] {pg}:  {text}",
    "mysql": "{day}T{clock}.{us6}Z {tid} [{mysql}] [MY-0{code}] [Server] {text}",
    "redis": "1:M {dd:0>2} {mon} {year} {clock}.{ms3} {mark} {text}",
    "kafka": "[{day} {clock},{ms3}] {LEVEL} {text} ({logger})",
    "elastic": "[{day}T{clock},{ms3}][{LEVEL:5}][{logger}] [{svc}] {text}",
    "envoy_access": "[{iso}] {text}",
    "haproxy": "{mon} {dd:>2} {clock} {host} haproxy[{pid}]: 10.1.0.{tid}:4{tid}12 "
    "[{dd:0>2}/{mon}/{year}:{clock}.{ms3}] {text}",
    "serilog": "{day} {clock}.{ms3} {offset} [{ser}] {text}",
    "rails": "{letter}, [{day}T{clock}.{us6} #{pid}] {LEVEL:>5} -- : {text}",
    "elixir": "{clock}.{ms3} [{level}] {text}",
    "rabbit": "{day} {clock}.{us6}+00:00 [{level}] <0.{tid}12.0> {text}",
    "tracing": "{day}T{clock}.{us6}Z {LEVEL:>5} {logger}: {text}",
    "monolog": "[{day}T{clock}.{us6}+00:00] app.{LEVEL}: {text} [] []",
    "tomcat": "{dd:0>2}-{mon}-{year} {clock}.{ms3} {tomcat} [{thread}] {logger} {text}",
    "wildfly": "{clock},{ms3} {LEVEL:5} [{logger}] (default task-{tid}) {text}",
    "cassandra": "{LEVEL:5} [{thread}] {day} {clock},{ms3} StorageProxy.java:{code} - {text}",
    "heroku": "{day}T{clock}.{us6}+00:00 app[{svc}.1]: {text}",
    "hashicorp": "{iso} [{LEVEL}]{pad} {logger}: {text}",
    "coredns": "{iso} [{LEVEL}] {text}",
    "asterisk": "[{day} {clock}] {asterisk}[{pid}]: {text}",
    "mssql": "{day} {clock}.{cs2} spid{tid:<6}     {text}",
    "jul": "{mon} {dd:0>2}, {year} {clock12} {ampm} {logger} handle\n{tomcat}: {text}",
    "journal": "{day}T{clock}+0000 {host} {svc}[{pid}]: {text}",
    "epoch": "{epoch}.{ms3} {svc} {level} {text}",
    "zoned": "{day} {clock} {offset} | {svc} | {LEVEL} | {text}",
    "notime": "[{LEVEL}] {text}",
}

JSON = {
    "pino": {"level": "pino", "time": "epoch_ms", "pid": "pid", "name": "svc", "msg": "text"},
    "zap": {"level": "level", "ts": "epoch_f", "caller": "source", "msg": "text"},
    "zap_iso": {"level": "level", "ts": "iso", "logger": "svc", "msg": "text"},
    "winston": {"level": "level", "message": "text", "service": "svc", "timestamp": "iso"},
    "compact": {"@t": "iso", "@l": "dotnet", "@m": "text", "Application": "svc"},
    "ecs": {
        "@timestamp": "iso",
        "log.level": "level",
        "message": "text",
        "service.name": "svc",
        "ecs.version": "ecs",
    },
    "gelf": {
        "version": "gelf",
        "host": "svc",
        "short_message": "text",
        "timestamp": "epoch_f",
        "level": "severity",
    },
    "cloud": {
        "severity": "LEVEL",
        "textPayload": "text",
        "timestamp": "iso",
        "resource": "resource",
        "insertId": "insert",
    },
    "dockerjson": {"log": "printed", "stream": "stream", "time": "iso_ns"},
    "journaljson": {
        "__REALTIME_TIMESTAMP": "epoch_us",
        "_SYSTEMD_UNIT": "unit",
        "PRIORITY": "priority",
        "MESSAGE": "text",
    },
    "mongo": {"t": "mongo_time", "s": "letter", "c": "component", "ctx": "ctx", "msg": "text"},
    "structlog": {"event": "text", "level": "level", "logger": "svc", "timestamp": "iso"},
}


def fields(when: datetime, svc: str, level: str, logger: str, text: str, rng: Random) -> dict:
    """Name every part that a format may print."""
    word, pino, pri, ser, pg, tomcat, mark = LEVELS[level]
    ms = when.microsecond // 1000
    clock = when.strftime("%H:%M:%S")
    offset = when.strftime("%z")
    stamp = when.timestamp()
    bad = level in "EF"
    iso = f"{when:%Y-%m-%d}T{clock}.{ms:03}Z"
    return {
        "day": when.strftime("%Y-%m-%d"),
        "slashday": when.strftime("%Y/%m/%d"),
        "clock": clock,
        "clock12": when.strftime("%I:%M:%S").lstrip("0"),
        "ampm": when.strftime("%p"),
        "mon": when.strftime("%b"),
        "mm": when.strftime("%m"),
        "dd": when.day,
        "year": when.year,
        "offset": f"{offset[:3]}:{offset[3:]}",
        "cs2": f"{ms // 10:02}",
        "ms3": f"{ms:03}",
        "us6": f"{when.microsecond:06}",
        "ns9": f"{when.microsecond:06}{rng.randrange(1000):03}",
        "iso": iso,
        "iso_ns": iso[:-1] + f"{rng.randrange(10**6):06}Z",
        "epoch": int(stamp),
        "epoch_f": round(stamp, 3),
        "epoch_ms": int(stamp * 1000),
        "epoch_us": str(int(stamp * 1e6)),
        "mongo_time": {"$date": iso[:-1] + "+00:00"},
        "LEVEL": word,
        "PYLEVEL": {"W": "WARNING", "F": "CRITICAL"}.get(level, word),
        "level": word.lower(),
        "letter": level,
        "pino": pino,
        "pri": pri,
        "severity": pri - 128,
        "priority": str(pri - 128),
        "ser": ser,
        "dotnet": {"W": "Warning", "E": "Error", "F": "Fatal"}.get(level, "Information"),
        "pg": pg,
        "mysql": {"W": "Warning", "E": "ERROR", "F": "ERROR"}.get(level, "Note"),
        "nginx": {"I": "notice", "D": "info", "F": "emerg"}.get(level, word.lower()),
        "tomcat": tomcat,
        "mark": mark,
        "asterisk": {"I": "VERBOSE", "W": "WARNING"}.get(level, word),
        "pad": " " if len(word) == 4 else "",
        "stream": "stderr" if bad else "stdout",
        "svc": svc,
        "unit": f"{svc}.service",
        "host": "node-" + "abc"[len(svc) % 3],
        "pod": sum(svc.encode()) % 90 + 10,
        "pid": 400 + sum(svc.encode()),
        "tid": rng.randrange(2, 60),
        "code": rng.choice([10068, 13360, 10914]),
        "thread": f"exec-{rng.randrange(1, 24)}",
        "logger": logger or svc,
        "source": f"{svc.replace('-', '_').lower()}.go:{len(text) + 31}",
        "component": "COMMAND" if bad else "NETWORK",
        "ctx": f"conn{rng.randrange(900)}",
        "resource": {"type": "k8s_container", "labels": {"container_name": svc}},
        "insert": f"{rng.getrandbits(48):012x}",
        "ecs": "1.6.0",
        "gelf": "1.1",
        "text": text,
        "quoted": json.dumps(text),
        "printed": f"{word} {text}\n",
    }


def show(form: str, parts: dict) -> str:
    """Print the parts in the named format."""
    if form in PLAIN:
        first, *more = parts["text"].split("\n")
        return "\n".join([PLAIN[form].format(**{**parts, "text": first}), *more])
    return json.dumps({key: parts[part] for key, part in JSON[form].items()})
