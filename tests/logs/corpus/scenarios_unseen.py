"""Odd incidents, the half that was scored before the reader was changed for them."""

from datetime import UTC, datetime

from lines_unseen import (
    access,
    access_json,
    ecs,
    go,
    journal,
    klog,
    logback,
    nginx_error,
    old_compose,
    pino,
    pod,
    postgres,
    python,
    python_athens,
    python_timeless,
    rfc5424,
    ruby,
    spring,
    zap,
)
from loglines import Case, File, Flow, build, info, once

START = datetime(2024, 11, 5, 21, 10, tzinfo=UTC)
LATE = datetime(2024, 11, 5, 23, 25, tzinfo=UTC)


def past_midnight() -> Case:
    """A file with a time of day only goes past midnight, beside one with dates."""
    wards = [
        info("wards", 7, "bed <n> assigned", "round <n> planned"),
        Flow("wards", "WARN", 0, 60, 400, "bed <n> has two patients, first one kept"),
        Flow("wards", "ERROR", 47.2, 60, 7, "patient <id> not shown: charts answered 500"),
    ]
    charts = [
        info("charts", 9, "chart <id> opened", "chart <id> saved", end=47),
        Flow(
            "charts", "ERROR", 47, 60, 9, "chart <id> is unreadable: decryption key ring is empty"
        ),
    ]
    return Case(
        "past-midnight",
        {"charts"},
        "mixed clocks: charts.log has a time of day only and crosses midnight",
        [File("wards.log", spring, wards), File("charts.log", logback, charts)],
    )


def mixed_clocks() -> list[Case]:
    """Files whose clocks are written in different ways."""
    front = [
        info("front", 6, "trip <id> shown", "GET /trips/<n> -> 200"),
        Flow("front", "ERROR", 39, 60, 6, "planner said 502 for trip <id>"),
    ]
    planner = [
        info("planner", 8, "trip <id> has <ms> legs", end=38),
        once("planner", "FATAL", 38, "timetable.bin: unexpected end of file, no timetable loaded"),
        Flow("planner", "ERROR", 38.3, 60, 6, "no timetable, trip <id> refused"),
    ]
    studio = [
        info("studio", 5, "clip <id> queued", "clip <id> published"),
        Flow("studio", "ERROR", 51, 60, 4, "clip <id> lost: encoder gave HTTP 500"),
    ]
    encoder = [
        info("encoder", 6, "clip <id> encoded at <ms> fps", end=50.6),
        Flow("encoder", "ERROR", 50.6, 60, 5, "clip <id>: CUDA error: an illegal address was met"),
    ]
    ferry = [
        info("ferry", 9, "seat <n> sold"),
        Flow("ferry", "ERROR", 44.5, 60, 8, "sale of seat <n> undone: harbour-db: timed out"),
    ]
    harbour = [
        info("harbour-db", 14, "checkpoint starting: time", "checkpoint complete"),
        Flow("harbour-db", "WARN", 0, 40, 500, "there is no transaction in progress"),
        Flow(
            "harbour-db", "FATAL", 44, 60, 6, "harbour-db: remaining connection slots are reserved"
        ),
    ]
    return [
        Case(
            "no-times-in-planner",
            {"planner"},
            "mixed clocks: planner.txt has no times",
            [File("front.log", go, front), File("planner.txt", python_timeless, planner)],
        ),
        Case(
            "milliseconds-and-iso",
            {"encoder"},
            "mixed clocks: epoch milliseconds beside ISO",
            [File("studio.ndjson", pino, studio), File("encoder.log", zap, encoder)],
        ),
        Case(
            "athens-and-utc",
            {"harbour-db"},
            "mixed clocks: +0200 beside UTC",
            [File("ferry.log", python_athens, ferry), File("harbour-db.log", postgres, harbour)],
        ),
    ]


