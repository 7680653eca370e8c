"""Policies by name, and what other packages add: tasks, policies, models, commands. It is found by
the entry points that they install, when it is first asked for.

| group | what an entry point loads |
|---|---|
| `logtriage.tasks` | a subclass of `RecordedEpisode`, under the name of its task |
| `logtriage.policies` | a function from a seed to a `Policy` |
| `logtriage.models` | `folder`: from a model's folder or hub name to a `Policy` |
| | `endpoint`: from an address and the name of a model there to a `Policy` |
| `logtriage.commands` | a `typer.Typer` that has the command |
| `logtriage.journals` | `trajectories`: opens a file that keeps the incidents of an MCP server |

Only installed metadata counts: a folder that happens to have a package's name adds nothing.
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from random import Random
from typing import Any, TypeAlias

from . import REPOSITORY
from .policies.novice import NovicePolicy
from .policies.policy import Policy
from .policies.scripted import (
    BestConstantPolicy,
    LoudestPolicy,
    OraclePolicy,
    RandomPolicy,
    TracePolicy,
)

TASKS, POLICIES, MODELS, COMMANDS, JOURNALS = (
    f"logtriage.{group}" for group in ("tasks", "policies", "models", "commands", "journals")
)
# All that this package knows of the two others of the repository.
MORE = (
    "more can be installed: pip install "
    f'"git+https://github.com/{REPOSITORY}#subdirectory=triagelab" (models, training, evaluation, '
    'real incidents), or the same with "#subdirectory=logreader" (triage of your own logs)'
)

# What the models in packages are called; the laboratory loads them.
MODEL_NAMES = ("agent", "base", "smollm2")

Policies: TypeAlias = dict[str, Callable[[int], Policy]]
# Maps a name to a function that makes the policy from a seed; only `random` and `novice` use it.
SCRIPTS: Policies = {
    "random": RandomPolicy,
    "constant": lambda seed: BestConstantPolicy(),
    "loudest": lambda seed: LoudestPolicy(),
    # "junior" is the name of its published random stream
    "novice": lambda seed: NovicePolicy(Random(f"junior/{seed}")),
    "trace": lambda seed: TracePolicy(),
    "oracle": lambda seed: OraclePolicy(),
}


def known_policies() -> Policies:
    """All policies by name; the oracle, which is the top of the scale, comes last."""
    # A policy of another package is imported only when it is made.
    added = {name: lambda seed, name=name: load(POLICIES, name)(seed) for name in names(POLICIES)}
    scripts = {**SCRIPTS}
    oracle = scripts.pop("oracle")
    return {**scripts, **added, "oracle": oracle}


def make_policy(name: str, seed: int = 0, known: Policies | None = None) -> Policy:
    """The policy of that name, among all or those `known`; `ValueError` for an unknown name."""
    among = known_policies() if known is None else known
    if name in MODEL_NAMES:
        raise ValueError(f"{name} is a model, and no script: name it by --model {name}")
    if name not in among:
        more = hint(POLICIES) if known is None else ""
        raise ValueError(f"unknown policy {name!r:.60}; choose one of {', '.join(among)}{more}")
    return among[name](seed)


def check_model(name: str) -> None:
    """`ValueError` if what was named as a model is a script."""
    if name in known_policies():
        raise ValueError(f"{name} is a script, and no model; evaluate it by --policy {name}")


def names(group: str) -> list[str]:
    """The names that installed packages add to a group; nothing is imported."""
    return [*_points(group)]


def load(group: str, name: str) -> Any:
    """What a package adds under a name; `ValueError` if nothing, or if a library is missing."""
    if name not in _points(group):
        raise ValueError(f"no installed package adds {name!r:.60} to {group}; {MORE}")
    try:
        return _points(group)[name].load()
    except ModuleNotFoundError as error:
        raise ValueError(lacking(error)) from error


def lacking(error: ModuleNotFoundError) -> str:
    """Say which library is missing, and how to install it."""
    return f"{error.name} is needed and not installed; `make setup` in the repository installs all"


def hint(group: str) -> str:
    """How to install more, for the end of a message; empty if something added to the group."""
    return "" if _points(group) else f"; {MORE}"


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    # It reads the metadata of every installed package, so once for each group is enough.
    return {point.name: point for point in entry_points(group=group)}
