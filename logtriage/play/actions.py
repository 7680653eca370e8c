"""The seven actions: what each takes, and the check that answers a bad one with the way out.

An action is a type and a value. A value holds the action's arguments, joined by a colon:
`("remediate", "restart:cart")`, `("escalate", "sre")`, `("resolve", "")`.
"""

from __future__ import annotations

from ..world.call_graph import TEAMS, CallGraph
from ..world.faults import REMEDIES
from ..world.tasks import SEVERITIES

# Action type to the names of its arguments. The tools, their schemas and the checks follow from it.
ACTION_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "classify_severity": ("severity",),
    "identify_root_cause": ("service",),
    "escalate": ("team",),
    "remediate": ("remedy", "service"),
    "request_more_logs": ("service",),
    "resolve": (),
    "ignore": (),
}
ACTION_TYPES = tuple(ACTION_ARGUMENTS)
ALL_SERVICES = "all"  # what `request_more_logs` takes besides a service
CHOICES = {"severity": SEVERITIES, "team": TEAMS, "remedy": REMEDIES}  # services are the topology's
MAX_SHOWN = 60  # characters of a bad value that an error repeats


def shown(value: object, most: int = MAX_SHOWN) -> str:
    """A bad value, quoted, printable, and cut at `most` characters, so that an error stays
    readable.
    """
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def action_values(topology: CallGraph) -> dict[str, tuple[str, ...]]:
    """Action type to the values it can take on that topology; `("",)` for those without one."""
    services = topology.names
    return {
        "classify_severity": SEVERITIES,
        "identify_root_cause": services,
        "escalate": TEAMS,
        "remediate": tuple(f"{remedy}:{name}" for remedy in REMEDIES for name in services),
        "request_more_logs": (*services, ALL_SERVICES),
        "resolve": ("",),
        "ignore": ("",),
    }


def check_action(action_type: str, value: str, topology: CallGraph) -> None:
    """Raise `ValueError` unless the action is valid on that topology.

    The message names the value, the rule, and what is allowed instead.
    """
    if action_type not in ACTION_ARGUMENTS:
        raise ValueError(
            f"unknown action type {shown(action_type)}; choose one of {', '.join(ACTION_TYPES)}"
        )
    arguments = ACTION_ARGUMENTS[action_type]
    if not arguments:
        if value:
            raise ValueError(f"{action_type} takes no value, got {shown(value)}; leave it empty")
    elif action_type == "remediate":
        remedy, colon, service = value.partition(":")
        if not colon:
            raise ValueError(
                f"remediate takes 'remedy:service', got {shown(value)}; "
                f"remedies are {', '.join(REMEDIES)}"
            )
        _check_argument("remedy", remedy, topology)
        _check_argument("service", service, topology)
    elif action_type != "request_more_logs":
        _check_argument(arguments[0], value, topology)
    elif value != ALL_SERVICES:
        _check_argument("service", value, topology, f", or {ALL_SERVICES}")


def _check_argument(argument: str, value: str, topology: CallGraph, besides: str = "") -> None:
    # `position` is a dictionary: services are looked up without a walk over 30 names.
    if argument == "service":
        known, choices = value in topology.position, topology.names
    else:
        choices = CHOICES[argument]
        known = value in choices
    if not known:
        raise ValueError(
            f"unknown {argument} {shown(value)}; choose one of {', '.join(choices)}{besides}"
        )
