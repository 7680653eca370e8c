"""One incident of a small shop, told as log entries that any format can write down.

A customer's request runs gateway -> orders -> orders-db; the gateway calls catalog and payments
as well. After a quiet time a lock in orders-db blocks its writers, and orders and then the
gateway suffer from it. Catalog and payments stay well.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2024, 5, 14, 9, 3, 11, tzinfo=UTC)
QUIET = timedelta(minutes=45)
TROUBLE = timedelta(minutes=10)
ROOT = "orders-db"
SERVICES = ("gateway", "orders", "orders-db", "catalog", "payments")


@dataclass(frozen=True)
class Entry:
    """One log entry; a text with line breaks is a message with its stack trace."""

    at: datetime
    service: str
    level: str
    text: str


# (how often, service, text), all INFO
USUAL = [
    (9, "gateway", "GET /api/orders/{order} 200 {ms}ms upstream=orders request_id={hex}"),
    (6, "gateway", "POST /api/orders 201 {ms}ms upstream=orders request_id={hex}"),
    (9, "gateway", "GET /api/products/{sku} 200 {ms}ms upstream=catalog request_id={hex}"),
    (5, "gateway", "POST /api/payments 202 {ms}ms upstream=payments request_id={hex}"),
    (2, "gateway", "GET /api/orders/{order} 404 {ms}ms upstream=orders request_id={hex}"),
    (1, "gateway", "session {hex} renewed for customer {customer}"),
    (6, "orders", "order {order} accepted for customer {customer}, {n} items, total {price}"),
    (4, "orders", "order {order} moved from PAID to PACKED"),
    (3, "orders", "fetched {n} open orders for customer {customer} in {ms} ms"),
    (2, "orders", "published order.created for {order} to topic orders.v1 offset {offset}"),
    (1, "orders", "pool stats: active={n} idle={m} waiting=0"),
    (4, "orders-db", "connection authorized: user=orders_app database=shop port={port}"),
    (
        3,
        "orders-db",
        "duration: {ms}.{micros} ms  execute S_{n}: SELECT * FROM orders WHERE id = $1",
    ),
    (
        2,
        "orders-db",
        "disconnection: session time: 0:0{m}:{n}.{micros} user=orders_app port={port}",
    ),
    (1, "orders-db", "checkpoint complete: wrote {offset} buffers; write={n}.{micros} s"),
    (1, "orders-db", "automatic vacuum of table shop.public.order_items: index scans: 1"),
    (5, "catalog", "served product {sku} from cache in {n} ms"),
    (3, "catalog", "search q=shoes returned {offset} hits in {ms} ms"),
    (1, "catalog", "price list reloaded, {offset} products"),
    (4, "payments", "authorized {price} EUR for order {order} auth={hex}"),
    (2, "payments", "captured payment {hex} for order {order}"),
    (1, "payments", "settlement batch {n} written, {offset} records"),
]

# (service, level, text): each comes now and then in the quiet time, and now and then in the trouble
NOW_AND_THEN = [
    ("gateway", "WARN", "client closed connection before the answer, request_id={hex} status=499"),
    ("gateway", "WARN", "rate limit reached for {ip}, rejecting with 429"),
    ("gateway", "ERROR", "TLS handshake error from {ip}:{port}: EOF"),
    ("orders", "WARN", "order {order} has no phone number, skipping SMS notice"),
    ("orders", "ERROR", "cannot parse coupon code 'SPRING{n}': unknown prefix"),
    ("orders-db", "WARN", "there is no transaction in progress"),
    ("orders-db", "ERROR", 'duplicate key value violates unique constraint "orders_ref_key"'),
    ("catalog", "WARN", "image for {sku} missing, serving placeholder"),
    ("catalog", "ERROR", "could not read facet index segment {n}, rebuilding"),
    ("payments", "WARN", "card declined for order {order}: insufficient_funds"),
    ("payments", "ERROR", "provider answered 503 for auth {hex}, second attempt succeeded"),
]

# (seconds after the beginning, service, level, text)
OPENING = [
    (0, "orders-db", "INFO", "statement: ALTER TABLE orders ADD COLUMN note text, process {pid}"),
    (2, "orders-db", "WARN", "process {pid} still waiting for RowExclusiveLock after 1000 ms"),
    (5, "orders-db", "ERROR", "canceling statement due to lock timeout, relation orders"),
    (7, "orders-db", "ERROR", "deadlock detected: process {pid} waits for transaction {offset}"),
    (11, "orders", "WARN", "no answer from orders-db yet, retry 1 of 5 in {ms} ms"),
    (19, "orders", "WARN", "order {order} not saved, read timed out, will retry"),
    (31, "orders", "ERROR", "query on orders-db timed out after {slow} ms, order {order}"),
    (33, "gateway", "ERROR", "POST /api/orders 504 {slow}ms upstream=orders request_id={hex}"),
]

# (how many, seconds after the beginning, service, level, text)
SUFFERING = [
    (22, 8, "orders-db", "ERROR", "canceling statement due to lock timeout, relation orders"),
    (
        14,
        9,
        "orders-db",
        "ERROR",
        "deadlock detected: process {pid} waits for ShareLock on transaction {offset}",
    ),
    (
        16,
        4,
        "orders-db",
        "WARN",
        "process {pid} still waiting for RowExclusiveLock on relation 16402 after {offset} ms",
    ),
    (18, 70, "orders-db", "FATAL", "sorry, too many clients already"),
    (
        6,
        90,
        "orders-db",
        "FATAL",
        "remaining connection slots are reserved for superuser connections",
    ),
    (14, 32, "orders", "ERROR", "query on orders-db timed out after {slow} ms, order {order}"),
    (12, 14, "orders", "WARN", "no answer from orders-db yet, retry {m} of 5 in {ms} ms"),
    (8, 80, "orders", "ERROR", "could not open connection to orders-db:5432: too many clients"),
    (
        10,
        40,
        "orders",
        "ERROR",
        "HikariPool-1 - Connection is not available, timed out after 30000ms",
    ),
    (8, 20, "orders", "WARN", "order {order} not saved, read timed out, will retry"),
    (7, 30, "orders", "ERROR", "failed to save order {order}\n{trace}"),
    (24, 34, "gateway", "ERROR", "POST /api/orders 504 {slow}ms upstream=orders request_id={hex}"),
    (
        16,
        50,
        "gateway",
        "ERROR",
        "GET /api/orders/{order} 502 {ms}ms upstream=orders request_id={hex}",
    ),
    (8, 35, "gateway", "WARN", "upstream orders timed out, retrying request {hex} once"),
]

TRACE = """java.net.SocketTimeoutException: Read timed out
\tat java.base/sun.nio.ch.NioSocketImpl.timedRead(NioSocketImpl.java:288)
\tat com.shop.orders.store.OrderStore.save(OrderStore.java:118)
\tat com.shop.orders.web.OrderController.create(OrderController.java:{n})
Caused by: java.io.IOException: An I/O error occurred while sending to the backend.
\tat com.shop.orders.store.Connections.execute(Connections.java:64)
\t... 41 more"""


def fill(text: str, rng: Random) -> str:
    """Put fresh numbers and ids into a text's gaps."""
    values = {
        "order": rng.randint(480000, 499999),
        "customer": rng.randint(1000, 99999),
        "sku": f"SKU-{rng.randint(100, 9999)}",
        "hex": f"{rng.getrandbits(48):012x}",
        "ip": f"203.0.113.{rng.randint(2, 250)}",
        "port": rng.randint(32768, 60999),
        "pid": rng.randint(2100, 9800),
        "ms": rng.randint(3, 180),
        "slow": rng.randint(30000, 30040),
        "n": rng.randint(10, 59),
        "m": rng.randint(1, 5),
        "offset": rng.randint(1000, 90000),
        "micros": f"{rng.randint(0, 999):03d}",
        "price": f"{rng.randint(5, 400)}.{rng.randint(0, 99):02d}",
    }
    return text.replace("{trace}", TRACE).format(**values)


