"""Names of services: how they are written, and whom a text names: a service that is known, a
dependency that a client could not reach, or, in a line of the platform, what died.
"""

import re
from collections.abc import Collection, Iterable, Sequence
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


_HOST = r"[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z][A-Za-z0-9-]*)*"
_PARTED = r"[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)+"  # a name that is no ordinary word

# How clients name what they call: a pattern whose group is the host, and an example of a line.
FORMS = (
    # A URL or the address of a database, with or without a user.
    (rf"://(?:[^@/\s]{{1,80}}@)?\(?({_HOST})", "GET http://orders-db:8080/x: deadline exceeded"),
    # An address with its port, or with what its name was resolved to.
    (rf"(?<![\w.@:-])({_PARTED}):\d{{2,5}}(?![\w.])", "dial tcp orders-db:5432: connect: refused"),
    (rf"(?<![\w./@:-])({_HOST}):\d{{4,5}}(?![\w.])", "Connection to postgres:5432 refused"),
    (rf"(?<![\w./@-])({_HOST})(?:/|\s?\()\d+\.\d+\.\d+\.\d+", "refused: orders-db/10.0.0.7:5432"),
    # A resolver that knows no such name.
    (
        rf"(?:ENOTFOUND|EAI_AGAIN|UnknownHostException:?|NXDOMAIN|\blookup|\bresolv\w+)"
        rf"(?: host(?:name)?| address)?:? [\"'`(]?({_HOST})(?![\w-])",
        "java.net.UnknownHostException: orders-db",
    ),
    # A field, and a name in quotes after a word for a server.
    (
        rf"\b(?:host(?:name|Name)?|server|addr(?:ess)?|peer|upstream|target|endpoint|broker|node"
        rf"|service|backend|authority|cluster|remote)"
        rf"(?: name| at| on)?(?:[=:]| is)? ?[\"'`\[({{]+(?:\w+://)?({_HOST})",
        'connection to server at "orders-db" (10.0.0.7), port 5432 failed',
    ),
    (rf"\b(?:host(?:name)?|upstream|target|broker|authority)=({_HOST})", "upstream=db-1 504"),
    # A name after words of calling.
    (
        rf"\b(?:calling|calls? to|connect(?:ing|ed)? to|connection (?:to|with)|requests? to"
        rf"|upstream|talking to|response from|reply from|reach|contact|dial(?:ing)?(?: tcp)?"
        rf"|waiting (?:for|on)|server on|host|cluster)"
        rf" [\"'`\[(]?({_PARTED})\b",
        "timed out waiting for orders-db",
    ),
    # A name before what a client or a server says of it.
    (
        r"(?<![\w./@-])([a-z][a-z0-9-]+): (?:[Cc]onnection (?:reset|refused|timed out|closed)"
        r"|i/o timeout|no route to host|(?:[Tt]emporary failure in )?[Nn]ame (?:resolution|or))",
        "no vectors for 630114d3: embedder: connection reset",
    ),
    (
        r"(?<![\w./@-])([a-z][a-z0-9-]+) (?:said|answer(?:s|ed)|returned|replied|responded)"
        r"(?: with)?(?: HTTP)?(?: status)? [45]\d\d\b",
        "blob said 503, attempt 85",
    ),
    # Load balancers.
    (rf"\bServer ({_HOST})/\S+ is DOWN", "Server orders-db/node1 is DOWN"),
)  # fmt: skip
_TARGETS = re.compile("|".join(pattern for pattern, _ in FORMS))
_FILE = re.compile(
    r"\.(?:java|py|go|[cm]?js|ts|rb|c|cc|cpp|h|rs|php|scala|kt|cs|exs?|erl|sql|xml)$"
)
# A name of the internet: a site, a manual or somebody else's service, but none of the cluster.
PUBLIC = re.compile(r"\.(?:com|org|net|io|me|dev|example|app|cloud|edu|gov|[a-z]{2})$")
# Words that stand where a host does, and are none.
NOBODY = re.compile(
    r"(?i)^(?:localhost|line|port|pid|https?|duration|took|latency|failed|connect|dial|connection"
    r"|open|read|write|socket|failure|unavailable|cause|reason|resolve|ping|tcp|udp|host|hostname"
    r"|address|closed|get|post|request|call|elapsed|size|bytes|count|code|status|id|error|exception"
    r"|null|none|the|a|this|that)$"
)

# Who speaks of others: what runs processes and pods.
PLATFORM = re.compile(
    r"^(?:kernel|kubelet|systemd(?:-\w+)?|containerd|dockerd?|k3s|crio|runc|supervisord|monit|init"
    r"|earlyoom|oomd|kube-[\w-]+|node-problem-detector|event-exporter|\w*-?controller)$"
)
SUBJECTS = re.compile(
    r"[Kk]illed process \d+,? \(([^)\s]{1,60})\)|\btask=([\w.-]{1,60})"
    r"|\bpod[=: ]\"?(?:[\w-]+/)?([a-z0-9.-]{2,60})|\bcontainer[=: ]\"?([a-z][\w.-]{1,60})"
    r"|\b([\w@-]{2,60})\.service\b|\bexited: ([\w.-]{2,60})|\bname=([\w.-]{2,60})"
    r"|\bprocess \d+ \(([\w.-]{2,60})\)|\b([a-z][\w.-]{1,60})\[\d+\]: segfault"
)


def targets(text: str, known: Collection[str] = ()) -> list[str]:
    """The services that a line of trouble names as called, each once, in order.

    Args:
        known: names of services: of a host's name, the part that is one of them is meant.
    """
    found = []
    for groups in _TARGETS.findall(text):
        host = next(filter(None, groups))
        if _FILE.search(host) or NOBODY.match(host):
            continue
        first = re.split(r"[._]", host)[0]
        if first in known or ".svc" in host or host.count(".") > 2:
            host = first  # a name within a cluster
        found.append(service_name(host))
    return list(dict.fromkeys(host for host in found if not PUBLIC.search(host)))


def subject(text: str) -> str:
    """The process, container or pod that a line of the platform is about; empty for none."""
    found = SUBJECTS.search(text)
    return REPLICA.sub("", service_name(next(filter(None, found.groups())))) if found else ""
