"""The seven actions: their arguments, and the check that rejects a bad one with a suggested fix."""

from itertools import product
from typing import NamedTuple, Self

from ..world.call_graph import RESERVED_NAME, TEAMS, CallGraph
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
ALL_SERVICES = RESERVED_NAME  # what `request_more_logs` takes besides a service
CHOICES = {"severity": SEVERITIES, "team": TEAMS, "remedy": REMEDIES}  # services are the topology's
QUOTED = 300  # characters of a line that an answer quotes


class Action(NamedTuple):
    """What an agent does in one step; `check_action` says whether it is valid."""

    type: str  # one of `ACTION_TYPES`
    args: tuple[str, ...] = ()  # in the order of `ACTION_ARGUMENTS[type]`
    confidence: float | None = None  # in the service it blames, or in ignoring, 0 to 1

    @classmethod
    def parse(cls, action_type: str, value: str = "", confidence: float | None = None) -> Self:
        """Return the action with that wire form, as in `parse("remediate", "restart:cart")`."""
        args = tuple(value.split(":", 1)) if action_type == "remediate" else (value,)
        return cls(action_type, args if value else (), confidence)

    @property
    def value(self) -> str:
        """The arguments in wire form, joined by a colon; empty if there are none."""
        return ":".join(self.args)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the action that `text` writes, as in `remediate:restart:cart` or `resolve`."""
        action_type, _, value = text.partition(":")
        return cls.parse(action_type, value)

    @property
    def text(self) -> str:
        """The type and the value, if any, joined by a colon: what `from_text` reads."""
        return ":".join((self.type, *self.args))


def quoted(value: object) -> str:
    """Quote a bad value for an error message: printable, and cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def visible(text: bytes | str, most: int = QUOTED) -> str:
    """Make others' text safe to print: on one line, escaped, cut at `most` characters."""
    if isinstance(text, bytes):
        text = text[: 4 * most].decode("utf-8", "backslashreplace")
    text = text.strip()
    cut = len(text) > most
    text = text[:most].replace("\t", " ")
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
        )
    return text + "..." if cut else text


def action_values(topology: CallGraph) -> dict[str, tuple[str, ...]]:
    """Map each action type to the values it can take on that topology; `("",)` if it takes none."""
    allowed = {}
    for name, arguments in ACTION_ARGUMENTS.items():
        choices = [CHOICES.get(argument, topology.names) for argument in arguments]
        allowed[name] = tuple(":".join(values) for values in product(*choices))
    allowed["request_more_logs"] += (ALL_SERVICES,)
    return allowed


def check_action(action: Action, topology: CallGraph) -> None:
    """Raise `ValueError`, with value, rule and choices, if it is invalid on that call graph."""
    action_type, args, _ = action
    names = ACTION_ARGUMENTS.get(action_type)
    if names is None:
        raise ValueError(
            f"unknown action type {quoted(action_type)}; choose one of {', '.join(ACTION_TYPES)}"
        )
    if len(args) != len(names):
        given = quoted(action.value)
        if action_type == "remediate":
            known = f"remedies are {', '.join(REMEDIES)}"
            raise ValueError(f"remediate takes 'remedy:service', got {given}; {known}")
        if not names:
            raise ValueError(f"{action_type} takes no value, got {given}; leave it empty")
        if args:
            raise ValueError(f"{action_type} takes one {names[0]}, got {quoted(args)}; give one")
        args = ("",)
    asks = action_type == "request_more_logs"
    for name, value in zip(names, args, strict=True):
        allowed = topology.position if name == "service" else CHOICES[name]
        if value not in allowed and not (asks and value == ALL_SERVICES):
            way_out = ", ".join(allowed) + (f", or {ALL_SERVICES}" if asks else "")
            raise ValueError(f"unknown {name} {quoted(value)}; choose one of {way_out}")