def klog_and_ecs() -> Case:
    """A webhook fails; the API server's klog complains of it."""
    webhook = [
        info("policy-webhook", 7, "admitted pod <id>", end=42),
        once("policy-webhook", "ERROR", 42, "panic: assignment to entry in nil map"),
        Flow("policy-webhook", "ERROR", 42.1, 60, 9, "review <id>: handler panicked"),
    ]
    server = [
        info("apiserver", 8, 'httplog.go:132] "HTTP" verb="GET" URI="/api/v1/pods" resp=200'),
        Flow(
            "apiserver",
            "ERROR",
            42.1,
            60,
            5,
            'dispatcher.go:214] failed calling webhook "policy-webhook.guard.svc": failed to call '
            'webhook: Post "https://policy-webhook.guard.svc:443/admit?timeout=10s": EOF',
        ),
    ]
    return Case(
        "klog-and-ecs",
        {"policy-webhook"},
        "klog beside ISO JSON",
        [File("apiserver.log", klog, server), File("policy-webhook.json", ecs, webhook)],
    )


def oom_in_a_pod() -> Case:
    """A pod is killed for memory; the kernel names its process, containerd and kubelet the pod."""
    node = [
        info("kubelet", 40, '"SyncLoop UPDATE" source="api" pods=["ml/ranker-5c6b7-zx81q"]'),
        info("containerd", 60, 'level=info msg="garbage collected <ms> layers"'),
    ]
    for minute in (31, 36, 43, 52):
        node += [
            once(
                "kernel",
                "ERROR",
                minute,
                "Memory cgroup out of memory: Killed process 22114 (python3) total-vm:6221812kB, "
                "anon-rss:4190212kB, file-rss:11240kB, shmem-rss:0kB, UID:1000 oom_score_adj:968",
            ),
            once(
                "containerd",
                "INFO",
                minute + 0.01,
                'level=info msg="TaskOOM event container_id:<id><id> pod=embedder-7c5d9-qq8zt"',
            ),
            once(
                "kubelet",
                "WARN",
                minute + 0.03,
                '"Container died" reason="OOMKilled" exitCode=137 container="embedder" '
                'pod="ml/embedder-7c5d9-qq8zt"',
            ),
        ]
    ranker = [
        info("ranker", 9, "ranked <ms> results for <id>"),
        Flow("ranker", "ERROR", 31.05, 60, 11, "no vectors for <id>: embedder: connection reset"),
    ]
    return Case(
        "oom-in-a-pod",
        {"embedder"},
        "OOM kill: kernel, containerd and kubelet lines; embedder has no log",
        [File("node.journal", journal, node), File("ranker.json", ecs, ranker)],
    )


def bad_exit() -> Case:
    """A unit exits with a configuration error and systemd restarts it in vain."""
    flows = [
        info("validator", 12, "card <id> checked in, zone <ms>"),
        info("fare-engine", 14, "fare of trip <id> is <ms>", end=40),
        once("fare-engine", "ERROR", 40, "config: field 'zones' must be a list"),
    ]
    for k in range(20):
        flows += [
            once(
                "systemd",
                "WARN",
                40.1 + k,
                "fare-engine.service: Main process exited, code=exited, status=78/CONFIG",
            ),
            once(
                "systemd",
                "INFO",
                40.2 + k,
                f"fare-engine.service: Scheduled restart job, restart counter is at {k + 1}.",
            ),
        ]
    flows.append(
        Flow("validator", "ERROR", 40.3, 60, 10, "check-out of <id>: fare-engine: no route to it")
    )
    return Case(
        "bad-exit",
        {"fare-engine"},
        "exit code 78, restarted in vain",
        [File("syslog", journal, flows)],
    )


def last_words() -> Case:
    """A service dies with a FATAL and prints nothing more."""
    flows = [
        info("dispatch", 5, "van <n> sent to <id>"),
        info("geo-cache", 4, "hit <id>", "miss <id>, loaded", end=36),
        info("invoicing", 16, "invoice <n> mailed"),
        once("geo-cache", "FATAL", 36, "slab 12 is damaged (magic 0x0), cannot go on"),
        Flow("dispatch", "ERROR", 36.1, 60, 4, "position of van <n>: ECONNREFUSED geo-cache:4100"),
    ]
    return Case(
        "last-words", {"geo-cache"}, "FATAL, then nothing", [File("fleet.ndjson", pino, flows)]
    )


