"""What happened, by the words of a line of trouble: the table of `causes.toml`."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

MOST_KNOWN = 20_000  # texts whose causes are cached


class Cause(NamedTuple):
    """What a line says has happened."""

    name: str
    own: bool  # whether it happened to who speaks, rather than to whom the line is about
    vague: bool = False  # whether it tells only how things ended


_TABLE = tomllib.loads(Path(__file__).with_name("causes.toml").read_text("utf-8"))["causes"]
CAUSES = [
    (
        re.compile("(?i)" + "|".join(row[key] for key in ("pattern", "also") if key in row)),
        Cause(row["name"], row.get("own", True), row.get("vague", False)),
    )
    for row in _TABLE
]
# What has happened to who speaks, in small letters: it makes a line trouble that states no level.
# To look only where words begin is several times as fast.
_OWN = "|".join(row["pattern"] for row in _TABLE if row.get("own", True))
OWN = re.compile(f"(?<![a-z])(?:{_OWN})".encode())
NOTHING = Cause("", False)
UNRESOLVED = Cause("name not resolved", False)
UNREACHABLE = "network unreachable"


@lru_cache(MOST_KNOWN)
def cause_of(text: str) -> Cause:
    """Return the cause that a line of trouble tells; `NOTHING` if it tells none."""
    return next((cause for pattern, cause in CAUSES if pattern.search(text)), NOTHING)
