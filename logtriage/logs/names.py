"""Which service a record is of, and whom a text names."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from ..world.call_graph import RESERVED_NAME
from .levels import stated_level
from .lines import defused, visible

MOST_NAME = 60  # characters
# What an orchestrator adds to a name: `web-7d9c5b7c9f-x2b4q`, `web-0`, `web.service`,
# `pod_namespace_container-<64 digits>`, `web_1`.
_REPLICA = re.compile(
    r"-[a-f0-9]{6,10}-[a-z0-9]{5}$|-(?=[a-z]*\d)[bcdfghjklmnpqrstvwxz2456789]{5}$|[-_]\d{1,3}$"
)
_NODE_FILE = re.compile(r"^([a-z0-9.-]+)_[a-z0-9-]+_[a-z0-9-]+-[0-9a-f]{64}$")
# Of the name of a file: what says that it is a log, and when it was turned over.
_LOG = re.compile(r"\.(?:log|txt|out|err|jsonl?|ndjson|export)$|[._-]?\d{4}-?\d\d-?\d\d$|\.\d+$")
# After the level, a thread in brackets, or `[thread:Class@line]`; then a process id, and who
# speaks, before a sign.
_CLASS = re.compile(rb"[\s\-]*\[[^\]]{0,200}:(\w+)@\d+\]")
_LOGGER = re.compile(
    rb"[\s\-:|\])>}]*(?:\d+ +--- *)?(?:\d+ )?(?:\[[^\]]{0,200}\][\s\-:]*)*"
    rb"([A-Za-z_][\w.$/-]{0,99})(?=\s*:|\s+-\s|#\d|\(|\[)"
)
_PARTS = re.compile(
    rb"[\s\-:|\])>}]*([a-z][a-z0-9]*(?:-[a-z0-9]+)+|[a-z_]\w*(?:\.\w+){2,8})(?=[\s:]|$)"
)


def service_name(raw: bytes | str) -> str:
    """The name of a service from what its records say: without the mark of a replica, safe to show,
    one word that a call graph takes. Models read it: no marker of a chat template stands in it.
    """
    text = visible(raw, MOST_NAME).removesuffix(".service").strip("/")
    text = defused(_REPLICA.sub("", re.sub(r"[\s:;<>]+", "_", text)))
    return text if text and text != RESERVED_NAME else f"{text}_"


def file_service(name: str) -> str:
    """The service whose log a file is, by its name."""
    path = PurePath(name)
    stem = path.name
    if stem in ("0.log", "current", "stdout", "stderr", "output.log") and path.parent.name:
        stem = path.parent.name  # /var/log/pods/<pod>/<container>/0.log, and the like
    while _LOG.search(stem):
        stem = _LOG.sub("", stem)
    node = _NODE_FILE.match(stem)
    return service_name((node[1] if node else stem or "log").encode("utf-8", "replace"))


def logger_of(text: bytes) -> bytes | None:
    """Who speaks in a line without its time, by what stands after the level; None where nobody is
    named.
    """
    level = stated_level(text)
    rest = text[level[1] if level else 0 :][:400]
    found = _CLASS.match(rest) or _LOGGER.match(rest) or _PARTS.match(rest)
    return found[1].split(b"$")[0] if found else None


class Namer:
    """Finds which of some services a text names.

    Args:
        names: of the services.
    """

    def __init__(self, names: Iterable[str]) -> None:
        # Of two names at one place, which begin alike, the longer; a name is whole words, and may
        # have a replica's mark.
        longest = "|".join(map(re.escape, sorted(set(names), key=len, reverse=True)))
        self._pattern = (
            re.compile(rf"(?<![\w-])(?:{longest})(?![A-Za-z])(?!-[A-Za-z])") if longest else None
        )

    def first(self, text: str) -> str:
        """The service that it names first; empty for none."""
        found = self._pattern.search(text) if self._pattern else None
        return found[0] if found else ""

    def all(self, text: str) -> Sequence[str]:
        """The services that it names, each once, in order."""
        return list(dict.fromkeys(self._pattern.findall(text))) if self._pattern else []