def full_disk() -> Case:
    """A message log can not be written any more."""
    flows = [
        info("meters", 3.3, "reading <n> from meter <id>"),
        info("journal-writer", 5, "flushed <ms> records"),
        info("graphs", 10, "graph <n> drawn"),
        Flow(
            "journal-writer",
            "ERROR",
            34,
            60,
            5,
            "OSError: [Errno 28] No space left on device: '/var/lib/journal/<n>.seg'",
        ),
        Flow("meters", "ERROR", 34.2, 60, 4, "reading <n> dropped, journal-writer said 507"),
        Flow("graphs", "WARN", 40, 60, 30, "no new points since <ms> s"),
    ]
    return Case("full-disk", {"journal-writer"}, "disk full", [File("energy.log", python, flows)])


def storm_named() -> Case:
    """An access log as JSON; its upstream field names who fails."""
    flows = [
        Flow("<ip>", "INFO", 0, 60, 4, "GET /courses/<n> 200 courses:3000"),
        Flow("<ip>", "INFO", 0, 60, 6, "GET /me 200 accounts:3000"),
        Flow("<ip>", "INFO", 0, 43, 5, "POST /quiz/<n>/answers 201 quiz:3000"),
        Flow("<ip>", "INFO", 43, 60, 4, "POST /quiz/<n>/answers 503 quiz:3000"),
        Flow("<ip>", "INFO", 0, 60, 120, "GET /robots.txt 404 -"),
    ]
    return Case(
        "storm-named",
        {"quiz"},
        "5xx storm, upstream named",
        [File("edge.json", access_json, flows)],
    )


def storm_unnamed() -> Case:
    """One access log in which everything answers 503 in the end, upstreams not named."""
    agent = '"https://radio.example/" "okhttp/4.12.0"'
    good = tuple(
        f'"GET /{path} HTTP/2.0" 200 <n> {agent}' for path in ("live", "podcasts/<n>", "top")
    )
    bad = tuple(line.replace("200 <n>", "503 213") for line in good)
    flows = [
        Flow("<ip>", "INFO", 0, 50, 2, good),
        Flow("<ip>", "INFO", 50, 60, 2, bad),
        Flow("<ip>", "INFO", 0, 60, 150, f'"GET /wp-login.php HTTP/1.1" 404 153 {agent}'),
    ]
    return Case(
        "storm-unnamed", set(), "5xx storm, no upstream named", [File("access_log", access, flows)]
    )


def edge_pair() -> Case:
    """An access log that names nobody, and an error log that names an upstream group."""
    hits = [
        Flow("<ip>", "INFO", 0, 60, 4, '"GET /wines HTTP/1.1" 200 <n> "-" "Safari/17"'),
        Flow("<ip>", "INFO", 0, 46, 6, '"GET /bids/<id> HTTP/1.1" 200 <n> "-" "Safari/17"'),
        Flow("<ip>", "INFO", 46, 60, 6, '"GET /bids/<id> HTTP/1.1" 502 552 "-" "Safari/17"'),
    ]
    errors = [
        Flow("nginx", "WARN", 0, 60, 600, "a client request body is buffered to a temporary file"),
        Flow(
            "nginx",
            "ERROR",
            46,
            60,
            6,
            "no live upstreams while connecting to upstream, client: <ip>, server: "
            'auction.example, request: "GET /bids/<id> HTTP/1.1", upstream: '
            '"http://bids/bids/<id>", host: "auction.example"',
        ),
    ]
    return Case(
        "edge-pair",
        {"bids"},
        "access log and error log of one nginx",
        [File("access.log", access, hits), File("error.log", nginx_error, errors)],
    )


