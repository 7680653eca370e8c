"""Logs of which `triage` is sure and wrong, wrong about when, stuck or broken.

`CASES` holds each as files in memory; `roots` are the right answers, empty where the log names no
service that could be one: then any root that is `likely` is wrong. `note` says why.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

START = datetime(2026, 10, 13, 9)


@dataclass(frozen=True)
class Case:
    """A log and what is true of it."""

    name: str
    files: dict[str, bytes]
    roots: set[str]
    note: str


@dataclass(frozen=True)
class Line:
    """A line before it is written in a format."""

    time: datetime
    who: str
    level: str
    text: str


Format = Callable[[Line], str]


class Story:
    """Lines of some speakers over time.

    Args:
        quiet: speaker to what it says while all is well, again and again.
        minutes: how long the log is.
        every: seconds between two of the quiet lines of a speaker.
    """

    def __init__(self, quiet: dict[str, list[str]], minutes: int = 60, every: float = 5) -> None:
        self._rng, self._minutes = random.Random(7), minutes
        self._lines: list[tuple[float, str, str, str]] = []
        for who, texts in quiet.items():
            self.says(who, "INFO", texts, every)

    def says(
        self, who: str, level: str, texts: str | list[str], every: float, begin=0.0, end=None
    ) -> "Story":
        """Somebody says something every so many seconds, from one minute to another."""
        some = [texts] if isinstance(texts, str) else texts
        at, last = begin * 60 + self._rng.random() * every, 60 * (end or self._minutes)
        while at < last:
            self._lines.append((at, who, level, self._filled(self._rng.choice(some))))
            at += self._rng.expovariate(1 / every)
        return self

    def once(self, minute: float, who: str, level: str, text: str) -> "Story":
        """Somebody says something once."""
        self._lines.append((60 * minute, who, level, self._filled(text)))
        return self

    def _filled(self, text: str) -> str:
        rng = self._rng
        text = text.replace("#n", str(rng.randint(100, 99_999))).replace(
            "#d", str(rng.randint(2, 90))
        )
        return text.replace("#h", f"{rng.getrandbits(32):08x}").replace(
            "#ip", f"10.2.3.{rng.randint(2, 250)}"
        )

    def cut(self, who: str, minute: float) -> "Story":
        """The lines of somebody are missing from a minute on."""
        self._lines = [one for one in self._lines if one[1] != who or one[0] < 60 * minute]
        return self

    def log(self, form: Format, only: str = "", hours: float = 0, start: datetime = START) -> bytes:
        """The lines as a file, of some speakers, by a clock that is some hours ahead."""
        rows = [
            form(Line(start + timedelta(seconds=at, hours=hours), who, level, text))
            for at, who, level, text in sorted(self._lines)
            if not only or who in only.split()
        ]
        return ("\n".join(rows) + "\n").encode()


def plain(one: Line) -> str:
    """Date, level, speaker."""
    return f"{one.time:%Y-%m-%d %H:%M:%S} {one.level} {one.who}: {one.text}"


def zulu(one: Line) -> str:
    """As `plain`, with a zone."""
    return f"{one.time:%Y-%m-%dT%H:%M:%SZ} {one.level} {one.who}: {one.text}"


def structured(one: Line) -> str:
    """JSON with a zone."""
    time = f"{one.time:%Y-%m-%dT%H:%M:%SZ}"
    return json.dumps({"time": time, "level": one.level, "service": one.who, "msg": one.text})


def syslog(one: Line) -> str:
    """What a syslog daemon writes."""
    pid = "" if one.who == "kernel" else "[812]"
    level = f"{one.level}: " if one.level not in ("", "INFO") else ""
    return f"{one.time:%b %d %H:%M:%S} node-3 {one.who}{pid}: {level}{one.text}"


def dated(form: str) -> Format:
    """As `plain`, with its time in a form of `strftime`."""
    return lambda one: f"{one.time.strftime(form)} {one.level} {one.who}: {one.text}"


def headed(form: str) -> Format:
    """A time, and a head with {level}, {who} and {text}."""
    return lambda one: f"{one.time:%Y-%m-%d %H:%M:%S} " + form.format(**vars(one))


SHOP = {
    "gateway": ["GET /orders/#n 200 #dms", "GET /cart/#n 200 #dms"],
    "orders": ["order #n saved in #d ms", "order #n shipped"],
    "payments": ["charge #n captured in #d ms"],
    "users": ["session #h renewed"],
    "db": ["checkpoint complete: wrote #d buffers"],
}
ORDER_LOST, GATEWAY_500 = "saving order #n failed, giving up", "POST /orders: orders answered 500"


def shop(**more: list[str]) -> Story:
    """An hour of a shop, with more services."""
    return Story({**SHOP, **more})


def named_in_passing() -> list[Case]:
    """Whoever a broken service's lines mention is taken for one that it calls."""
    cases = []

    def add(name: str, story: Story, root: str, note: str, form: Format = plain) -> None:
        cases.append(Case(name, {"app.log": story.log(form)}, {root}, note))

    def broken_db(text: str, level: str = "ERROR") -> Story:
        story = shop().says("db", level, text, 6, 40).says("orders", "ERROR", ORDER_LOST, 4, 40)
        return story.says("gateway", "ERROR", GATEWAY_500, 4, 40)

    add(
        "table_is_no_service",
        broken_db("could not read block #d in relation orders: read only 0 of 8192 bytes"),
        "db",
        "the table has the service's name, as tables do",
    )
    add(
        "statement_is_no_call",
        broken_db("canceling statement due to statement timeout: UPDATE orders SET state = #d"),
        "db",
        "'timeout' makes a cause at home a symptom, and the table the culprit",
    )
    add(
        "database_user_is_no_callee",
        broken_db("query of orders@#ip stopped, page #n of file is unreadable"),
        "db",
        "a database logs as whom its client came",
    )
    story = shop(elastic=["merged segment #n"]).says(
        "orders", "ERROR", "order #n is not found", 4, 40
    )
    story.says("elastic", "ERROR", "[orders][#d] marking shard as stale after I/O error", 5, 40)
    add("index_is_no_service", story, "elastic", "an index has the name of the service")
    for name, text in {
        "request_of_caller": "request #h of payments failed: page #d is damaged",
        "caller_in_peer_field": "booking failed: page #d is damaged peer=payments",
        "caller_by_its_address": "booking for payments.shop.svc:#n failed: page #d is damaged",
    }.items():
        story = shop(ledger=["entry #n booked"]).says("ledger", "ERROR", text, 6, 40)
        story.says("payments", "ERROR", "charge #n not booked: internal error", 4, 40)
        add(name, story, "ledger", "a server logs whose request failed: that is its caller")
    story = shop(auth=["token #h issued"]).says(
        "gateway", "ERROR", "no session, sent to login", 3, 40
    )
    story.says("auth", "ERROR", "token for client gateway not signed: key #h is revoked", 5, 40)
    add("oauth_client_is_the_caller", story, "auth", "a client is who calls", structured)
    story = shop(alertmanager=["notified #n"])
    story.says("db", "ERROR", "could not fsync segment #n: Input/output error", 10, 40)
    story.says("alertmanager", "ERROR", "firing HighErrorRate service=orders value=0.#d", 4, 40)
    story.says("orders", "ERROR", "order #n not saved, state unknown", 4, 40)
    add("monitor_names_the_victim", story, "db", "who reports alerts is no victim of whom it names")
    story = Story(
        {"user": ["profile #n read"], "email": ["template #d ready"], "mailer": ["#d sent"]}
    )
    story.says("mailer", "ERROR", "email to user #n bounced: our DKIM key is not published", 5, 40)
    story.says("user", "ERROR", "sign-up #n stuck: address was not confirmed", 7, 40)
    add("common_nouns", story, "mailer", "services called user and email; the words are nouns here")
    return cases


