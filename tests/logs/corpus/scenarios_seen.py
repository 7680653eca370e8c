"""Odd incidents, the half that was open while the reader was written."""

from datetime import UTC, datetime

from lines_seen import (
    access,
    clock_only,
    compose,
    json_epoch,
    json_iso,
    klog,
    logfmt,
    nginx_error,
    plain,
    plain_berlin,
    plain_utc,
    syslog,
    timeless,
)
from loglines import Case, File, Flow, build, info, once

START = datetime(2025, 3, 11, 9, 0, tzinfo=UTC)


def mixed_clocks() -> list[Case]:
    """Files whose clocks are written in different ways."""
    checkout = [
        info("checkout", 4, "reserved 2 items for cart <id>", "quote for cart <id> in <ms>ms"),
        Flow("checkout", "WARN", 0, 60, 240, "cart <id> is older than a day"),
        Flow("checkout", "ERROR", 41, 60, 5, "could not reserve items: stock answered 500"),
    ]
    stock = [
        info("stock", 5, "reserved item <n>", "released item <n>"),
        once("stock", "ERROR", 40.0, "index pages of table items are corrupt, scan aborted"),
        Flow("stock", "ERROR", 40.1, 60, 4, "reserve item <n>: scan aborted, index is corrupt"),
    ]
    api = [
        info("api", 5, "accepted upload <id>", "GET /jobs/<n> 200 <ms>ms"),
        Flow("api", "ERROR", 42, 60, 4, "hand over job <n>: worker answered 503"),
    ]
    worker = [
        info("worker", 5, "job <n> done", "job <n> started", end=41),
        once("worker", "ERROR", 41.2, "cannot read model file /models/v7.bin: input/output error"),
        Flow("worker", "ERROR", 41.5, 60, 5, "job <n> refused: no model is loaded"),
    ]
    player = [
        info("player", 3, "segment <n> served in <ms>ms"),
        Flow("player", "ERROR", 35.5, 60, 4, "playback <id> stopped: licenses returned 500"),
    ]
    licenses = [
        info("licenses", 6, "license <id> granted", end=35),
        Flow("licenses", "ERROR", 35, 60, 6, "license <id>: signing key 2024-b is not loaded"),
    ]
    booking = [
        info("booking", 4, "offer <n> priced", "booking <id> stored"),
        Flow("booking", "ERROR", 46, 60, 4, "booking <id> failed: timeout after 5s calling rooms"),
    ]
    rooms = [
        info("rooms", 5, "room <n> held", "room <n> freed", end=45),
        Flow("rooms", "ERROR", 45, 60, 7, "cannot hold room <n>: connection pool is exhausted"),
    ]
    return [
        Case(
            "dates-and-time-of-day",
            {"stock"},
            "mixed clocks: stock.log has a time of day only",
            [File("checkout.log", plain, checkout), File("stock.log", clock_only, stock)],
        ),
        Case(
            "one-file-without-times",
            {"worker"},
            "mixed clocks: worker.log has no times",
            [File("api.jsonl", json_iso, api), File("worker.log", timeless, worker)],
        ),
        Case(
            "epoch-and-iso",
            {"licenses"},
            "mixed clocks: epoch seconds beside ISO",
            [File("player.jsonl", json_epoch, player), File("licenses.log", logfmt, licenses)],
        ),
        Case(
            "two-zones",
            {"rooms"},
            "mixed clocks: +0200 beside UTC; rooms fails one minute earlier",
            [File("booking.log", plain_berlin, booking), File("rooms.log", plain_utc, rooms)],
        ),
    ]


