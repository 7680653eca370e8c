"""The log of a made-up shop, as rows that a test may change: web calls cart, which calls cart-db,
which fails in the last ten minutes of an hour.
"""

from datetime import UTC, datetime

from logreader.log import Log, read_text

START = int(datetime(2026, 11, 22, 3, 0, 0, tzinfo=UTC).timestamp())
ONSET, END = 3000, 3600  # seconds
USUAL = {
    "cart": "basket {n} is shown",
    "cart-db": "checkpoint {n} complete",
    "mail": "{n} letters sent",
    "web": "GET /item/{n} in 12 ms",
}


def trouble(service, text, level="ERROR", start=ONSET, end=END, step=5):
    """(second, level, service, text) again and again; `{n}` in a text is another number each."""
    seconds = range(start, end, step)
    return [(second, level, service, text.replace("{n}", str(second))) for second in seconds]


def calm(services=tuple(USUAL), start=0, end=END, step=10):
    """What services print on a good day."""
    usual = [(service, USUAL.get(service, "{n} done")) for service in services]
    return [
        row for service, text in usual for row in trouble(service, text, "INFO", start, end, step)
    ]


CORRUPT = "page {n} of the index of items is corrupt"
OURS = trouble("cart-db", CORRUPT)
COMPLAINTS = trouble("cart", "cart-db is unavailable for basket {n}")
COMPLAINTS += trouble("web", "cart is unavailable for item {n}")
ROWS = calm() + OURS + COMPLAINTS


def written(rows, clock="%Y-%m-%d %H:%M:%S") -> str:
    """Rows as lines of text, in order of time; an empty `clock` leaves times out."""
    return "".join(
        f"{datetime.fromtimestamp(START + second, UTC):{clock}} {level} {service}: {text}\n"
        if clock
        else f"{level} {service}: {text}\n"
        for second, level, service, text in sorted(rows)
    )


def log_of(rows, services=()) -> Log:
    """The log that rows are."""
    return read_text(written(rows), services)


def read_in_parts(monkeypatch, size):
    """Have logs read by so many bytes at once, and no larger object be held."""
    monkeypatch.setattr("logreader.log.CHUNK", size)
    for name in ("lines.CHUNK", "log.SAMPLE_BYTES", "log.MOST_OBJECT", "objects.MOST_OBJECT"):
        monkeypatch.setattr(f"logreader.{name}", size)
