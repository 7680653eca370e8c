"""A custom call graph, read from YAML; docs/evaluating.md describes the file."""

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
EXPECTED = "expected a mapping with nothing but a list, such as services: [{name: web, kind: edge}]"


def load_topology(path: str | Path) -> Topology:
    """Read a call graph to simulate, services in any order; `ValueError` for an invalid one."""
    return _load(path, lambda services: Topology(callers_first(services)), {})


def load_call_graph(path: str | Path) -> CallGraph:
    """Read the call graph of an observed cluster; `ValueError` as in `load_topology`."""
    return _load(path, CallGraph, {"kind": UNKNOWN_KIND})


def _load(
    path: str | Path, build: Callable[[tuple[Service, ...]], Graph], defaults: dict[str, Any]
) -> Graph:
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), UniqueKeys)
        match content:
            case {"services": list(entries), **others} if not others:
                return build(tuple(_service(entry, defaults) for entry in entries))
        raise ValueError(f"{EXPECTED}; got {_shown(content)}")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; name a YAML file that can be read") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not YAML in UTF-8: {reason}; {EXPECTED}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class UniqueKeys(yaml.SafeLoader):
    """PyYAML's safe loader keeps the last of two equal keys; this one refuses them."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        fields = super().construct_mapping(node, deep)
        if len(fields) < len(node.value):
            raise ValueError(f"one of the fields {', '.join(map(repr, fields))} stands twice")
        return fields


def _service(entry: Any, defaults: dict[str, Any]) -> Service:
    if not isinstance(entry, dict):
        raise ValueError(f"a service is a mapping, as {{name: a, kind: app}}; got {_shown(entry)}")
    fields: dict[str, Any] = {"name": None, "kind": None, **defaults, **entry}
    for field, value in fields.items():
        where = f"{_shown(field)} of service {_shown(fields['name'])}"
        if field not in FIELDS:
            raise ValueError(f"unknown field {where}; fields are {', '.join(FIELDS)}")
        rule = FIELDS[field]
        if rule == NAMES:
            fits = isinstance(value, list) and all(isinstance(name, str) for name in value)
        else:
            fits = isinstance(value, str if rule == TEXT else bool)
        if not fits:
            raise ValueError(f"{where} must be {rule}; got {_shown(value)}")
        if rule == NAMES:
            fields[field] = tuple(value)
    return Service(**fields)


def _shown(value: Any) -> str:
    """A value from the file as a message shows it; only the type if nested: it may be huge."""
    return f"a {type(value).__name__}" if isinstance(value, dict | list) else f"{value!r:.60}"