def stale_token() -> Case:
    """A token is not renewed any more and a storm of 401 begins."""
    flows = [
        info("token-keeper", 30, "renewed token of harvester", end=29),
        Flow("token-keeper", "ERROR", 30, 60, 30, "renew token of harvester: role was deleted"),
        info("harvester", 5, "pulled <ms> files", end=35),
        info("depot", 4, "GET /files 200 <ms>ms"),
        Flow("harvester", "ERROR", 35, 60, 3, "GET depot/files: 401 Unauthorized: token expired"),
        Flow("depot", "WARN", 35, 60, 3, "401 for client harvester: token expired"),
    ]
    return Case(
        "stale-token",
        {"token-keeper"},
        "401 storm: credentials expired",
        [File("depot.log", zap, flows)],
    )


def housekeeping() -> Case:
    """Four nights: the sweeper grumbles at 02:30, and all is well."""
    flows = [
        info("turbines", 400, "rotor <ms> rpm", "yaw <ms> degrees", end=5760),
        info("weather", 900, "wind <ms> km/h", end=5760),
    ]
    for night in (320, 1760, 3200, 4640):
        flows += [
            Flow("sweeper", "WARN", night, night + 12, 10, "sample <id> is older than 90 days"),
            Flow("sweeper", "ERROR", night, night + 12, 200, "sample <id> could not be moved"),
        ]
    return Case(
        "housekeeping", set(), "harmless grumbling each night", [File("wind.log", ruby, flows)]
    )


def all_well() -> Case:
    """A healthy hour, small, with a few errors that mean nothing."""
    flows = [
        info("pos", 14, "receipt <n> printed", "till <n> opened"),
        info("loyalty", 20, "card <n> got <ms> points"),
        Flow("loyalty", "ERROR", 0, 60, 900, "card <n> is not known"),
        Flow("pos", "WARN", 0, 60, 600, "paper is low on printer 2"),
    ]
    return Case("all-well", set(), "wholly healthy", [File("till.log", rfc5424, flows)])


def creeping() -> Case:
    """Commits of one store creep up for 40 minutes until callers give up."""
    creep = [
        Flow(
            "vote-store",
            "WARN",
            8 + 5 * k,
            13 + 5 * k,
            50 - 5 * k,
            f"commit took {0.4 * 2**k:.1f}s",
        )
        for k in range(8)
    ]
    flows = [
        info("ballots", 3, "ballot <id> counted"),
        info("vote-store", 4, "commit <n> ok", end=48),
        info("results", 12, "page of district <n> rendered"),
        *creep,
        Flow("vote-store", "ERROR", 48, 60, 5, "commit <n> aborted after 60s"),
        Flow("ballots", "ERROR", 48.5, 60, 3, "ballot <id>: i/o timeout talking to vote-store"),
    ]
    return Case(
        "creeping", {"vote-store"}, "latency grows, then timeouts", [File("poll.log", pod, flows)]
    )


def bad_release() -> Case:
    """A rollout replaces a pod, and the new version can not read old rows."""
    flows = [
        info("planner-ui", 6, "calendar of <n> drawn"),
        info("shifts", 7, "shift <id> found", end=44),
        info("payroll", 15, "hours of <n> added"),
        once("shifts", "INFO", 44, "version=5.0.0 commit=<id> booting, schema 31"),
        once("shifts", "INFO", 44.2, "version=5.0.0 healthy"),
        Flow("shifts", "ERROR", 44.4, 60, 5, 'column "break_minutes" does not exist (shift <id>)'),
        Flow("planner-ui", "ERROR", 44.5, 60, 5, "shifts replied 500, calendar of <n> is empty"),
        Flow("payroll", "ERROR", 46, 60, 20, "hours of <n>: shifts replied 500"),
    ]
    return Case("bad-release", {"shifts"}, "a bad release", [File("hr.json", ecs, flows)])


