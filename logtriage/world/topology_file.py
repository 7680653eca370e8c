"""A custom call graph, read from YAML; docs/call-graphs.md describes the file.

    services:
      - {name: front, kind: edge, calls: [cart]}
      - {name: cart, kind: app, calls: [cart-db], publishes: [mails], session_cache: true}
      - {name: cart-db, kind: database}
      - {name: mails, kind: queue}

This module alone needs a YAML reader: the rest of the world is the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from .call_graph import UNKNOWN_KIND, CallGraph, Service
from .topology import Topology, callers_first

Graph = TypeVar("Graph", bound=CallGraph)

TEXT, NAMES, SWITCH = "text; put it in quotes", "a list of names", "true or false"
FIELDS = {
    **{"name": TEXT, "kind": TEXT, "calls": NAMES, "publishes": NAMES},
    **{"handles_logins": SWITCH, "session_cache": SWITCH},
}
EXPECTED = "expected a mapping with a list 'services', such as services: [{name: web, kind: edge}]"


def load_topology(path: str | Path) -> Topology:
    """Read a call graph that can be simulated; its services may stand in any order.

    Raises:
        ValueError: for a file that cannot be read, or describes no such graph; the message names
            the file, the value, the rule and a suggested fix.
    """
    return _load(path, lambda services: Topology(callers_first(services)))


def load_call_graph(path: str | Path) -> CallGraph:
    """Read the call graph of a cluster that is observed; `ValueError` as `load_topology`."""
    return _load(path, CallGraph, UNKNOWN_KIND)


def _load(path: str | Path, build: Callable[[tuple[Service, ...]], Graph], kind: str = "") -> Graph:
    """The graph of a file; `kind` is that of services without one, which is an error if empty."""
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
        if not isinstance(content, dict) or not isinstance(content.get("services"), list):
            raise ValueError(f"{EXPECTED}; got {_shown(content)}")
        if len(content) > 1:
            raise ValueError(f"services is the only field, got {_shown(content)}; leave the rest")
        return build(tuple(_service(entry, kind) for entry in content["services"]))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; name a YAML file that can be read") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not YAML in UTF-8: {reason}; {EXPECTED}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader keeps the last of two equal keys; this one refuses them."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        fields = super().construct_mapping(node, deep)
        if len(fields) < len(node.value):
            raise ValueError(f"a field of {_shown(fields)} stands twice; leave one out")
        return fields


def _service(entry: Any, kind: str) -> Service:
    if not isinstance(entry, dict):
        example = "{name: cart, kind: app}"
        raise ValueError(f"a service is a mapping, such as {example}; got {_shown(entry)}")
    fields = {"kind": kind, **entry} if kind else entry
    for field in ("name", "kind"):
        if field not in fields:
            raise ValueError(f"{_shown(entry)} lacks its {field}; add one")
    for field, value in fields.items():
        if field not in FIELDS:
            raise ValueError(
                f"unknown field {_shown(field)} of {_shown(entry)}; fields are {', '.join(FIELDS)}"
            )
        rule = FIELDS[field]
        names = value if rule == NAMES and isinstance(value, list) else [value]
        known = bool if rule == SWITCH else str
        if isinstance(value, list) != (rule == NAMES) or not all(
            isinstance(name, known) for name in names
        ):
            raise ValueError(
                f"{field} of {_shown(entry)} must be {rule}, got {', '.join(map(_shown, names))}"
            )
    lists = {field: tuple(value) for field, value in fields.items() if FIELDS[field] == NAMES}
    return Service(**{**fields, **lists})


def _shown(value: Any) -> str:
    """What stands in the file, as a message repeats it; of nested values, which may be huge, only
    the names.
    """
    if isinstance(value, dict):
        name = value.get("name", "")
        return f"service {name:.60}" if isinstance(name, str) and name else "a mapping"
    return "a list" if isinstance(value, list) else f"{value!r:.60}"
