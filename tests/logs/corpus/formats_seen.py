"""Twenty-four ways to write the incident down, for work on the reader."""

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


def klog(entries: list[Entry]) -> dict[str, bytes]:
    """Kubernetes components: a letter and the month and day, no year."""
    sources = {"INFO": "server.go:142", "WARN": "retry.go:77", "ERROR": "handler.go:209"}
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            source = sources.get(e.level, "main.go:31")
            rows.append(f"{e.level[0]}{clock(e.at, '%m%d %H:%M:%S.%f')}       1 {source}] {e.text}")
        files[f"{service}.log"] = lines(rows)
    return files


def docker_json_file(entries: list[Entry]) -> dict[str, bytes]:
    """Docker's own log files, named by container id; a label names the compose service."""
    files = {}
    for service, own in each_service(entries):
        records = []
        for e in own:
            for row in f"[{e.level}] {e.text}".split("\n"):
                records.append(
                    {
                        "log": row + "\n",
                        "stream": "stdout" if e.level == "INFO" else "stderr",
                        "attrs": {"com.docker.compose.service": service},
                        "time": nano_iso(e.at),
                    }
                )
        files[f"{code('container', service, length=64)}-json.log"] = json_lines(records)
    return files


def go_kit(entries: list[Entry]) -> dict[str, bytes]:
    """Go kit's logfmt with ts, caller, level, msg; it knows no fatal."""
    levels = {"FATAL": "error"}
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            level = levels.get(e.level, e.level.lower())
            row = f"ts={clock(e.at, '%Y-%m-%dT%H:%M:%S.%LZ')} caller=service.go:88 level={level}"
            row += f" msg={json.dumps(head(e))}"
            if trace(e):
                row += f" stack={json.dumps(trace(e))}"
            rows.append(row)
        files[f"{service}.out"] = lines(rows)
    return files


def elixir(entries: list[Entry]) -> dict[str, bytes]:
    """Elixir's Logger: the time of day only, metadata before the level."""
    levels = {"WARN": "warning", "FATAL": "critical"}
    files = {}
    for service, own in each_service(entries):
        rows = []
        for e in own:
            level = levels.get(e.level, e.level.lower())
            process = f"<0.{PIDS[service]}.0>"
            rows.append(f"{clock(e.at, '%H:%M:%S.%L')} pid={process} [{level}] {e.text}")
        files[f"{service}.log"] = lines(rows)
    return files


def serilog_text(entries: list[Entry]) -> dict[str, bytes]:
    """Serilog's rolling file: the day in the name, three letters for the level."""
    levels = {"INFO": "INF", "WARN": "WRN", "ERROR": "ERR", "FATAL": "FTL"}
    files = {}
    for service, own in each_service(entries):
        rows = [
            f"{clock(e.at, '%Y-%m-%d %H:%M:%S.%L', 2)} +02:00 [{levels[e.level]}] {e.text}"
            for e in own
        ]
        files[f"{service}20240514.log"] = lines(rows)
    return files


# ---- all services in one text file ----


def spring_boot_2(entries: list[Entry]) -> dict[str, bytes]:
    """Spring Boot 2 with Sleuth: application, trace and span in brackets; no FATAL."""
    rows = []
    for e in entries:
        level = "ERROR" if e.level == "FATAL" else e.level
        span = code(e.text, e.at, length=16)
        rows.append(
            f"{clock(e.at, '%Y-%m-%d %H:%M:%S.%L')} {level:>5} [{e.service},{span},{span}] 1 --- "
            f"[nio-8080-exec-{e.at.second % 9 + 1}] {'c.shop.web.RequestHandler':<40} : {e.text}"
        )
    return {"app.log": lines(rows)}


def winston_text(entries: list[Entry]) -> dict[str, bytes]:
    """Winston's printf with a label."""
    rows = []
    for e in entries:
        level = "error" if e.level == "FATAL" else e.level.lower()
        rows.append(f"{clock(e.at, '%Y-%m-%dT%H:%M:%S.%LZ')} [{e.service}] {level}: {e.text}")
    return {"combined.log": lines(rows)}


