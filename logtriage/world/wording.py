"""What the software in the cluster prints: Envoy, Spring Boot with HikariCP, PostgreSQL, RabbitMQ.

The lines stand in `wording.txt`, in sections `[kind ... kind-of-service]`. The last line of every
section is held out: it occurs only in the split `unseen_wording`. `wording_varied.txt` has more
words for every section, which no split prints: they are for training, where an incident asks for
them (`Incident.varied_wording`). Fields are filled from the simulator's state at the moment of
logging:

| field | meaning |
|---|---|
| `{latency}` | the service's p95 latency, ms |
| `{errors}` | share of its requests that fail, per cent |
| `{usage}` | connection pool in use, per cent |
| `{cpu}` | utilisation, per cent |
| `{rate}` | arriving requests per second |
| `{callee}` | the called service it speaks of |
| `{wait}` `{failures}` | that one's latency (ms) and errors (per cent) |
| `{n}` | a detail of no meaning, 1 to 9 |
"""

from __future__ import annotations

from importlib.resources import files

Key = tuple[
    str, ...
]  # (fault, kind) of proofs, (remedy, kind) of hints, ("fails" or "slow", kind), or (kind,)


def read_wording(text: str) -> dict[str, dict[Key, tuple[str, ...]]]:
    """Kind of line to key to templates, `LEVEL text` each; `#` starts a comment line."""
    books: dict[str, dict[Key, tuple[str, ...]]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            kind, *key = line.strip("[]").split()
            entry = tuple(key)
            books.setdefault(kind, {})[entry] = ()
        elif line and not line.startswith("#"):
            books[kind][entry] += (line,)
    return books


def _read_file(name: str) -> dict[str, dict[Key, tuple[str, ...]]]:
    return read_wording(files(__package__).joinpath(name).read_text(encoding="utf-8"))


BOOKS = _read_file("wording.txt")
VARIED_BOOKS = _read_file("wording_varied.txt")