def nobody_named() -> list[Case]:
    """One program: what parts its lines (a tenant, a thread, a module) is taken for services."""
    said = [
        "order #n saved in #d ms",
        "login of #h",
        "cart #n is empty",
        "import of #n rows done",
        "lock #h taken",
    ]
    forms = {
        "tenants": ("acme globex initech", headed("{level} tenant={who} {text}")),
        "json_tenants": (
            "acme globex initech",
            lambda one: json.dumps(
                {"ts": f"{one.time}Z", "level": one.level, "message": one.text, "tenant": one.who}
            ),
        ),
        "json_zones": (
            "eu-west-1 us-east-1 ap-south-1",
            lambda one: json.dumps(
                {"ts": f"{one.time}Z", "level": one.level, "message": one.text, "az": one.who}
            ),
        ),
        "hosts": (
            "fra-a fra-b ams-a",
            lambda one: f"{one.time:%b %d %H:%M:%S} {one.who} {one.level} {one.text}",
        ),
        "threads": ("grpc-default kafka-consumer quartz-cron", headed("{level} [{who}] {text}")),
        "logged_in_users": ("ana bo chen", headed("{level} {who} {text}")),
        "modules": ("auth cart mail http", headed("{level}: [{who}] {text}")),
        "symbols": ("EURUSD GBPUSD USDJPY", headed("{level} {who} {text}")),
        "devices": ("kitchen cellar attic", headed("{level} {who}: {text}")),
        "steps": ("lint unit package", headed("[{who}] {level} {text}")),
        "methods": ("createorder getcart listusers", headed("{level} rpc={who} {text}")),
    }
    cases = []
    for name, (speakers, form) in forms.items():
        names = speakers.split()
        story = Story({one: said for one in names})
        story.says(names[1], "ERROR", "order #n not saved: row is locked", 5, 40)
        note = f"'{names[1]}' is no service; one program speaks"
        cases.append(Case(f"no_services_but_{name}", {"app.log": story.log(form)}, set(), note))
    story = Story(
        {
            "Invoice": ["#n rendered", "#n mailed", "#n paid by card", "#n archived"],
            "Order": ["#n placed", "#n shipped", "#n refunded", "#n waits"],
        }
    ).says("Invoice", "ERROR", "#n lost: template is empty", 5, 40)
    files = {"app.log": story.log(headed("{level} {who} {text}"))}
    cases.append(Case("no_services_but_nouns", files, set(), "the first words of messages"))
    return cases


