"""The seven actions: their names, what values each takes, and the check that answers a bad one with
the way out.
"""

from __future__ import annotations

from ..world.faults import REMEDIES
from ..world.tasks import SEVERITIES
from ..world.topology import TEAMS, Topology

ACTION_TYPES = (
    "classify_severity",
    "identify_root_cause",
    "escalate",
    "remediate",
    "request_more_logs",
    "resolve",
    "ignore",
)
ALL_SERVICES = "all"
MAX_SHOWN = 60  # characters of a bad value that an error repeats


def shown(value: object) -> str:
    """A bad value, quoted and cut so that an error stays readable."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def action_values(topology: Topology) -> dict[str, tuple[str, ...]]:
    """Action type to the values it can take on that topology; `("",)` for those without one."""
    services = topology.names
    return {
        "classify_severity": SEVERITIES,
        "identify_root_cause": services,
        "escalate": TEAMS,
        "remediate": tuple(f"{remedy}:{service}" for remedy in REMEDIES for service in services),
        "request_more_logs": (*services, ALL_SERVICES),
        "resolve": ("",),
        "ignore": ("",),
    }


def check_action(action_type: str, value: str, topology: Topology) -> None:
    """Raise `ValueError` naming the value, the rule and the allowed values, unless the action is
    valid here.
    """
    if action_type == "request_more_logs":
        if value != ALL_SERVICES and value not in topology.position:
            raise ValueError(
                f"unknown service {shown(value)}; choose one of {', '.join(topology.names)}, or all"
            )
    elif action_type == "identify_root_cause":
        if value not in topology.position:
            raise ValueError(
                f"unknown service {shown(value)}; choose one of {', '.join(topology.names)}"
            )
    elif action_type == "classify_severity":
        if value not in SEVERITIES:
            raise ValueError(
                f"unknown severity {shown(value)}; choose one of {', '.join(SEVERITIES)}"
            )
    elif action_type == "escalate":
        if value not in TEAMS:
            raise ValueError(f"unknown team {shown(value)}; choose one of {', '.join(TEAMS)}")
    elif action_type == "remediate":
        remedy, colon, service = value.partition(":")
        if not colon:
            raise ValueError(
                f"remediate takes 'remedy:service', got {shown(value)}; remedies are {', '.join(REMEDIES)}"
            )
        if remedy not in REMEDIES:
            raise ValueError(f"unknown remedy {shown(remedy)}; choose one of {', '.join(REMEDIES)}")
        if service not in topology.position:
            raise ValueError(
                f"unknown service {shown(service)}; choose one of {', '.join(topology.names)}"
            )
    elif action_type in ("resolve", "ignore"):
        if value:
            raise ValueError(f"{action_type} takes no value, got {shown(value)}; leave it empty")
    else:
        raise ValueError(
            f"unknown action type {shown(action_type)}; choose one of {', '.join(ACTION_TYPES)}"
        )
