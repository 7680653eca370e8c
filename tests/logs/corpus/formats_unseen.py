"""Twenty-four further ways to write the incident down, to judge the finished reader."""

import csv
import json

from incident import Entry
from wire import (
    PIDS,
    Format,
    clock,
    code,
    each_service,
    head,
    json_lines,
    lines,
    micros,
    nano_iso,
    pod,
    table,
    trace,
)

# ---- one file per service ----


def env_logger(entries: list[Entry]) -> dict[str, bytes]:
    """Rust's env_logger: all in brackets up to the module; no fatal."""
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            level = "ERROR" if e.level == "FATAL" else e.level
            rows.append(f"[{clock(e.at, '%Y-%m-%dT%H:%M:%SZ')} {level:<5} shop::server] {e.text}")
        files[f"{service}.log"] = lines(rows)
    return files


def cri(entries: list[Entry]) -> dict[str, bytes]:
    """A node's container files: pod, namespace and container in the name, a start on each line."""
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            stream = "stdout" if e.level == "INFO" else "stderr"
            for row in f"[{e.level}] {e.text}".split("\n"):
                rows.append(f"{nano_iso(e.at)} {stream} F {row}")
        name = f"{pod(service)}_shop_{service}-{code('container', service, length=64)}.log"
        files[name] = lines(rows)
    return files


def logrus(entries: list[Entry]) -> dict[str, bytes]:
    """logrus without a terminal: quoted time, msg last but for fields."""
    levels = {"WARN": "warning"}
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            level = levels.get(e.level, e.level.lower())
            row = f'time="{clock(e.at, "%Y-%m-%dT%H:%M:%SZ")}" level={level}'
            row += f" msg={json.dumps(head(e))}"
            if trace(e):
                row += f" error={json.dumps(trace(e))}"
            rows.append(row)
        files[f"{service}.out"] = lines(rows)
    return files


def logback(entries: list[Entry]) -> dict[str, bytes]:
    """Logback's built-in pattern: the time of day only, the thread, the level; no FATAL."""
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            level = "ERROR" if e.level == "FATAL" else e.level
            thread = f"http-nio-8080-exec-{e.at.second % 9 + 1}"
            start = f"{clock(e.at, '%H:%M:%S.%L')} [{thread}] {level:<5}"
            rows.append(f"{start} com.shop.web.RequestHandler -- {e.text}")
        files[f"{service}.log"] = lines(rows)
    return files


def rails(entries: list[Entry]) -> dict[str, bytes]:
    """Rails with a request id as tag."""
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            at = clock(e.at, "%Y-%m-%dT%H:%M:%S.%f")
            start = f"{e.level[0]}, [{at} #{PIDS[service]}] {e.level:>5} -- : "
            rows.append(f"{start}[{code(e.text, e.at, length=32)}] {e.text}")
        files[f"{service}_production.log"] = lines(rows)
    return files


# ---- all services in one text file ----


def spring_boot_3(entries: list[Entry]) -> dict[str, bytes]:
    """Spring Boot 3: the application's name in its own brackets; no FATAL."""
    rows = []
    for e in entries:
        level = "ERROR" if e.level == "FATAL" else e.level
        rows.append(
            f"{clock(e.at, '%Y-%m-%dT%H:%M:%S.%LZ')} {level:>5} 1 --- [{e.service}] "
            f"[nio-8080-exec-{e.at.second % 9 + 1}] {'c.shop.web.RequestHandler':<40} : {e.text}"
        )
    return {"app.log": lines(rows)}


def python_dashes(entries: list[Entry]) -> dict[str, bytes]:
    """Python's logging in the order of its tutorial, milliseconds after a comma."""
    levels = {"WARN": "WARNING", "FATAL": "CRITICAL"}
    rows = []
    for e in entries:
        level = levels.get(e.level, e.level)
        rows.append(f"{clock(e.at, '%Y-%m-%d %H:%M:%S,%L')} - {e.service} - {level} - {e.text}")
    return {"combined.log": lines(rows)}