def klog_and_json() -> Case:
    """The store of a cluster is full; its controllers write klog and complain."""
    controller = [
        info("controller", 6, "controller_utils.go:116] sync of shard/<id> done"),
        Flow(
            "controller",
            "ERROR",
            38.3,
            60,
            5,
            "leaderelection.go:330] error retrieving lock kube-system/controller: "
            "etcdserver: mvcc: database space exceeded",
        ),
    ]
    etcd = [
        info("etcd", 5, "compacted revision <n>", "finished scheduled compaction <n>"),
        Flow("etcd", "WARN", 30, 38, 40, "apply request took too long: <n>ms"),
        once("etcd", "ERROR", 38, "alarm raised: NOSPACE, quota of 2 GB is exceeded"),
        Flow("etcd", "ERROR", 38.1, 60, 9, "put refused: mvcc: database space exceeded"),
    ]
    return Case(
        "klog-and-json",
        {"etcd"},
        "klog beside ISO JSON",
        [File("controller.log", klog, controller), File("etcd.jsonl", json_iso, etcd)],
    )


def oom_killed() -> Case:
    """The kernel kills a process; only the kernel says why."""
    flows = [
        info("uploads", 9, "stored picture <id>", "listed album <n>"),
        info("thumbnailer", 6, "resized <id> to 800x600 in <ms>ms", end=33),
        info("cron", 120, "(root) CMD (run-parts /etc/cron.hourly)"),
        once("kernel", "INFO", 33, "[81231.112233] thumbnailer invoked oom-killer: order=0"),
        once(
            "kernel",
            "ERROR",
            33.01,
            "[81231.114411] Out of memory: Killed process 711 (thumbnailer) total-vm:8123456kB, "
            "anon-rss:7812344kB, file-rss:0kB, oom_score_adj:0",
        ),
        Flow(
            "uploads", "ERROR", 33.1, 60, 6, "error: resize <id>: thumbnailer: connection refused"
        ),
    ]
    return Case(
        "oom-killed", {"thumbnailer"}, "OOM kill in syslog", [File("messages", syslog, flows)]
    )


def crash_loop() -> Case:
    """A container exits again and again; the kubelet and the callers tell."""
    kubelet = [
        info("kubelet", 25, "kubelet.go:2461] SyncLoop (PLEG): event for pod shop/router-5d8f"),
        Flow(
            "kubelet",
            "INFO",
            40,
            60,
            60,
            'generic.go:334] container finished pod="maps/geocoder-6f7c9-x2x1p" exitCode=1',
        ),
        Flow(
            "kubelet",
            "ERROR",
            40.2,
            60,
            15,
            'pod_workers.go:1300] "Error syncing pod, skipping" err="failed to StartContainer '
            "for geocoder with CrashLoopBackOff: back-off 5m0s restarting failed "
            'container=geocoder pod=geocoder-6f7c9-x2x1p_maps(<id>)" '
            'pod="maps/geocoder-6f7c9-x2x1p"',
        ),
    ]
    router = [
        info("router", 20, "route <id> computed in <ms>ms"),
        Flow("router", "ERROR", 40.2, 60, 4, "no address for <id>: geocoder: connection refused"),
    ]
    return Case(
        "crash-loop",
        {"geocoder"},
        "exit code 1 and CrashLoopBackOff; geocoder has no log",
        [File("kubelet.log", klog, kubelet), File("router.jsonl", json_iso, router)],
    )


def fatal_then_silence() -> Case:
    """A service says its last word and stops."""
    flows = [
        info("transfers", 4, "transfer <id> settled", "transfer <id> received"),
        info("ledger", 5, "posted entry <n>", end=44),
        info("statements", 9, "statement <n> rendered"),
        once("ledger", "FATAL", 44, "journal segment 77: checksum mismatch, giving up"),
        Flow(
            "transfers",
            "ERROR",
            44.1,
            60,
            5,
            "post entry: dial tcp 10.4.1.7:7000: connect: connection refused (ledger:7000)",
        ),
    ]
    return Case(
        "fatal-then-silence", {"ledger"}, "FATAL, then nothing", [File("all.log", logfmt, flows)]
    )


