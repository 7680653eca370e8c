"""Odd cases: quiet days, loud bystanders, strange clocks, missing logs."""

from story import Hum, Story, Svc

STORIES = [
    Story(
        "clocks_with_offsets",
        "each service writes its own zone, with the offset printed",
        {
            "desk-oslo": Svc("web", "trade", "pricing"),
            "desk-pune": Svc("web", "trade", "pricing"),
            "pricing": Svc("web", "quote", "curves"),
            "curves": Svc("web", "curve"),
        },
        "zoned",
        "curves",
        ["W curve EUR-6M is 900 s old, feed handler stopped"],
        ["E curve {id}: no points after the last roll", "E interpolation failed: empty curve"],
        {
            "pricing": ["E quote {id}: 500 from /curve", "E cannot price {id}"],
            "desk-oslo": ["E trade {id} not quoted"],
            "desk-pune": ["E trade {id} not quoted"],
        },
        zones={"desk-oslo": 1, "desk-pune": 5.5, "pricing": 0, "curves": -5},
        calm=55,
        bad=10,
    ),
    Story(
        "clock_runs_behind",
        "the caller's clock is 45 seconds behind, so it complains first",
        {
            "kiosk": Svc("web", "menu", "kitchen"),
            "kitchen": Svc("web", "dish", "printer-hub"),
            "printer-hub": Svc("web", "slip"),
        },
        "structlog",
        "printer-hub",
        ["W spool directory /var/spool/slips is read-only", "E remount of /dev/sdb1 refused"],
        ["E slip {id}: [Errno 30] Read-only file system", "E job {id} moved to failed"],
        {
            "kitchen": ["E printer-hub answered 500 for slip {id}"],
            "kiosk": ["E order {id} not sent to the kitchen"],
        },
        skew={"kiosk": -45, "kitchen": -45},
        calm=46,
        bad=15,
    ),
    Story(
        "quiet_day",
        "nothing happens",
        {
            "tram-app": Svc("web", "ride", "fares stops"),
            "fares": Svc("web", "fare", "fares-db"),
            "stops": Svc("web", "stop"),
            "fares-db": Svc("postgres", "fare"),
        },
        "ecs",
        forms={"fares-db": "postgres"},
        calm=90,
        bad=0,
        lines=1500,
    ),
    Story(
        "harmless_warnings",
        "a client library starts to warn about an old call; every request still works",
        {
            "forum": Svc("web", "thread", "posts avatars"),
            "posts": Svc("web", "post"),
            "avatars": Svc("web", "avatar"),
        },
        "pyservice",
        hums=[
            Hum(
                "posts",
                [
                    (
                        "W DeprecationWarning: datetime.utcnow() is deprecated and scheduled for "
                        "removal in a future version"
                    ),
                    (
                        "W InsecureRequestWarning: Unverified HTTPS request is being made to host "
                        "'localhost'"
                    ),
                ],
                20,
                50,
            )
        ],
        calm=65,
        bad=0,
    ),
    Story(
        "burst_that_ends",
        "a failover takes six minutes and all is well again",
        {
            "bets": Svc("web", "bet", "wallets"),
            "wallets": Svc("web", "wallet", "wallet-pg"),
            "wallet-pg": Svc("postgres", "wallet"),
        },
        "winston",
        "wallet-pg",
        [
            "I received fast shutdown request",
            "I aborting any active transactions",
            "F terminating connection due to administrator command",
            "I database system is shut down",
        ],
        ["F the database system is starting up"],
        {
            "wallets": [
                "E terminating connection due to administrator command",
                "E Connection terminated unexpectedly, wallet {id} not read",
            ],
            "bets": ["E bet {id} refused: wallet unknown"],
        },
        {"wallet-pg": "postgres"},
        calm=50,
        bad=6,
        after=30,
    ),
    Story(
        "always_noisy",
        "the mailer complains all day; the new trouble is in the seat store",
        {
            "cinema-web": Svc("web", "show", "seats mailer"),
            "seats": Svc("web", "seat", "seat-store"),
            "mailer": Svc("worker", "mail"),
            "seat-store": Svc("mongo", "seats"),
        },
        "winston",
        "seat-store",
        [
            (
                "E WiredTiger error message: __posix_file_write:/data/db/WiredTigerLog: "
                "Input/output error"
            )
        ],
        [
            "E WiredTiger error message: WT_SESSION.commit_transaction: Input/output error",
            "W Slow query ns=seats.hold planSummary=IXSCAN durationMillis={slow}",
        ],
        {
            "seats": ["E MongoServerError: WriteConcernError on hold {id}"],
            "cinema-web": ["E POST /holds 500 {ms}ms"],
        },
        {"seat-store": "mongo"},
        [
            Hum(
                "mailer",
                [
                    (
                        "E 550 5.1.1 <{user}@oldmail.example>: Recipient address rejected: User "
                        "unknown"
                    ),
                    "E bounce for mail {id}, giving up after 3 attempts",
                ],
                9,
            )
        ],
        calm=60,
        bad=12,
    ),
    Story(
        "retry_storm",
        "the caller's retries drown the few lines of the slow callee",
        {
            "ride-app": Svc("web", "ride", "matcher"),
            "matcher": Svc("web", "driver", "geo"),
            "geo": Svc("web", "cell"),
        },
        "zap_iso",
        "geo",
        ["W rebuilding cell tree, reads are served from one thread"],
        ["W cell lookup took {slow} ms", "E lookup {hex}: queue full (512)"],
        {
            "matcher": [
                "W geo call failed, retry 1 in 100ms",
                "W geo call failed, retry 4 in 800ms",
                "E geo: giving up after 5 attempts",
            ],
            "ride-app": ["E no driver for ride {id}"],
        },
        hums=[
            Hum(
                "matcher",
                [
                    "W retrying geo.Lookup attempt={n} backoff={ms}ms",
                    "E geo.Lookup attempt={n} failed: context deadline exceeded",
                ],
                1.5,
                45.5,
            )
        ],
        wait=2,
        calm=45,
        bad=9,
    ),
    Story(
        "one_log_names_callee",
        "only the caller's log is there and it names whom it cannot reach",
        {
            "enrol": Svc("web", "course", "timetable rooms"),
            "rooms": Svc("web", "room"),
            "timetable": Svc("web", "slot"),
        },
        "gunicorn",
        "timetable",
        felt={
            "enrol": [
                "E httpx.ConnectError: [Errno 111] Connection refused: http://timetable:8000/slots",
                "E timetable unreachable, course {id} not saved",
            ]
        },
        hidden=("rooms", "timetable"),
        lines=2400,
        calm=52,
        bad=13,
    ),
    Story(
        "one_log_own_fault",
        "only one log is there and its own process runs out of memory",
        {"render-farm": Svc("web", "frame")},
        "heroku",
        "render-farm",
        ["W Process running mem=1043M(101.9%)", "E Error R14 (Memory quota exceeded)"],
        [
            "E Error R14 (Memory quota exceeded)",
            "F FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        ],
        calm=58,
        bad=12,
        lines=900,
    ),
    Story(
        "one_replica_of_three",
        "one of three replicas fails on its full disk, the others are fine",
        {
            "photo-web": Svc("web", "photo", "blob-0 blob-1 blob-2"),
            "album-api": Svc("web", "album", "blob-0 blob-1 blob-2"),
            "blob-0": Svc("web", "blob"),
            "blob-1": Svc("web", "blob"),
            "blob-2": Svc("web", "blob"),
        },
        "cri",
        "blob-1",
        ["W disk usage of /data at 100%, 0 bytes free"],
        ["E write {hex}: no space left on device", "E drive /data: disk full, refusing PUT"],
        {
            "photo-web": ["E put photo {id}: storage answered 507 Insufficient Storage"],
            "album-api": ["E album {id}: http://blob-1:9000 answered 507"],
        },
        roots={"blob-1", "blob"},
        calm=63,
        bad=11,
    ),
    Story(
        "platform_lines_only",
        "the cluster's events tell of one pod that is killed again and again",
        {},
        "journal",
        "invoicer",
        hums=[
            Hum(
                "kubelet",
                [
                    'I "SyncLoop (PLEG): event for pod" pod="shop/cart-{n}"',
                    'I "Observed pod startup duration" pod="shop/menu-{n}" duration="{n}s"',
                    'I "Cleaned up orphaned pod volumes dir" podUID="{uuid}"',
                    'W "Probe failed" probeType="Readiness" pod="shop/reports-{n}"',
                ],
                9,
            ),
            Hum(
                "containerd",
                [
                    'I level=info msg="ImageUpdate event name:registry.local/shop/cart:{n}"',
                    'I level=info msg="CreateContainer within sandbox {hex} returns {uuid}"',
                ],
                14,
            ),
            Hum(
                "kernel",
                [
                    (
                        "E Memory cgroup out of memory: Killed process {big} (invoicer) "
                        "total-vm:21{big}kB, anon-rss:52{big}kB, oom_score_adj:993"
                    ),
                    "W invoicer invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
                ],
                40,
                50,
            ),
            Hum(
                "kubelet",
                [
                    (
                        'E "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for '
                        '\\"invoicer\\" with CrashLoopBackOff: back-off 40s restarting failed '
                        'container=invoicer" pod="shop/invoicer-5b8f7c9d4-q2x7p"'
                    ),
                    'I "SyncLoop (PLEG): event for pod" pod="shop/invoicer-5b8f7c9d4-q2x7p"',
                    'W "Probe failed" probeType="Liveness" pod="shop/invoicer-5b8f7c9d4-q2x7p"',
                ],
                12,
                50.2,
            ),
        ],
        roots={"invoicer"},
        one_file="node.log",
        calm=62,
        bad=0,
        lines=500,
    ),
    Story(
        "file_without_times",
        "one of the three files prints no times at all",
        {
            "pos": Svc("web", "sale", "promo"),
            "promo": Svc("web", "promo", "rules"),
            "rules": Svc("web", "rule"),
        },
        "log4j",
        "rules",
        ["E @org.shop.rules.Loader cannot parse rules.xml: Content is not allowed in prolog."],
        ["E @org.shop.rules.Engine rule base is empty, promo {id} not evaluated"],
        {
            "promo": ["E @org.shop.promo.Client rules answered 500 for sale {id}"],
            "pos": ["E sale {id} without promo: upstream error"],
        },
        {"pos": "notime"},
        calm=37,
        bad=14,
    ),
    Story(
        "callers_own_bug",
        "the caller has a bug; its healthy store is named in most of its usual lines",
        {
            "crm": Svc("web", "lead", "contacts"),
            "contacts": Svc(
                "web",
                "contact",
                "geo-store",
                (
                    "I geo-store answered 200 in {ms}ms",
                    "I wrote contact {id} to geo-store",
                    "I geo-store connection reused",
                ),
            ),
            "geo-store": Svc("web", "place"),
        },
        "rails",
        "contacts",
        ["I Booting Puma, release 2024.31", "I geo-store connection opened"],
        [
            (
                "F NoMethodError (undefined method `postcode' for nil:NilClass)\n"
                "app/models/contact.rb:52:in `label'"
            ),
            "I geo-store answered 200 in {ms}ms",
            "E Completed 500 Internal Server Error in {ms}ms",
        ],
        {"crm": ["E contacts returned 500 for lead {id}", "E lead {id} not shown"]},
        calm=54,
        bad=13,
    ),
    Story(
        "symptom_names_root",
        "no log of the root and only one kind of line that names it",
        {
            "ferry-web": Svc("web", "crossing", "ferry-api"),
            "ferry-api": Svc("web", "crossing", "tides berth"),
            "berth": Svc("web", "berth"),
            "tides": Svc("web", "tide"),
        },
        "journal",
        "tides",
        felt={
            "ferry-api": [
                "E crossing {id} cannot be planned",
                "E Traceback (most recent call last): TimeoutError",
                "W plan {hex} incomplete",
                "W circuit breaker 'tides' is OPEN",
            ],
            "ferry-web": ["E GET /crossings/{id} 500 {ms}ms"],
        },
        hidden=("tides",),
        one_file="journal.txt",
        wait=3,
        calm=48,
        bad=11,
    ),
    Story(
        "louder_consequence",
        "a short line of the root, and a storm of errors from those who depend on it",
        {
            "live-edge": Svc("web", "stream", "packager"),
            "packager": Svc("web", "segment", "drm"),
            "dvr": Svc("worker", "segment", "packager"),
            "drm": Svc("web", "key"),
        },
        "gelf",
        "drm",
        ["E HSM slot 0: CKR_DEVICE_ERROR", "W key signing disabled until the module answers"],
        ["E CKR_DEVICE_ERROR"],
        {
            "packager": [
                "E segment {id}: no content key, drm answered 503",
                "E manifest {hex} not written",
            ],
            "live-edge": ["E 404 for segment {id}", "E player {uuid} stalled"],
            "dvr": ["E segment {id} missing in recording"],
        },
        hums=[
            Hum("live-edge", ["E player {uuid} stalled for {n}s", "E 404 segment {id}"], 1.5, 66.3),
            Hum(
                "packager", ["E encrypt segment {id}: missing key", "E track {n} stopped"], 2, 66.1
            ),
        ],
        calm=66,
        bad=8,
    ),
    Story(
        "two_troubles",
        "two stores that know nothing of each other fail in the same minute",
        {
            "desk": Svc("web", "case", "cases"),
            "cases": Svc("web", "case", "case-db"),
            "case-db": Svc("mysql", "cases"),
            "phone": Svc("web", "call", "voicemail"),
            "voicemail": Svc("web", "voice"),
        },
        "pyservice",
        "case-db",
        ["E InnoDB: Unable to lock ./ibdata1 error: 11"],
        ["E Got error 168 'Unknown (generic) error from engine' from storage engine"],
        {
            "cases": ['E (1030, "Got error 168 from storage engine") while reading case {id}'],
            "desk": ["E case {id} cannot be opened"],
        },
        {"case-db": "mysql"},
        [
            Hum(
                "voicemail",
                [
                    "E ffmpeg exited with code 137 for voice {id}",
                    "E transcoder pool is empty, voice {id} dropped",
                ],
                6,
                51,
            ),
            Hum("phone", ["E voicemail answered 503 for call {id}"], 11, 51.2),
        ],
        roots={"case-db", "voicemail"},
        calm=51,
        bad=12,
    ),
    Story(
        "root_names_client",
        "the root's lines name the client whose work it drops",
        {
            "seedbox": Svc("web", "file", "indexer"),
            "indexer": Svc("worker", "file", "fileshare"),
            "thumbnailer": Svc("worker", "file", "fileshare"),
            "fileshare": Svc("web", "inode"),
        },
        "epoch",
        "fileshare",
        ["E raid: device sdc failed, array md0 degraded", "W md0: too many bad blocks"],
        [
            "E client indexer: read inode {id}: I/O error",
            "E dropping request of client indexer, 30 s without data",
            "W client thumbnailer waits for inode {id}",
        ],
        {
            "indexer": ["E file {id} unreadable: EIO", "E batch {hex} stopped"],
            "thumbnailer": ["E cannot open file {id}: EIO"],
            "seedbox": ["E file {id} not listed"],
        },
        one_file="cluster.log",
        calm=44,
        bad=16,
    ),
]