def name_first_epoch(entries: list[Entry]) -> dict[str, bytes]:
    """The name and process first, then milliseconds since 1970."""
    rows = []
    for e in entries:
        start = f"{e.service}[{PIDS[e.service]}] {micros(e.at) // 1000} {e.level:<5}"
        rows.append(f"{start} {e.text}")
    return {"out.txt": lines(rows)}


def nlog_pipes(entries: list[Entry]) -> dict[str, bytes]:
    """NLog between pipes, the time as Windows writes it in the United States."""
    levels = {"INFO": "Info", "WARN": "Warn", "ERROR": "Error", "FATAL": "Fatal"}
    rows = []
    for e in entries:
        day = f"{e.at.month}/{e.at.day}/{e.at.year}"
        time = clock(e.at, "%I:%M:%S.%L %p").lstrip("0")
        rows.append(f"{day} {time}|{levels[e.level]}|{e.service}|{e.text}")
    return {"export.txt": lines(rows)}


def syslog_3164(entries: list[Entry]) -> dict[str, bytes]:
    """rsyslog's file: no year, no level but the one in the text, line breaks as #012."""
    rows = []
    for e in entries:
        text = f"{e.level}: {e.text}".replace("\n", "#012").replace("\t", "#011")
        at = clock(e.at, "%b %d %H:%M:%S")
        rows.append(f"{at} shop-1 {e.service}[{PIDS[e.service]}]: {text}")
    return {"messages": lines(rows)}


def syslog_5424(entries: list[Entry]) -> dict[str, bytes]:
    """RFC 5424 as a collector receives it: the level only in the number at the start."""
    numbers = {"INFO": 14, "WARN": 12, "ERROR": 11, "FATAL": 10}
    rows = []
    for e in entries:
        at = clock(e.at, "%Y-%m-%dT%H:%M:%S.%fZ")
        start = f"<{numbers[e.level]}>1 {at} shop-1 {e.service} {PIDS[e.service]} - - "
        rows += [start + row for row in e.text.split("\n")]
    return {"syslog": lines(rows)}


def compose_colours(entries: list[Entry]) -> dict[str, bytes]:
    """docker compose logs -t with its colours: padded names, a start on every line."""
    colours = {"gateway": 36, "orders": 33, "orders-db": 32, "catalog": 35, "payments": 34}
    rows = []
    for e in entries:
        start = (
            f"\x1b[{colours.get(e.service, 36)}m{e.service + '-1':<11} | \x1b[0m{nano_iso(e.at)} "
        )
        rows += [start + row for row in f"{e.level} {e.text}".split("\n")]
    return {"compose.log": lines(rows)}


def stern_colours(entries: list[Entry]) -> dict[str, bytes]:
    """stern -t with its colours: pod and container on every line."""
    colours = {"gateway": 92, "orders": 93, "orders-db": 94, "catalog": 95, "payments": 96}
    rows = []
    for e in entries:
        paint = f"\x1b[{colours.get(e.service, 36)}m"
        start = f"{paint}{pod(e.service)}\x1b[0m {paint}{e.service}\x1b[0m {nano_iso(e.at)} "
        rows += [start + row for row in f"{e.level:<5} {e.text}".split("\n")]
    return {"output.log": lines(rows)}


def cloudwatch_tail(entries: list[Entry]) -> dict[str, bytes]:
    """aws logs tail: the time, the task's stream, the message."""
    rows = []
    for e in entries:
        stream = f"ecs/{e.service}/{code('task', e.service, length=32)}"
        rows.append(f"{clock(e.at, '%Y-%m-%dT%H:%M:%S.%f')}+00:00 {stream} {e.level} {e.text}")
    return {"tail.txt": lines(rows)}


# ---- all services in one JSON file ----


def bunyan(entries: list[Entry]) -> dict[str, bytes]:
    """bunyan: name first, numbers for levels."""
    levels = {"INFO": 30, "WARN": 40, "ERROR": 50, "FATAL": 60}
    records = []
    for e in entries:
        record = {
            "name": e.service,
            "hostname": pod(e.service),
            "pid": PIDS[e.service],
            "level": levels[e.level],
        }
        if trace(e):
            record["err"] = {"message": "Read timed out", "name": "Error", "stack": trace(e)}
        record |= {"msg": head(e), "time": clock(e.at, "%Y-%m-%dT%H:%M:%S.%LZ"), "v": 0}
        records.append(record)
    return {"stdout.log": json_lines(records)}