def disk_full() -> Case:
    """A database can not write."""
    flows = [
        info("intake", 4, "sample <id> registered"),
        info("archive-db", 12, "checkpoint complete: wrote <n> buffers"),
        info("labels", 8, "label <n> printed"),
        Flow(
            "archive-db",
            "ERROR",
            30,
            60,
            7,
            'could not extend file "base/16384/<n>": No space left on device',
        ),
        Flow("intake", "ERROR", 30.1, 60, 5, "sample <id> not registered: archive-db: disk full"),
    ]
    return Case("disk-full", {"archive-db"}, "disk full", [File("lab.log", compose, flows)])


def nginx_named() -> Case:
    """A 502 storm where the access log names the upstream."""
    tail = '"-" "curl/8.5.0" upstream={} rt=0.0<n>'
    flows = [
        Flow(
            "10.4.0.9",
            "INFO",
            0,
            60,
            3,
            '"GET /api/tables HTTP/1.1" 200 <n> ' + tail.format("tables:8080"),
        ),
        Flow(
            "10.4.2.17",
            "INFO",
            0,
            40,
            4,
            '"GET /api/menu HTTP/1.1" 200 <n> ' + tail.format("menu:8080"),
        ),
        Flow(
            "10.4.1.8",
            "INFO",
            40,
            60,
            3,
            '"GET /api/menu HTTP/1.1" 502 157 ' + tail.format("menu:8080"),
        ),
        Flow(
            "10.4.3.3",
            "INFO",
            0,
            60,
            90,
            '"GET /favicon.ico HTTP/1.1" 404 153 "-" "-" upstream=- rt=0.000',
        ),
    ]
    return Case(
        "nginx-named", {"menu"}, "5xx storm, upstream named", [File("access.log", access, flows)]
    )


def nginx_unnamed() -> Case:
    """A 502 storm of all paths, and no word about who is behind."""
    flows = [
        Flow("10.4.0.9", "INFO", 0, 45, 3, '"GET /p/<n> HTTP/1.1" 200 <n> "-" "Mozilla/5.0"'),
        Flow("10.4.2.17", "INFO", 0, 45, 5, '"POST /cart HTTP/1.1" 201 64 "-" "Mozilla/5.0"'),
        Flow("10.4.0.9", "INFO", 45, 60, 3, '"GET /p/<n> HTTP/1.1" 502 157 "-" "Mozilla/5.0"'),
        Flow("10.4.2.17", "INFO", 45, 60, 5, '"POST /cart HTTP/1.1" 502 157 "-" "Mozilla/5.0"'),
    ]
    return Case(
        "nginx-unnamed", set(), "5xx storm, no upstream named", [File("access.log", access, flows)]
    )


def nginx_pair() -> Case:
    """The access log and the error log of one nginx; the error log names the upstream."""
    hits = [
        Flow("10.4.0.9", "INFO", 0, 60, 3, '"GET /shows HTTP/1.1" 200 <n> "-" "Mozilla/5.0"'),
        Flow("10.4.0.5", "INFO", 0, 42, 5, '"GET /seats/<id> HTTP/1.1" 200 <n> "-" "Mozilla/5.0"'),
        Flow("10.4.0.5", "INFO", 42, 60, 5, '"GET /seats/<id> HTTP/1.1" 504 167 "-" "Mozilla/5.0"'),
    ]
    errors = [
        Flow("nginx", "WARN", 0, 60, 200, "an upstream response is buffered to a temporary file"),
        Flow(
            "nginx",
            "ERROR",
            42,
            60,
            5,
            "upstream timed out (110: Connection timed out) while reading response header from "
            'upstream, client: 10.4.0.5, server: tickets.example, request: "GET /seats/<id> '
            'HTTP/1.1", upstream: "http://seats:9000/seats/<id>", host: "tickets.example"',
        ),
    ]
    return Case(
        "nginx-pair",
        {"seats"},
        "access log and error log of one nginx",
        [File("access.log", access, hits), File("error.log", nginx_error, errors)],
    )


