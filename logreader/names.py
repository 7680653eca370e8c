"""Names of services: how they are written, and which ones a line names or calls."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import PurePath

from logtriage.play.actions import visible
from logtriage.world.call_graph import RESERVED_NAME

from .lines import defused
from .words import WORDS, any_of, word_of

MOST_NAME = 60  # characters
MOST_SPELLED = 20_000  # spellings that are cached
POD, NODE_FILE, REPLICA, HASH = map(re.compile, WORDS["added"].values())
FILE_SUFFIX, NO_FILE = any_of(WORDS["files"]["marks"]), word_of(WORDS["files"]["nobody"])

CLIENTS = "|".join(client["pattern"] for client in WORDS["clients"])
HOST, PARTED = WORDS["names"].values()  # patterns of names
CALLED = re.compile(CLIENTS.replace("HOST", HOST).replace("PARTED", PARTED))
SOURCE_FILE, PUBLIC = re.compile(WORDS["hosts"]["files"]), re.compile(WORDS["hosts"]["public"])
NOBODY = word_of(WORDS["hosts"]["words"])
PLATFORM = re.compile(f"^(?:{WORDS['platform']['names']})$")
RESOLVER = re.compile(f"^(?:{WORDS['platform']['resolvers']})$")
DESCRIBED = [re.compile(WORDS["platform"]["described"])]  # whose group is the pod
EVENT = re.compile(WORDS["platform"]["event"])
TOLD = [*map(re.compile, WORDS["platform"]["told"])]
PROGRAMS = {row["name"]: re.compile(row["pattern"]) for row in WORDS["programs"]}
LIBRARIES = WORDS["libraries"]  # what they speak of, by their names
SUBJECTS = [*TOLD, *map(re.compile, WORDS["platform"]["subjects"])]


@lru_cache(MOST_SPELLED)
def service_name(raw: bytes | str) -> str:
    """Return a service's name, however records spell it: a word that is safe to show."""
    text = visible(raw, 2 * MOST_NAME).strip("/.-")
    if "/" in text:  # a file, a stream or a pod by its path
        parts = [part for part in text.split("/") if not HASH.match(part)]
        text = FILE_SUFFIX.sub("", parts[-1] if parts else text)
    text = text.removesuffix(".service")[:MOST_NAME]
    text = defused(POD.sub("", re.sub(r"[\s:;<>]+", "_", text)))
    return text if text and text != RESERVED_NAME else f"{text}_"


def file_service(name: str) -> str:
    """Return the service that a log file belongs to, by its name; empty if the name tells none."""
    path = PurePath(name)
    stem = path.name
    if stem in ("0.log", "current", "stdout", "stderr", "output.log") and path.parent.name:
        stem = path.parent.name  # /var/log/pods/<pod>/<container>/0.log, and the like
    while FILE_SUFFIX.search(stem):
        stem = FILE_SUFFIX.sub("", stem)
    node = NODE_FILE.match(stem)
    stem = node[1] if node else stem
    return "" if NO_FILE.match(stem) else service_name(stem.encode("utf-8", "replace"))


class Namer:
    """Finds which of the given services a text names."""

    def __init__(self, names: Iterable[str]) -> None:
        # Of two names that match at the same place, the longer one is taken. A name consists of
        # whole words, and a replica's number may follow.
        self._known = set(names)
        longest = "|".join(map(re.escape, sorted(self._known, key=len, reverse=True)))
        self._pattern = re.compile(
            rf"(?<![\w-])(?:{longest})(?:[-_]\d+)?(?![A-Za-z0-9])(?!-[A-Za-z])"
        )

    def all(self, text: str) -> Sequence[str]:
        """Return the services that a text names, each once, in order."""
        spelled = self._pattern.findall(text) if self._known else []
        names = (name if name in self._known else REPLICA.sub("", name) for name in spelled)
        return list(dict.fromkeys(names))

    def first(self, text: str) -> str:
        """Return the service that a text names first; empty if it names none."""
        return next(iter(self.all(text)), "")


def shared_prefix(names: Collection[str]) -> str:
    """Return what all names begin with, up to the end of a part, such as `shop-`; empty if there
    are fewer than three, or nothing is left of one.
    """
    same = takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False))
    prefix = re.sub(r"[^-_./]*$", "", "".join(signs[0] for signs in same))
    return prefix if len({*names}) > 2 and prefix not in names else ""


def targets(text: str, known: Collection[str] = ()) -> list[str]:
    """Return the services that a line calls, each once; a host may begin with a known name."""
    hosts = []
    for groups in CALLED.findall(text):
        host = next(filter(None, groups))
        if SOURCE_FILE.search(host) or NOBODY.match(host):
            continue
        first = re.split(r"[._]", host)[0]
        if first in known or ".svc" in host or host.count(".") > 2:
            host = first  # a name within a cluster
        hosts.append(LIBRARIES.get(host) or service_name(host))
    return list(dict.fromkeys(host for host in hosts if not PUBLIC.search(host)))


def subject(text: str, patterns: Sequence[re.Pattern[str]] = SUBJECTS) -> str:
    """Return the process, container or pod that a line of the platform is about; empty if none."""
    match = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return REPLICA.sub("", service_name(next(filter(None, match.groups())))) if match else ""


def program(text: str) -> str:
    """Return the program whose own lines look like this one; empty if none is known."""
    return next((name for name, form in PROGRAMS.items() if form.search(text)), "")