def level_first_epoch(entries: list[Entry]) -> dict[str, bytes]:
    """Python's logging with the level first and %(created)f as time."""
    levels = {"WARN": "WARNING", "FATAL": "CRITICAL"}
    rows = []
    for e in entries:
        level = levels.get(e.level, e.level)
        rows.append(f"{level:<8} {micros(e.at) / 1e6:.6f} {e.service}: {e.text}")
    return {"out.txt": lines(rows)}


def tab_separated(entries: list[Entry]) -> dict[str, bytes]:
    """Columns between tabs, the time as Java's Date writes it in New York."""
    rows = []
    for e in entries:
        at = clock(e.at, "%a May %d %H:%M:%S EDT %Y", -4)
        rows.append(f"{at}\t{e.level}\t{e.service}\t{e.text}")
    return {"export.tsv": lines(rows)}


def journal_short_iso(entries: list[Entry]) -> dict[str, bytes]:
    """journalctl -o short-iso of several units; it indents the further lines of a message."""
    rows = []
    for e in entries:
        start = (
            f"{clock(e.at, '%Y-%m-%dT%H:%M:%S', 2)}+0200 shop-1 {e.service}[{PIDS[e.service]}]: "
        )
        rows.append(start + f"{e.level}: {e.text}".replace("\n", "\n" + " " * len(start)))
    return {"journal.txt": lines(rows)}


def heroku(entries: list[Entry]) -> dict[str, bytes]:
    """heroku logs: a process type as source, a start on every line."""
    rows = []
    for e in entries:
        start = f"{clock(e.at, '%Y-%m-%dT%H:%M:%S.%f')}+00:00 app[{e.service}.1]: "
        rows += [start + row for row in f"{e.level} {e.text}".split("\n")]
    return {"logs.txt": lines(rows)}


def kubectl_prefix(entries: list[Entry]) -> dict[str, bytes]:
    """kubectl logs --prefix --timestamps: pod after pod, a start on every line."""
    rows = []
    for service, own in each_service(entries):
        for e in own:
            start = f"[pod/{pod(service)}/{service}] {nano_iso(e.at)} "
            rows += [start + row for row in f"{e.level} {e.text}".split("\n")]
    return {"pods.log": lines(rows)}


def rust_tracing(entries: list[Entry]) -> dict[str, bytes]:
    """tracing-subscriber on a terminal: dimmed time, coloured level, the service as a field."""
    colours = {"INFO": 32, "WARN": 33, "ERROR": 31}
    rows = []
    for e in entries:
        level = "ERROR" if e.level == "FATAL" else e.level
        rows.append(
            f"\x1b[2m{clock(e.at, '%Y-%m-%dT%H:%M:%S.%fZ')}\x1b[0m "
            f"\x1b[{colours[level]}m{level:>5}\x1b[0m \x1b[2mshop::server\x1b[0m\x1b[2m:\x1b[0m "
            f'{head(e)} \x1b[3mservice\x1b[0m\x1b[2m=\x1b[0m"{e.service}"'
        )
        if trace(e):
            rows[-1] += f" \x1b[3mcause\x1b[0m\x1b[2m=\x1b[0m{json.dumps(trace(e))}"
    return {"output.log": lines(rows)}


def logcli(entries: list[Entry]) -> dict[str, bytes]:
    """logcli query --forward: the time, the labels, the line."""
    rows = []
    for e in entries:
        labels = f'{{app="{e.service}", pod="{pod(e.service)}"}}'
        line = f"level={e.level.lower()} msg={json.dumps(e.text)}"
        rows.append(f"{clock(e.at, '%Y-%m-%dT%H:%M:%S', 2)}+02:00 {labels} {line}")
    return {"query.txt": lines(rows)}


