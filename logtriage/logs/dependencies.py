"""Whom a line of trouble names: a dependency that a client could not reach, or, in a line of the
platform, the process or pod that died.
"""

import re
from collections.abc import Collection

from .names import REPLICA, service_name

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