def brute_force() -> Case:
    """Somebody guesses passwords: a storm of 401, and nothing is broken."""
    flows = [
        info("portal", 4, "GET /home 200 <ms>ms", "GET /news 200 <ms>ms"),
        info("login", 8, "user u<n> signed in"),
        Flow("login", "WARN", 0, 60, 100, "401 wrong password for user u<n> from <ip>"),
        Flow("login", "WARN", 40, 50, 1, "401 wrong password for user admin from 203.0.113.77"),
        Flow("portal", "WARN", 40, 50, 2, "POST /login 401 from 203.0.113.77"),
    ]
    return Case(
        "brute-force", set(), "401 storm: guessed passwords", [File("web.jsonl", json_iso, flows)]
    )


def nightly_batch() -> Case:
    """Three days: each night a batch job warns, and nobody suffers."""
    flows = [info("shelf", 300, "lent book <n>", "took back book <n>", end=4320)]
    flows.append(info("members", 400, "card <n> is valid", end=4320))
    for night in (1020, 2460, 3900):
        flows.append(once("reindex", "INFO", night, "nightly reindex begins"))
        flows.append(
            Flow("reindex", "WARN", night, night + 20, 15, "book <n> has no author, skipped")
        )
        flows.append(once("reindex", "INFO", night + 20, "nightly reindex done, 80 skipped"))
    return Case(
        "nightly-batch", set(), "harmless warnings each night", [File("library.log", plain, flows)]
    )


def healthy() -> Case:
    """An hour without trouble, with the odd warning that every system has."""
    flows = [
        info("gate", 3, "barcode <n> accepted", "turnstile 3 opened"),
        info("tickets", 3, "ticket <id> sold", "ticket <id> refunded"),
        info("screens", 9, "screen <n> refreshed"),
        Flow("tickets", "WARN", 0, 60, 300, "payment page took <n>ms"),
        Flow("gate", "ERROR", 0, 60, 700, "barcode <n> is not readable"),
    ]
    return Case("healthy", set(), "wholly healthy", [File("museum.log", compose, flows)])


def slow_ramp() -> Case:
    """Reads get slower for 40 minutes, then they time out."""
    ramp = [
        Flow("tiles", "WARN", 10 + 5 * k, 15 + 5 * k, 60 / (k + 1), f"slow read: {300 * (k + 1)}ms")
        for k in range(8)
    ]
    flows = [
        info("map", 4, "drew viewport <id> in <ms>ms"),
        info("tiles", 5, "tile <n>/<n> read in <ms>ms", end=50),
        *ramp,
        Flow("tiles", "ERROR", 50, 60, 6, "read of tile <n> timed out after 5000ms"),
        Flow("map", "ERROR", 50.3, 60, 4, "viewport <id> not drawn: tiles: deadline exceeded"),
    ]
    return Case(
        "slow-ramp", {"tiles"}, "latency grows, then timeouts", [File("maps.log", logfmt, flows)]
    )


def deploy() -> Case:
    """A new version starts and breaks."""
    flows = [
        info("basket", 4, "basket <id> priced at <ms> EUR"),
        info("pricing", 5, "priced item <n>", end=37),
        info("banner", 8, "banner <n> shown"),
        once("pricing", "INFO", 37, "received SIGTERM, shutting down"),
        once("pricing", "INFO", 37.1, "pricing 2.4.0 starting (was 2.3.9)"),
        once("pricing", "INFO", 37.3, "pricing 2.4.0 ready, listening on 8080"),
        Flow("pricing", "ERROR", 37.4, 60, 5, "price of item <n>: unknown tax class 'reduced-2'"),
        Flow("basket", "ERROR", 37.5, 60, 4, "basket <id>: pricing returned 500"),
    ]
    return Case("deploy", {"pricing"}, "a bad release", [File("shop.jsonl", json_iso, flows)])


