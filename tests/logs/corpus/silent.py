"""The log of a shop whose database `orders-db` stops to answer and prints nothing itself."""

import json
import random
import zlib
from datetime import UTC, datetime, timedelta

from loglines import Client, Scenario

START = datetime(2025, 3, 11, 9, 0, tzinfo=UTC)
QUIET, TROUBLE = 45 * 60, 10 * 60
ROOTS = {"orders-db"}
NOTE = "orders-db prints no lines; orders-db or not enough evidence is right, nobody else"

EVERYDAY = [
    ("gateway", 4.0, "GET /orders/{n} 200 in {ms}ms"),
    ("gateway", 8.0, "GET /products 200 in {ms}ms"),
    ("orders", 5.0, "loaded order {n} in {ms}ms"),
    ("catalog", 8.0, "listed 24 products in {ms}ms"),
    ("payments", 12.0, "captured payment {n} in {ms}ms"),
]


def entry(at: float, level: str, service: str, text: str) -> tuple[float, str]:
    """A line of the file, with the time it sorts by."""
    ts = (START + timedelta(seconds=at)).isoformat(timespec="milliseconds")
    line = {"ts": ts.replace("+00:00", "Z"), "level": level, "service": service, "msg": text}
    return at, json.dumps(line)


def everyday(rng: random.Random) -> list[tuple[float, str]]:
    """What the services print when they do well; /orders stops doing well in the trouble."""
    lines = []
    for service, every, text in EVERYDAY:
        hurt = service == "orders" or "/orders" in text
        end = QUIET if hurt else QUIET + TROUBLE
        at = every * rng.random()
        while at < end:
            said = text.format(n=rng.randrange(1000, 9999), ms=rng.randrange(4, 60))
            lines.append(entry(at, "INFO", service, said))
            at += every * rng.uniform(0.5, 1.5)
    return lines


def trouble(client: Client, rng: random.Random) -> list[tuple[float, str]]:
    """Each request fails: orders prints the client's message, then gateway prints a 502."""
    lines = []
    at = QUIET + 2.0
    while at < QUIET + TROUBLE:
        order = rng.randrange(1000, 9999)
        wrapped = rng.randrange(3) == 0
        said = f"failed to load order {order}: {client.text}" if wrapped else client.text
        lines.append(entry(at, "ERROR", "orders", said))
        refused = f"GET /orders/{order} 502 upstream orders answered 500"
        lines.append(entry(at + 0.02, "ERROR", "gateway", refused))
        at += 3.0 * rng.uniform(0.5, 1.5)
    return lines


def log(client: Client) -> bytes:
    """The whole log as JSON lines."""
    rng = random.Random(zlib.crc32(client.name.encode()))
    lines = sorted(everyday(rng) + trouble(client, rng))
    return "".join(line + "\n" for _, line in lines).encode()


def scenario(client: Client) -> Scenario:
    """The log as a case of its own."""
    return Scenario(f"silent-{client.name}", {"shop.jsonl": log(client)}, ROOTS, NOTE)
