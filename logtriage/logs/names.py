"""Names of services: how they are written, and whom a text names."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePath

from ..world.call_graph import RESERVED_NAME
from .lines import defused, visible

MOST_NAME = 60  # characters
MOST_SPELLED = 20_000  # spellings remembered
# What an orchestrator adds to a name: `web-7d9c5b7c9f-x2b4q`, `web.service`, and to the name of a
# file: `pod_namespace_container-<64 digits>`.
_POD = re.compile(r"-[a-f0-9]{6,10}-[a-z0-9]{5}$|-(?=[a-z]*\d)[bcdfghjklmnpqrstvwxz2456789]{5}$")
_NODE_FILE = re.compile(r"^([a-z0-9.-]+)_[a-z0-9-]+_[a-z0-9-]+-[0-9a-f]{64}$")
REPLICA = re.compile(r"[-_.]\d{1,3}$")
_HASH = re.compile(r"^(?=.*\d)[0-9a-f-]{8,}$|^\d+$")
# Of the name of a file: what says that it is a log, how it is packed, when it was turned over.
_LOG = re.compile(
    r"\.(?:log|txt|out|err|jsonl?|ndjson|csv|tsv|gz|bz2|xz)$|[._-]?\d{4}-?\d\d-?\d\d$|\.\d+$"
    r"|[._-](?:production|prod|staging|stdout|stderr|out|err)$"
)
# Names of files that say nothing of who speaks.
_NO_SERVICE = re.compile(
    r"(?i)^(?:logs?|app|application|all|out|output|export|messages?|syslog|console|dump|stdout|stderr"
    r"|data|access|error|combined|current|events?|journal|kern|incident|cluster|pods?|k8s|docker|compose)?$"
)


@lru_cache(MOST_SPELLED)
def service_name(raw: bytes | str) -> str:
    """The name of a service from what its records say: without the mark of a pod, safe to show, one
    word that a call graph takes. Models read it: no marker of a chat template stands in it.
    """
    text = visible(raw, 2 * MOST_NAME).strip("/.-")
    if "/" in text:  # a file, a stream or a pod by its path
        parts = [part for part in text.split("/") if not _HASH.match(part)]
        text = _LOG.sub("", parts[-1] if parts else text)
    text = text.removesuffix(".service")[:MOST_NAME]
    text = defused(_POD.sub("", re.sub(r"[\s:;<>]+", "_", text)))
    return text if text and text != RESERVED_NAME else f"{text}_"


def file_service(name: str) -> str:
    """The service whose log a file is, by its name; empty where the name says nothing."""
    path = PurePath(name)
    stem = path.name
    if stem in ("0.log", "current", "stdout", "stderr", "output.log") and path.parent.name:
        stem = path.parent.name  # /var/log/pods/<pod>/<container>/0.log, and the like
    while _LOG.search(stem):
        stem = _LOG.sub("", stem)
    node = _NODE_FILE.match(stem)
    stem = node[1] if node else stem
    return "" if _NO_SERVICE.match(stem) else service_name(stem.encode("utf-8", "replace"))


class Namer:
    """Finds which of some services a text names."""

    def __init__(self, names: Iterable[str]) -> None:
        # Of two names at one place, which begin alike, the longer; a name is whole words, and may
        # have a replica's mark.
        self._known = set(names)
        longest = "|".join(map(re.escape, sorted(self._known, key=len, reverse=True)))
        self._pattern = (
            re.compile(rf"(?<![\w-])(?:{longest})(?:[-_]\d+)?(?![A-Za-z0-9])(?!-[A-Za-z])")
            if longest
            else None
        )

    def all(self, text: str) -> Sequence[str]:
        """The services that it names, each once, in order."""
        found = self._pattern.findall(text) if self._pattern else []
        names = (one if one in self._known else REPLICA.sub("", one) for one in found)
        return list(dict.fromkeys(names))

    def first(self, text: str) -> str:
        """The service that it names first; empty for none."""
        return next(iter(self.all(text)), "")