def kafka_replica() -> Case:
    """One of three brokers has a bad disk."""
    flows = [info(f"kafka-{k}", 9, "[Log partition=events-<n>] rolled segment") for k in (0, 2)]
    flows += [
        info("kafka-1", 9, "[Log partition=events-<n>] rolled segment", end=40),
        info("tracker", 4, "sent batch of <ms> events"),
        once("kafka-1", "ERROR", 40, "Error while flushing log events-3: Input/output error"),
        Flow("kafka-1", "ERROR", 40.1, 60, 8, "Stopping serving replicas in dir /data/disk0"),
        Flow("kafka-0", "WARN", 40.3, 60, 30, "Connection to node 1 (kafka-1:9092) was lost"),
        Flow("kafka-2", "WARN", 40.3, 60, 30, "Connection to node 1 (kafka-1:9092) was lost"),
        Flow("tracker", "ERROR", 40.4, 60, 5, "batch <id> expired: no leader, broker kafka-1:9092"),
    ]
    return Case(
        "kafka-replica",
        {"kafka-1"},
        "one replica is the culprit",
        [File("events.log", plain, flows)],
    )


def noisy_neighbour() -> Case:
    """One service always errs at the same rate; another begins to fail."""
    flows = [
        info("web", 4, "GET /search 200 <ms>ms", "GET /item/<n> 200 <ms>ms"),
        info("search-index", 6, "query <id> found <ms> items", end=45),
        Flow("thumbs", "ERROR", 0, 60, 4, "cannot decode picture <id>: bad marker"),
        Flow("search-index", "ERROR", 45, 60, 6, "shard 4: segment file _k2.cfs is missing"),
        Flow("web", "ERROR", 45.2, 60, 4, "GET /search 500: search-index: shard 4 failed"),
    ]
    return Case(
        "noisy-neighbour", {"search-index"}, "thumbs always errs", [File("web.log", compose, flows)]
    )


def stack_traces() -> Case:
    """Java traces of many lines; the inner service throws first."""
    outer = (
        "invoice <n> failed\norg.example.CallFailed: POST http://tax:8080/quote returned 500\n"
        "\tat org.example.invoices.TaxClient.quote(TaxClient.java:52)\n"
        "\tat org.example.invoices.Maker.run(Maker.java:118)\n\t... 14 more"
    )
    inner = (
        "quote <n> failed\njava.lang.IllegalStateException: rate table 2025 is empty\n"
        "\tat org.example.tax.Rates.find(Rates.java:77)\n"
        "\tat org.example.tax.QuoteApi.post(QuoteApi.java:31)\n"
        "Caused by: java.io.EOFException: rates.csv ends early\n"
        "\tat org.example.tax.Loader.load(Loader.java:19)\n\t... 9 more"
    )
    flows = [
        info("invoices", 5, "invoice <n> sent"),
        info("tax", 6, "quote <n> in <ms>ms", end=41),
        Flow("tax", "ERROR", 41, 60, 14, inner),
        Flow("invoices", "ERROR", 41.2, 60, 14, outer),
    ]
    return Case(
        "stack-traces", {"tax"}, "traces of many lines", [File("billing.log", plain, flows)]
    )


def retry_storm() -> Case:
    """The caller prints ten times as much as the one that is broken."""
    flows = [
        info("fanout", 5, "delivered <ms> messages"),
        info("inbox-store", 6, "appended to box <n>", end=48),
        info("push", 9, "pushed <ms> notes"),
        Flow("inbox-store", "ERROR", 48, 60, 10, "open box <n>: too many open files"),
        Flow("fanout", "ERROR", 48.1, 60, 1, "append to inbox-store failed, retry 3/10 in 100ms"),
    ]
    return Case(
        "retry-storm",
        {"inbox-store"},
        "ten retries for each error",
        [File("msg.log", logfmt, flows)],
    )


def silent_root() -> Case:
    """A service just stops printing; its callers wait in vain."""
    flows = [
        info("exchange", 4, "order <id> matched"),
        info("rates", 3, "rate EUR/USD published", "rate GBP/USD published", end=40),
        info("report", 11, "row <n> written"),
        Flow(
            "exchange", "ERROR", 40.3, 60, 5, "no rate for order <id>: rates did not answer in 3s"
        ),
        Flow("report", "WARN", 41, 60, 20, "stale rate: rates is silent for <n> ms"),
    ]
    return Case("silent-root", {"rates"}, "its log stops, no FATAL", [File("fx.log", plain, flows)])