def fluentd(entries: list[Entry]) -> dict[str, bytes]:
    """fluentd's out_file: time, tag and a JSON record between tabs."""
    rows = []
    for e in entries:
        record = {"log": e.text, "severity": e.level.lower(), "pid": PIDS[e.service]}
        at = clock(e.at, "%Y-%m-%dT%H:%M:%S+00:00")
        rows.append(f"{at}\tshop.{e.service}\t{json.dumps(record, separators=(',', ':'))}")
    return {"buffer.log": lines(rows)}


# ---- all services in one JSON file ----


def pino(entries: list[Entry]) -> dict[str, bytes]:
    """pino: numbers for levels, milliseconds for time."""
    levels = {"INFO": 30, "WARN": 40, "ERROR": 50, "FATAL": 60}
    records = []
    for e in entries:
        record = {
            "level": levels[e.level],
            "time": micros(e.at) // 1000,
            "pid": PIDS[e.service],
            "hostname": pod(e.service),
            "name": e.service,
        }
        if trace(e):
            record["err"] = {"type": "Error", "message": "Read timed out", "stack": trace(e)}
        records.append(record | {"msg": head(e)})
    return {"stdout.log": json_lines(records)}


def zap_json(entries: list[Entry]) -> dict[str, bytes]:
    """zap in production: seconds since 1970 and a named logger."""
    records = []
    for e in entries:
        record = {
            "level": e.level.lower(),
            "ts": micros(e.at) / 1e6,
            "logger": e.service,
            "caller": "server/handle.go:57",
            "msg": head(e),
        }
        if trace(e):
            record["stacktrace"] = trace(e)
        records.append(record)
    return {"app.json": json_lines(records)}


def journal_json(entries: list[Entry]) -> dict[str, bytes]:
    """journalctl -o json: all values are text, the priority is syslog's number."""
    priorities = {"INFO": "6", "WARN": "4", "ERROR": "3", "FATAL": "2"}
    records = [
        {
            "__CURSOR": f"s=5f0c;i={number:x};t={micros(e.at):x}",
            "__REALTIME_TIMESTAMP": str(micros(e.at)),
            "__MONOTONIC_TIMESTAMP": str(micros(e.at) - 1715600000000000),
            "_BOOT_ID": code("boot", length=32),
            "PRIORITY": priorities[e.level],
            "_HOSTNAME": "shop-1",
            "_SYSTEMD_UNIT": f"{e.service}.service",
            "SYSLOG_IDENTIFIER": e.service,
            "_PID": str(PIDS[e.service]),
            "_TRANSPORT": "stdout",
            "MESSAGE": e.text,
        }
        for number, e in enumerate(entries, start=1)
    ]
    return {"journal.json": json_lines(records)}


def grafana_json(entries: list[Entry]) -> dict[str, bytes]:
    """Grafana's download of a Loki query: newest first, labels under fields."""
    records = [
        {
            "line": f"{e.level} {e.text}",
            "timestamp": str(micros(e.at) * 1000),
            "date": clock(e.at, "%Y-%m-%dT%H:%M:%S.%LZ"),
            "fields": {"app": e.service, "namespace": "shop", "pod": pod(e.service)},
        }
        for e in reversed(entries)
    ]
    return {"Explore-logs-2024-05-14 12_01_07.json": json.dumps(records).encode()}


def google_cloud(entries: list[Entry]) -> dict[str, bytes]:
    """gcloud logging read --format=json: an array of entries, newest first."""
    severities = {"WARN": "WARNING", "FATAL": "CRITICAL"}
    records = [
        {
            "insertId": code(e.at, e.text, length=16),
            "jsonPayload": {"message": e.text, "thread": "main"},
            "labels": {"k8s-pod/app": e.service},
            "logName": "projects/shop-prod/logs/stdout",
            "receiveTimestamp": clock(e.at, "%Y-%m-%dT%H:%M:%S.999999999Z"),
            "resource": {
                "labels": {
                    "cluster_name": "prod",
                    "container_name": e.service,
                    "namespace_name": "shop",
                    "pod_name": pod(e.service),
                },
                "type": "k8s_container",
            },
            "severity": severities.get(e.level, e.level),
            "timestamp": nano_iso(e.at),
        }
        for e in reversed(entries)
    ]
    return {"downloaded-logs.json": json.dumps(records, indent=2).encode()}