def serilog_compact(entries: list[Entry]) -> dict[str, bytes]:
    """Serilog's rendered compact JSON: keys with @, no level for information."""
    levels = {"WARN": "Warning", "ERROR": "Error", "FATAL": "Fatal"}
    records = []
    for e in entries:
        record = {
            "@t": clock(e.at, "%Y-%m-%dT%H:%M:%S.%f0Z"),
            "@m": head(e),
            "@i": code(head(e).split()[0], length=8),
        }
        if e.level in levels:
            record["@l"] = levels[e.level]
        if trace(e):
            record["@x"] = trace(e)
        records.append(record | {"Application": e.service, "MachineName": pod(e.service)})
    return {"app.clef": json_lines(records)}


def gelf(entries: list[Entry]) -> dict[str, bytes]:
    """GELF: seconds since 1970, syslog's number for the level, own fields with an underscore."""
    levels = {"INFO": 6, "WARN": 4, "ERROR": 3, "FATAL": 2}
    records = []
    for e in entries:
        record = {"version": "1.1", "host": pod(e.service), "short_message": head(e)}
        if trace(e):
            record["full_message"] = e.text
        record |= {
            "timestamp": micros(e.at) // 1000 / 1000,
            "level": levels[e.level],
            "_service": e.service,
            "_thread": "main",
        }
        records.append(record)
    return {"graylog.json": json_lines(records)}