def certificate() -> Case:
    """A certificate expires at a full hour."""
    portal = [
        info("portal", 4, "session <id> opened"),
        Flow(
            "portal",
            "ERROR",
            45,
            60,
            4,
            'Post "https://idp:8443/token": tls: failed to verify certificate: x509: certificate '
            "has expired or is not yet valid: current time is after 2025-03-11T09:45:00Z",
        ),
    ]
    idp = [
        info("idp", 5, "token issued to client c<n>", end=45),
        Flow("idp", "WARN", 0, 45, 600, "certificate CN=idp expires soon"),
        Flow("idp", "WARN", 45, 60, 8, "TLS handshake with <ip> failed: bad certificate"),
    ]
    return Case(
        "certificate",
        {"idp"},
        "a certificate expired",
        [File("portal.log", logfmt, portal), File("idp.jsonl", json_epoch, idp)],
    )


def dns() -> Case:
    """Names are not found any more; the name server tells why."""
    bad = "lookup {} on 10.96.0.10:53: server misbehaving"
    flows = [
        info("forum", 5, "thread <n> shown"),
        info("chat", 5, "message <id> sent"),
        info("coredns", 20, "plugin/reload: running configuration SHA512 = <id>"),
        Flow(
            "coredns",
            "ERROR",
            38,
            60,
            6,
            "plugin/errors: 2 wiki.default.svc. A: read udp 10.4.0.2:<n>->10.0.0.2:53: i/o timeout",
        ),
        Flow("forum", "ERROR", 38.1, 60, 6, "dial tcp: " + bad.format("wiki")),
        Flow("chat", "ERROR", 38.1, 60, 6, "dial tcp: " + bad.format("presence")),
    ]
    return Case("dns", {"coredns"}, "name resolution fails", [File("club.jsonl", json_iso, flows)])


def begins_in_trouble() -> Case:
    """The log has no quiet part."""
    flows = [
        Flow("broker", "ERROR", 0, 30, 6, "queue mails is blocked: memory high watermark"),
        Flow("mailer", "ERROR", 0, 30, 4, "publish to broker: connection blocked"),
        info("signup", 6, "user u<n> signed up", end=30),
    ]
    return Case(
        "begins-in-trouble",
        {"broker"},
        "trouble from the first line; not enough evidence is right too",
        [File("mail.log", compose, flows)],
    )


def one_service() -> Case:
    """The log of one service that complains of nobody by name."""
    flows = [
        info("kiosk", 10, "printed boarding pass <id>", "scanned passport <id>"),
        Flow("kiosk", "ERROR", 44, 60, 12, "request failed: HTTP 500"),
    ]
    return Case(
        "one-service",
        set(),
        "one service alone: likely is too much",
        [File("kiosk.log", clock_only, flows)],
    )


def false_alarm() -> Case:
    """A minute of errors in the middle of a good hour."""
    flows = [
        info("rides", 4, "ride <id> begun", "ride <id> over"),
        info("drivers", 5, "driver <n> is at <ms>,<ms>"),
        Flow("rides", "ERROR", 25, 26, 5, "ride <id>: drivers returned 503, will try again"),
        Flow("drivers", "WARN", 25, 25.8, 6, "positions are late by <n>ms"),
    ]
    return Case(
        "false-alarm", set(), "a short burst that is over", [File("rides.log", plain, flows)]
    )


CASES = [
    *mixed_clocks(),
    klog_and_json(),
    oom_killed(),
    crash_loop(),
    fatal_then_silence(),
    disk_full(),
    nginx_named(),
    nginx_unnamed(),
    nginx_pair(),
    brute_force(),
    nightly_batch(),
    healthy(),
    slow_ramp(),
    deploy(),
    kafka_replica(),
    noisy_neighbour(),
    stack_traces(),
    retry_storm(),
    silent_root(),
    certificate(),
    dns(),
    begins_in_trouble(),
    one_service(),
    false_alarm(),
]
SCENARIOS = [build(case, START) for case in CASES]