def vector(entries: list[Entry]) -> dict[str, bytes]:
    """Vector's kubernetes_logs source: one event a line of output, the pod below kubernetes."""
    records = []
    for e in entries:
        name = pod(e.service)
        for row in f"{e.level} {e.text}".split("\n"):
            records.append(
                {
                    "file": f"/var/log/pods/shop_{name}_{code(name)}/{e.service}/0.log",
                    "kubernetes": {
                        "container_name": e.service,
                        "pod_labels": {"app.kubernetes.io/name": e.service},
                        "pod_name": name,
                        "pod_namespace": "shop",
                    },
                    "message": row,
                    "source_type": "kubernetes_logs",
                    "stream": "stdout",
                    "timestamp": nano_iso(e.at),
                }
            )
    return {"events.ndjson": json_lines(records)}


def nested_json(entries: list[Entry]) -> dict[str, bytes]:
    """An in-house schema with the message, the level and the name one step down."""
    records = []
    for e in entries:
        log = {"level": e.level.lower(), "logger": "main", "message": head(e)}
        if trace(e):
            log["exception"] = {"class": "SocketTimeoutException", "stack": trace(e)}
        records.append(
            {
                "timestamp": clock(e.at, "%Y-%m-%dT%H:%M:%S.%LZ"),
                "app": {"name": e.service, "version": "4.11.2", "env": "prod"},
                "host": {"name": pod(e.service)},
                "log": log,
            }
        )
    return {"export.json": json_lines(records)}


# ---- all services in one table ----


def splunk_csv(entries: list[Entry]) -> dict[str, bytes]:
    """Splunk's export: newest first, the raw line first, the service only in source."""
    rows = [["_raw", "_time", "host", "index", "linecount", "source", "sourcetype"]]
    for e in reversed(entries):
        raw = f"{clock(e.at, '%Y-%m-%d %H:%M:%S,%L')} {e.level} [main] {e.text}"
        at = clock(e.at, "%Y-%m-%dT%H:%M:%S.%L+0200", 2)
        count = str(raw.count("\n") + 1)
        source = f"/var/log/shop/{e.service}.log"
        rows.append([raw, at, "shop-1", "prod", count, source, "log4j"])
    return {"1715680867_4711.csv": table(rows, csv.QUOTE_ALL)}


def csv_micros(entries: list[Entry]) -> dict[str, bytes]:
    """A table with microseconds since 1970 in its first column."""
    rows = [["ts_us", "level", "service", "host", "message"]]
    for e in entries:
        rows.append([str(micros(e.at)), e.level.lower(), e.service, pod(e.service), e.text])
    return {"data.csv": table(rows)}


FORMATS: dict[str, Format] = {
    "klog": klog,
    "docker-json-file": docker_json_file,
    "go-kit": go_kit,
    "elixir": elixir,
    "serilog-text": serilog_text,
    "spring-boot-2": spring_boot_2,
    "winston-text": winston_text,
    "level-first-epoch": level_first_epoch,
    "tab-separated": tab_separated,
    "journal-short-iso": journal_short_iso,
    "heroku": heroku,
    "kubectl-prefix": kubectl_prefix,
    "rust-tracing": rust_tracing,
    "logcli": logcli,
    "fluentd": fluentd,
    "pino": pino,
    "zap-json": zap_json,
    "journal-json": journal_json,
    "grafana-json": grafana_json,
    "google-cloud": google_cloud,
    "vector": vector,
    "nested-json": nested_json,
    "splunk-csv": splunk_csv,
    "csv-micros": csv_micros,
}