def clocks() -> list[Case]:
    """The files of one outage whose clocks differ by hours, and nothing doubts it."""
    story = Story({one: SHOP[one] for one in ("gateway", "orders", "db")}, 120)
    story.says("db", "ERROR", "could not write block #d: disk full", 6, 70)
    story.says("orders", "ERROR", "order #n not saved", 4, 70)
    story.says("gateway", "ERROR", "POST /orders gave 500", 4, 70)
    others = "orders gateway"

    def naive(one: Line) -> str:
        record = {"asctime": str(one.time), "levelname": one.level, "service": one.who}
        return json.dumps({**record, "message": one.text})

    def indian(one: Line) -> str:
        return f"{one.time} IST {one.level} {one.who}: {one.text}"

    clear = story.log(plain, "db")
    later = story.log(plain, others, 2)
    files = {
        "clock_of_another_zone": {"db.log": clear, "app.log": later},
        "clock_of_json_without_zone": {
            "db.log": story.log(zulu, "db"),
            "app.log": story.log(naive, others, 2),
        },
        "clock_of_an_unknown_zone": {
            "db.log": story.log(indian, "db", 5.5),
            "app.log": story.log(plain, others),
        },
    }
    note = "the store failed first, in truth; its file is hours off, so it seems calm"
    return [Case(name, some, {"db"}, note) for name, some in files.items()]


def counted_wrong() -> list[Case]:
    """Lines are not how often something happened, nor how bad it is."""
    cases = []

    def add(name: str, story: Story, root: str, note: str, form: Format = plain) -> None:
        cases.append(Case(name, {"app.log": story.log(form)}, {root}, note))

    broken = "could not fsync segment #n: Input/output error"
    story = (
        shop()
        .once(40, "db", "ERROR", broken)
        .says("orders", "ERROR", "order #n is in doubt", 2, 40)
    )
    for minute in range(41, 60):
        story.once(minute, "db", "", f"message repeated 214 times: [ ERROR: {broken}]")
    add("syslog_folds_repeats", story, "db", "4,066 lines, folded to 20 by rsyslog", syslog)
    story = (
        shop()
        .once(40, "db", "ERROR", broken)
        .says("orders", "ERROR", "order #n is in doubt", 2, 40)
    )
    story.once(40.1, "db", "WARN", "suppressed 51210 messages like the last one")
    add("rate_limited_root", story, "db", "the log itself says that 51,210 lines are missing")
    story = shop().says("db", "ERROR", f"{broken} (1 of 1000 kept)", 200, 40)
    story.says("orders", "ERROR", "order #n is in doubt", 2, 40)
    add("sampled_root", story, "db", "1 line of 1,000 was kept")
    story = Story({**SHOP, "cron": ["job #n done"]}, 120)
    story.says("db", "ERROR", "page #n has a wrong checksum", 20, 60)
    story.says("orders", "ERROR", "db said: page #n has a wrong checksum", 20, 60)
    story.says("cron", "ERROR", "cleanup of tmp/#n failed: permission denied", 0.2, 75, 77)
    add("cron_burst_in_an_outage", story, "db", "a burst of two minutes hides an outage of an hour")
    story = Story(SHOP, 120).says("db", "ERROR", "page #n has a wrong checksum", 30, 50)
    story.says("orders", "ERROR", "db answered 500 for order #n", 30, 50)
    story.says("users", "ERROR", "avatar #n not stored: name is too long", 1, 90, 96)
    add("second_trouble_is_louder", story, "db", "two troubles, and the second is told alone")
    story = shop().says("db", "INFO", "I/O error on segment #n, reading again", 4, 40)
    story.says("orders", "ERROR", ORDER_LOST, 4, 40).says("gateway", "ERROR", GATEWAY_500, 4, 40)
    add("root_speaks_at_info", story, "db", "new lines of INFO with words of trouble are not seen")
    return cases