def one_of_three() -> Case:
    """One of three queue nodes falls behind and is thrown out."""
    flows = [
        info("nats-0", 8, "stream ORDERS snapshot <n>"),
        info("nats-1", 8, "stream ORDERS snapshot <n>"),
        info("nats-2", 8, "stream ORDERS snapshot <n>", end=37),
        info("pickers", 4, "picked crate <id>"),
        once("nats-2", "ERROR", 37, "filestore: checksum of block 88 does not match"),
        Flow("nats-2", "ERROR", 37.1, 60, 6, "stream ORDERS: resetting, applied too far behind"),
        Flow("nats-0", "WARN", 37.4, 60, 25, "peer nats-2 is not current"),
        Flow("nats-1", "WARN", 37.4, 60, 25, "peer nats-2 is not current"),
        Flow("pickers", "ERROR", 37.5, 60, 5, "crate <id>: no reply from nats-2:4222 in 2s"),
    ]
    return Case(
        "one-of-three", {"nats-2"}, "one replica is the culprit", [File("depot.log", pod, flows)]
    )


def old_grumbler() -> Case:
    """One service has always erred; the real failure is quieter."""
    flows = [
        info("app", 5, "screen <n> sent to <id>"),
        info("consents", 6, "consent <id> read", end=41),
        Flow("geo-ip", "ERROR", 0, 60, 3, "no country for <ip>"),
        Flow("consents", "ERROR", 41, 60, 9, "consent <id>: row is locked by a dead session"),
        Flow("app", "ERROR", 41.3, 60, 8, "<id> sees a blank screen: consents is not ready (503)"),
    ]
    return Case(
        "old-grumbler", {"consents"}, "geo-ip always errs", [File("app.log", old_compose, flows)]
    )


def python_traces() -> Case:
    """Python traces; the service behind throws first."""
    caller = (
        "badge <n> not printed\nTraceback (most recent call last):\n"
        '  File "/srv/badges/print.py", line 61, in run\n'
        "    photo = photos.get(guest)\n"
        '  File "/srv/badges/photos.py", line 22, in get\n'
        "    raise BadAnswer(response.status)\n"
        "badges.photos.BadAnswer: http://photos:5000/guest/<n> answered 500"
    )
    callee = (
        "GET /guest/<n>\nTraceback (most recent call last):\n"
        '  File "/srv/photos/app.py", line 40, in guest\n'
        "    return frame(load(number))\n"
        '  File "/srv/photos/frame.py", line 13, in frame\n'
        "    left, top = FRAMES[style]\n"
        "KeyError: 'autumn'"
    )
    flows = [
        info("badges", 10, "badge <n> printed"),
        info("photos", 12, "GET /guest/<n> 200", end=45),
        Flow("photos", "ERROR", 45, 60, 15, callee),
        Flow("badges", "ERROR", 45.2, 60, 15, caller),
    ]
    return Case(
        "python-traces", {"photos"}, "traces of many lines", [File("fair.log", python, flows)]
    )


def thundering_retries() -> Case:
    """A few errors of one, a flood of retries of the other."""
    flows = [
        info("sync", 6, "account <n> in sync"),
        info("blob", 8, "put <id> ok"),
        info("quota", 15, "account <n> uses <ms>%"),
        Flow("blob", "ERROR", 50, 60, 8, "put <id>: replica quorum 1 of 3"),
        Flow(
            "sync", "WARN", 50.1, 60, 0.5, ("blob said 503, attempt <ms>", "backing off from blob")
        ),
    ]
    return Case(
        "thundering-retries",
        {"blob"},
        "many retries for each error",
        [File("drive.log", go, flows)],
    )


def gone_quiet() -> Case:
    """A service's file ends in the middle of the hour, without a word."""
    sensor = [info("soil-hub", 4, "probe <n>: <ms>% moisture", end=42)]
    pump = [
        info("irrigator", 7, "valve <n> opened", "valve <n> closed"),
        Flow("irrigator", "ERROR", 42.4, 60, 6, "no moisture for field <n>: soil-hub timed out"),
    ]
    ui = [
        info("farm-ui", 9, "map of field <n> drawn"),
        Flow("farm-ui", "WARN", 43, 60, 15, "values of soil-hub are old"),
    ]
    return Case(
        "gone-quiet",
        {"soil-hub"},
        "its log stops, no FATAL",
        [
            File("soil-hub.json", ecs, sensor),
            File("irrigator.log", python, pump),
            File("farm-ui.ndjson", pino, ui),
        ],
    )