def otlp(entries: list[Entry]) -> dict[str, bytes]:
    """The OpenTelemetry collector's file exporter: a batch a line, grouped by service."""
    numbers = {"INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}
    batches = []
    for first in range(0, len(entries), 25):
        groups = []
        for service, own in each_service(entries[first : first + 25]):
            records = [
                {
                    "timeUnixNano": str(micros(e.at) * 1000),
                    "observedTimeUnixNano": str(micros(e.at) * 1000 + 7000000),
                    "severityNumber": numbers[e.level],
                    "severityText": e.level,
                    "body": {"stringValue": e.text},
                    "attributes": [{"key": "thread.name", "value": {"stringValue": "main"}}],
                    "traceId": code(e.text, e.at, length=32),
                    "spanId": code(e.at, length=16),
                }
                for e in own
            ]
            resource = [
                {"key": "service.name", "value": {"stringValue": service}},
                {"key": "host.name", "value": {"stringValue": pod(service)}},
            ]
            group = {
                "resource": {"attributes": resource},
                "scopeLogs": [{"scope": {"name": "app"}, "logRecords": records}],
            }
            groups += [group] if own else []
        batches.append({"resourceLogs": groups})
    return {"logs.json": json_lines(batches)}


def cloudwatch_json(entries: list[Entry]) -> dict[str, bytes]:
    """aws logs filter-log-events: the service only in the stream's name."""
    events = [
        {
            "logStreamName": f"ecs/{e.service}/{code('task', e.service, length=32)}",
            "timestamp": micros(e.at) // 1000,
            "message": f"{e.level} {e.text}",
            "ingestionTime": micros(e.at) // 1000 + 812,
            "eventId": str(int(code(e.at, e.text, length=40), 16)),
        }
        for e in entries
    ]
    whole = {"events": events, "searchedLogStreams": []}
    return {"events.json": json.dumps(whole, indent=4).encode()}


def datadog_json(entries: list[Entry]) -> dict[str, bytes]:
    """Datadog's answer to a log search: newest first, all below attributes."""
    statuses = {"FATAL": "critical"}
    records = [
        {
            "id": f"AgAA{code(e.at, e.text, length=40)}",
            "type": "log",
            "attributes": {
                "status": statuses.get(e.level, e.level.lower()),
                "service": e.service,
                "tags": ["env:prod", f"pod_name:{pod(e.service)}", "kube_namespace:shop"],
                "timestamp": clock(e.at, "%Y-%m-%dT%H:%M:%S.%LZ"),
                "host": "ip-10-0-3-17",
                "attributes": {"thread": {"name": "main"}},
                "message": e.text,
            },
        }
        for e in reversed(entries)
    ]
    whole = {"data": records, "meta": {"elapsed": 132, "status": "done"}}
    return {"response.json": json.dumps(whole, indent=2).encode()}


def ecs_json(entries: list[Entry]) -> dict[str, bytes]:
    """Elastic's ECS encoder: names with dots, the stack trace in its own field."""
    records = []
    for e in entries:
        record = {
            "@timestamp": clock(e.at, "%Y-%m-%dT%H:%M:%S.%LZ"),
            "log.level": e.level,
            "message": head(e),
            "ecs.version": "1.2.0",
            "service.name": e.service,
            "event.dataset": f"{e.service}.log",
            "process.thread.name": "main",
            "log.logger": "com.shop.web.RequestHandler",
        }
        if trace(e):
            record["error.type"] = "java.net.SocketTimeoutException"
            record["error.message"] = "Read timed out"
            record["error.stack_trace"] = trace(e)
        records.append(record)
    return {"events.ndjson": json_lines(records)}


def pretty_array(entries: list[Entry]) -> dict[str, bytes]:
    """An in-house schema as one array, a field a line."""
    records = []
    for e in entries:
        record = {
            "when": clock(e.at, "%Y-%m-%d %H:%M:%S.%L UTC"),
            "severity": e.level.capitalize(),
            "component": e.service,
            "text": head(e),
        }
        if trace(e):
            record["details"] = trace(e).split("\n")
        records.append(record)
    return {"export.json": json.dumps(records, indent=2).encode()}


# ---- all services in one table ----


def kibana_csv(entries: list[Entry]) -> dict[str, bytes]:
    """Kibana's CSV report: newest first, the time as Discover shows it."""
    rows = [["@timestamp", "service.name", "log.level", "message", "error.stack_trace"]]
    for e in reversed(entries):
        at = clock(e.at, "%b %d, %Y @ %H:%M:%S.%L")
        rows.append([at, e.service, e.level.lower(), head(e), trace(e) or "-"])
    return {"Untitled discover search.csv": table(rows, csv.QUOTE_ALL)}


def azure_csv(entries: list[Entry]) -> dict[str, bytes]:
    """Azure's Log Analytics export of AppTraces: a number for the level."""
    levels = {"INFO": 1, "WARN": 2, "ERROR": 3, "FATAL": 4}
    rows = [["TimeGenerated [UTC]", "Message", "SeverityLevel", "AppRoleName", "AppRoleInstance"]]
    for e in entries:
        day = f"{e.at.month}/{e.at.day}/{e.at.year}"
        time = clock(e.at, "%I:%M:%S.%L %p").lstrip("0")
        rows.append([f"{day}, {time}", e.text, levels[e.level], e.service, pod(e.service)])
    return {"query_data.csv": b"\xef\xbb\xbf" + table(rows)}


FORMATS: dict[str, Format] = {
    "env-logger": env_logger,
    "cri": cri,
    "logrus": logrus,
    "logback": logback,
    "rails": rails,
    "spring-boot-3": spring_boot_3,
    "python-dashes": python_dashes,
    "name-first-epoch": name_first_epoch,
    "nlog-pipes": nlog_pipes,
    "syslog-3164": syslog_3164,
    "syslog-5424": syslog_5424,
    "compose-colours": compose_colours,
    "stern-colours": stern_colours,
    "cloudwatch-tail": cloudwatch_tail,
    "bunyan": bunyan,
    "serilog-compact": serilog_compact,
    "gelf": gelf,
    "otlp": otlp,
    "cloudwatch-json": cloudwatch_json,
    "datadog-json": datadog_json,
    "ecs-json": ecs_json,
    "pretty-array": pretty_array,
    "kibana-csv": kibana_csv,
    "azure-csv": azure_csv,
}
