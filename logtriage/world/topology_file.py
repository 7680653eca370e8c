"""A call graph of one's own, read from YAML. Name and kind of each service, the rest as needed:

    services:
      - {name: front, kind: edge, calls: [cart]}
      - {name: cart, kind: app, calls: [cart-db], publishes: [mails], session_cache: true}
      - {name: cart-db, kind: database}
      - {name: mails, kind: queue}

| field | meaning |
|---|---|
| `name` | a lower-case letter, then letters, digits, hyphens; at most 40 characters, not `all` |
| `kind` | `edge` (users enter here), `app`, `database` or `queue` |
| `calls` | services it waits for |
| `publishes` | services it sends messages to, and does not wait for; of any kind, as `calls` |
| `handles_logins` | whether users log in here, so that credential stuffing can strike; apps only |
| `session_cache` | whether it keeps sessions, so that they can be stolen; apps only |

To be simulated (`load_topology`): at most 30 services, in any order, at least one edge, no circle
of calls. A larger system is read as the part that users wait for. To read a log by
(`load_call_graph`): up to 200, with any printable names, in circles too; `kind` may be left out
where it is not known.

Only who brings a file needs this module, and a YAML reader: the world itself is the
standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from .call_graph import UNKNOWN_KIND, CallGraph, Service, TopologyError
from .topology import Topology, callers_first, check_size

LISTS = ("calls", "publishes")
SWITCHES = ("handles_logins", "session_cache")
FIELDS = ("name", "kind", *LISTS, *SWITCHES)


class _Problem(Exception):
    """What is wrong, at a node of the file."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


def load_topology(path: str | Path) -> Topology:
    """Read a topology from YAML (format in the module docstring).

    Raises:
        ValueError: for a file that is not there, cannot be read, or describes no call graph that
            can be simulated. The message names the file, the line, what is wrong and the way out.
    """
    return _load(path, _simulated)


def load_call_graph(path: str | Path) -> CallGraph:
    """Read the call graph of a cluster that is observed, from the same YAML with fewer rules.

    Raises:
        ValueError: as `load_topology`.
    """
    return _load(path, CallGraph, UNKNOWN_KIND)


def _simulated(services: tuple[Service, ...]) -> Topology:
    check_size(len(services))
    return Topology(callers_first(services))


Graph = TypeVar("Graph", bound=CallGraph)


def _load(path: str | Path, build: Callable[[tuple[Service, ...]], Graph], kind: str = "") -> Graph:
    """The graph that `build` makes of a file's services; `kind` is that of those that tell none,
    and without it they must.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; name a YAML file with a call graph") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; name a YAML file that can be read") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8; save it as one") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise ValueError(
            f"{path}{line}: not YAML: {error.problem}; is a bracket, a brace or a quote open on "
            f"the line above? {_EXPECTED}"
        ) from None
    except yaml.reader.ReaderError as error:
        line = f", line {text.count(chr(10), 0, error.position) + 1}"
        raise ValueError(f"{path}{line}: not YAML: {error.reason}; {_EXPECTED}") from None
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply; {_EXPECTED}") from None

    # A service, a service and its callee, or all of them, to where in the file it stands.
    lines: dict[tuple[str, ...], int] = {(): 1}
    try:
        nodes = _service_nodes(root, lines)
        return build(tuple(_read_service(node, lines, kind) for node in nodes))
    except _Problem as problem:
        raise ValueError(f"{path}, line {problem.line}: {problem}") from None
    except TopologyError as error:
        raise ValueError(f"{path}, line {lines[error.at]}: {error}") from None


_EXPECTED = "expected a mapping with a list 'services', such as services: [{name: web, kind: edge}]"


def _service_nodes(root: Node | None, lines: dict[tuple[str, ...], int]) -> list[Node]:
    """The entries of the list `services`, the only field of the file."""
    if root is None:
        raise TopologyError(f"the file is empty; {_EXPECTED}")
    nodes = _fields(root, ("services",), _EXPECTED).get("services")
    if not isinstance(nodes, SequenceNode):
        raise _Problem(_EXPECTED, nodes or root)
    lines[()] = nodes.start_mark.line + 1
    return list(nodes.value)


def _read_service(node: Node, lines: dict[tuple[str, ...], int], kind: str) -> Service:
    """One entry as a `Service`; where it and its callees stand goes to `lines`."""
    given = _fields(node, FIELDS, "a service is a mapping, such as {name: cart, kind: app}")
    for field in ("name",) if kind else ("name", "kind"):
        if field not in given:
            raise _Problem(f"a service lacks its {field}; add one", node)
    values: dict[str, Any] = {"kind": kind}
    values |= {key: _text(given[key], key) for key in ("name", "kind") if key in given}
    name = values["name"]
    lines[(name,)] = node.start_mark.line + 1  # of two with one name, the second is the mistake
    for key in LISTS:
        if key in given:
            values[key] = tuple(_names(given[key], key, name, lines))
    for key in SWITCHES:
        if key in given:
            values[key] = _switch(given[key], key)
    return Service(**values)


def _fields(node: Node, known: tuple[str, ...], expected: str) -> dict[str, Node]:
    """A mapping of known fields, none of them twice."""
    if not isinstance(node, MappingNode):
        raise _Problem(f"{expected}; got {_shown(node)}", node)
    fields: dict[str, Node] = {}
    for key, value in node.value:
        if key.value not in known:
            raise _Problem(f"unknown field {_shown(key)}; fields are {', '.join(known)}", key)
        if key.value in fields:
            raise _Problem(f"field {key.value} stands twice; leave one out", key)
        fields[key.value] = value
    return fields


def _text(node: Node, field: str) -> str:
    if node.tag != "tag:yaml.org,2002:str":
        raise _Problem(f"{field} must be text, got {_shown(node)}; put text in quotes", node)
    return str(node.value)


def _names(node: Node, field: str, service: str, lines: dict[tuple[str, ...], int]) -> list[str]:
    if not isinstance(node, SequenceNode):
        raise _Problem(
            f"{field} must be a list of service names, got {_shown(node)}; "
            f"write {field}: [one, another]",
            node,
        )
    names = []
    for one in node.value:
        names.append(_text(one, f"a name in {field}"))
        lines[(service, names[-1])] = one.start_mark.line + 1
    return names


def _switch(node: Node, field: str) -> bool:
    if node.tag != "tag:yaml.org,2002:bool":
        raise _Problem(
            f"{field} must be true or false, got {_shown(node)}; write one of them", node
        )
    return bool(node.value.lower() in ("true", "yes", "on"))


def _shown(node: Node) -> str:
    """What stands in the file, as a message repeats it."""
    if isinstance(node, ScalarNode):
        return repr(node.value) if len(node.value) <= 60 else repr(node.value[:57] + "...")
    return "a mapping" if isinstance(node, MappingNode) else "a sequence"