def expired() -> Case:
    """A certificate runs out and the Java callers refuse it."""
    flows = [
        info("claims", 8, "claim <id> filed"),
        info("registry", 9, "plate <n> looked up", end=35),
        Flow("registry", "WARN", 35, 60, 14, "remote error: tls: expired certificate"),
        Flow(
            "claims",
            "ERROR",
            35,
            60,
            7,
            "claim <id>: GET https://registry/plates/<n>: javax.net.ssl.SSLHandshakeException: "
            "PKIX path validation failed: java.security.cert.CertPathValidatorException: validity "
            "check failed: NotAfter: Tue Nov 05 21:45:00 UTC 2024",
        ),
    ]
    return Case(
        "expired", {"registry"}, "a certificate expired", [File("motor.log", spring, flows)]
    )


def resolver() -> Case:
    """The node's resolver loses its server; everybody misses a different name."""
    flows = [
        info("lobby", 7, "player <n> joined"),
        info("matchmaker", 7, "match <id> made"),
        info("systemd-resolved", 240, "Clock change detected. Flushing caches."),
        Flow(
            "systemd-resolved",
            "WARN",
            40,
            60,
            12,
            "Using degraded feature set UDP instead of TCP for DNS server 10.0.0.2.",
        ),
        Flow("systemd-resolved", "ERROR", 40.1, 60, 10, "DNS server 10.0.0.2 does not answer"),
        Flow("lobby", "ERROR", 40.2, 60, 6, "friends: Temporary failure in name resolution"),
        Flow("matchmaker", "ERROR", 40.2, 60, 6, "elo: Temporary failure in name resolution"),
    ]
    return Case(
        "resolver",
        {"systemd-resolved"},
        "name resolution fails",
        [File("game.journal", journal, flows)],
    )


def late_to_the_scene() -> Case:
    """Somebody turned the log on when the house was on fire."""
    flows = [
        Flow("dialer", "ERROR", 0, 25, 5, "call <id> failed: sip-proxy answers 480"),
        Flow("sip-proxy", "ERROR", 0, 25, 8, "all trunks are busy, 0 of 30 free"),
        info("recorder", 9, "call <id> recorded", end=25),
    ]
    return Case(
        "late-to-the-scene",
        {"sip-proxy"},
        "trouble from the first line; not enough evidence is right too",
        [File("calls.log", rfc5424, flows)],
    )


def alone() -> Case:
    """One service's log; it only says that something it needs is slow."""
    flows = [
        info("scanner", 8, "page <n> scanned", "page <n> saved"),
        Flow("scanner", "ERROR", 39, 60, 9, "operation timed out after 30s"),
    ]
    return Case(
        "alone", set(), "one service alone: likely is too much", [File("scanner.log", ruby, flows)]
    )


def blip() -> Case:
    """Forty seconds of errors that heal."""
    flows = [
        info("streams", 2.5, "chunk <n> of <id> sent"),
        info("drm", 5, "key <id> handed out"),
        Flow("drm", "ERROR", 30, 30.5, 5, "leader changed, key <id> refused"),
        Flow("streams", "ERROR", 30.1, 30.7, 3, "stream <id>: drm: try again"),
        once("drm", "INFO", 30.6, "new leader elected, serving again"),
    ]
    return Case("blip", set(), "a short burst that is over", [File("tv.log", zap, flows)])


CASES = [
    *mixed_clocks(),
    klog_and_ecs(),
    oom_in_a_pod(),
    bad_exit(),
    last_words(),
    full_disk(),
    storm_named(),
    storm_unnamed(),
    edge_pair(),
    stale_token(),
    housekeeping(),
    all_well(),
    creeping(),
    bad_release(),
    one_of_three(),
    old_grumbler(),
    python_traces(),
    thundering_retries(),
    gone_quiet(),
    expired(),
    resolver(),
    late_to_the_scene(),
    alone(),
    blip(),
]
SCENARIOS = [build(past_midnight(), LATE)] + [build(case, START) for case in CASES]