def blamed_for_others() -> list[Case]:
    """The one that breaks is not the one that did it; a line in the log says who did."""
    cases = []

    def add(name: str, story: Story, root: str, note: str, form: Format = plain) -> None:
        cases.append(Case(name, {"app.log": story.log(form)}, {root}, note))

    story = shop(checkout=["cart #n checked out"]).once(
        39.9, "checkout", "INFO", "starting checkout 4.12.0"
    )
    wrong = 'Cannot invoke "Address.zip()" because "address" is null, client=checkout/4.12.0'
    story.says("orders", "ERROR", f"java.lang.NullPointerException: {wrong}", 4, 40)
    story.says("checkout", "ERROR", "POST http://orders:8080/orders answered 500", 4, 40)
    add("new_caller_sends_nulls", story, "checkout", "a release six seconds before; client= tells")
    story = shop(reports=["report #n ready"]).says(
        "reports", "WARN", "#n connections open, none given back", 30, 38
    )
    story.says("db", "FATAL", "sorry, too many clients already", 2, 41)
    for one in ("orders", "payments", "users"):
        story.says(
            one, "ERROR", "connect to db:5432: FATAL: sorry, too many clients already", 4, 41
        )
    add(
        "connections_leaked_by_a_neighbour",
        story,
        "reports",
        "the store is full because of another",
    )
    story = shop(
        analytics=["batch #n loaded"],
        **{"redis-server": ["#n changes in 60 seconds. Saving...", "DB saved on disk"]},
    )
    story.says("analytics", "WARN", "cache grows: #n MB, no limit set", 20, 36)
    for step in range(6):
        story.once(40 + 2 * step, "kernel", "", "analytics invoked oom-killer: order=0")
        story.once(
            40.01 + 2 * step,
            "kernel",
            "",
            "Out of memory: Killed process #n (redis-server), anon-rss:402kB",
        )
    story.says("orders", "ERROR", "dial tcp redis-server:6379: connect: connection refused", 4, 40)
    story.says("gateway", "ERROR", "GET /orders: orders answered 500", 4, 40)
    add("killed_for_the_memory_of_another", story, "analytics", "it invoked the killer", syslog)
    story = shop(haproxy=["be_orders/s1 0/0/1/#d 200 #n"])
    story.once(39.9, "haproxy", "WARN", "reloading: maxconn 40000 -> 40")
    down = [
        "Server orders/s1 is DOWN, reason: Layer4 timeout",
        "Server payments/s1 is DOWN, reason: Layer4 timeout",
    ]
    story.says("haproxy", "ERROR", down, 6, 40)
    story.says("orders", "ERROR", "health check of #ip aborted half way", 5, 40)
    add("balancer_sees_all_down", story, "haproxy", "who says that all others are down is the one")
    story = shop(**{"istio-proxy": ["outbound|8080||payments GET 200 #d"]})
    story.says("istio-proxy", "WARN", "certificate rotation is late", 20, 39.9)
    story.says(
        "orders", "ERROR", "payments answered 503: TLS error: CERTIFICATE_VERIFY_FAILED", 4, 40
    )
    story.says("payments", "ERROR", "charge #n was not asked for, order is stale", 9, 40)
    add("sidecar", story, "istio-proxy", "the proxy broke the calls to a service that is well")
    story = shop().says(
        "db", "LOG", "process #n still waiting for AccessExclusiveLock after 1000 ms", 4, 39
    )
    story.says("orders", "WARN", "long garbage collection: heap #d% after #n ms", 5, 40)
    story.says("orders", "ERROR", "OutOfMemoryError: Java heap space (#n requests wait)", 10, 42)
    add("heap_full_of_waiting_requests", story, "db", "a flood of new LOG lines, a minute earlier")
    story = shop(flags=["poll of #d clients"]).once(
        39.9, "flags", "INFO", "flag new-pricing switched on"
    )
    story.says("payments", "ERROR", "panic: assignment to entry in nil map (new-pricing)", 4, 40)
    add(
        "flag_switched_on",
        story,
        "flags",
        "the only other new line, six seconds before",
        structured,
    )
    return cases