def usual(rng: Random, begin: datetime, length: timedelta, count: int) -> list[Entry]:
    """Draw INFO entries of every service, spread over a stretch of time."""
    weights = [row[0] for row in USUAL]
    entries = []
    for _, service, text in rng.choices(USUAL, weights, k=count):
        entries.append(Entry(begin + length * rng.random(), service, "INFO", fill(text, rng)))
    return entries


def now_and_then(rng: Random, begin: datetime, length: timedelta, times: int) -> list[Entry]:
    """Draw each of the warnings and errors that come on a good day too."""
    entries = []
    for service, level, text in NOW_AND_THEN * times:
        entries.append(Entry(begin + length * rng.random(), service, level, fill(text, rng)))
    return entries


def trouble(rng: Random, begin: datetime) -> list[Entry]:
    """Write the fault of orders-db and what its callers say about it."""
    entries = []
    for seconds, service, level, text in OPENING:
        at = begin + timedelta(seconds=seconds + rng.random())
        entries.append(Entry(at, service, level, fill(text, rng)))
    for count, delay, service, level, text in SUFFERING:
        for _ in range(count):
            at = begin + timedelta(seconds=rng.uniform(delay, TROUBLE.total_seconds()))
            entries.append(Entry(at, service, level, fill(text, rng)))
    return entries


def healthy(entries: list[Entry]) -> list[Entry]:
    """Keep the entries that tell of no finished work of orders."""
    return [e for e in entries if e.service != "orders" and "upstream=orders" not in e.text]


def incident(seed: int = 7) -> list[Entry]:
    """Tell the whole incident in the order of time."""
    rng = Random(seed)
    begin = START + QUIET
    entries = usual(rng, START, QUIET, 480) + now_and_then(rng, START, QUIET, 2)
    entries += trouble(rng, begin) + healthy(usual(rng, begin, TROUBLE, 110))
    entries += now_and_then(rng, begin, TROUBLE, 1)
    return sorted(entries, key=lambda entry: entry.at)