def missing_lines() -> list[Case]:
    """The file of the root ends before the trouble: copied half, or rotated."""
    story = shop().says("db", "ERROR", "I/O error on segment #n", 4, 40).cut("db", 39)
    story.says("orders", "ERROR", ORDER_LOST, 4, 40).says("gateway", "ERROR", GATEWAY_500, 4, 40)
    files = {f"{one}.log": story.log(plain, one) for one in ("db", "orders", "gateway")}
    return [Case("file_of_root_ends_early", files, {"db"}, "its last line is a minute before")]


def wrong_times() -> list[Case]:
    """The root is right, and since when is not."""
    story = shop().says("db", "ERROR", "could not write block #d: I/O error", 4, 40)
    story.says("gateway", "ERROR", "POST /orders: db answered 500", 4, 40)

    def case(name: str, form: str, note: str, start: datetime = START) -> Case:
        return Case(name, {"app.log": story.log(dated(form), start=start)}, {"db"}, note)

    several = Story(SHOP, 6 * 1440, every=300)
    several.says("db", "ERROR", "could not write block #d", 60, 4320, 4560)
    return [
        case("time_in_the_logs_clock", "%Y-%m-%dT%H:%M:%S+02:00", "09:40 there, told as 07:40"),
        case("day_month_year_of_two_digits", "%d/%m/%y %H:%M:%S", "told as 2013-10-26"),
        case("day_month_year", "%d/%m/%Y %H:%M:%S", "told as 10 May", datetime(2026, 10, 5, 9)),
        Case(
            "day_month_year_across_the_12th",
            {"app.log": several.log(dated("%d/%m/%Y %H:%M:%S"), start=datetime(2026, 10, 10))},
            {"db"},
            "since 2026-10-13 00:00; lines of the 12th become 10 December",
        ),
        case("china_standard_time", "%Y-%m-%d %H:%M:%S CST", "CST as -6 hours: told 14 hours late"),
    ]


def hostile() -> list[Case]:
    """No answer at all: `roots` is empty, and to come back soon without an exception is right."""
    calm = Story({"orders": SHOP["orders"]}).log(plain)
    dots = b" ".join(word + b"." * 60 for word in (b"disk", b"net", b"usb", b"gpu"))
    rule = b"-" * 1_000
    day = b"2026-10-13 09:09:00 "
    long = b"9" * 400
    names = Story({"orders": SHOP["orders"], "users": SHOP["users"]}, 10).log(plain)
    return [
        Case("dot_leaders", {"app.log": calm + day + dots + b"\n" + calm}, set(), "hangs"),
        Case(
            "words_and_rules",
            {"app.log": calm + day + b"x" + rule + b"y" + rule + b"z" + rule + b"\n" + calm},
            set(),
            "hangs",
        ),
        Case(
            "long_line_of_hyphens",
            {
                "app.log": names
                + day
                + b"INFO orders: sent to users "
                + b"a-" * 30_000
                + b"\n"
                + names
            },
            set(),
            "quadratic",
        ),
        Case(
            "time_of_400_digits",
            {"app.log": (b'{"time":' + long + b',"level":30,"msg":"x"}\n') * 300},
            set(),
            "OverflowError",
        ),
        Case(
            "level_of_400_digits",
            {"app.log": (b'{"time":"2026-10-13T09:00:00Z","level":%s,"msg":"x"}\n' % long) * 300},
            set(),
            "OverflowError",
        ),
    ]


CASES: list[Case] = [
    *named_in_passing(),
    *nobody_named(),
    *clocks(),
    *counted_wrong(),
    *blamed_for_others(),
    *missing_lines(),
    *wrong_times(),
    *hostile(),
]
