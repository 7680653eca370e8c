"""Every policy by name."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..ceiling.belief import BeliefPolicy
from ..policies.novice import NovicePolicy
from ..policies.scripted import (
    LoudestPolicy,
    OraclePolicy,
    Policy,
    RandomPolicy,
    TracePolicy,
    TrainedConstantPolicy,
)

# Name to a maker that takes a seed; only `random` and `novice` have whims of their own.
POLICIES: dict[str, Callable[[int], Policy]] = {
    "random": RandomPolicy,
    "constant": lambda seed: TrainedConstantPolicy(),
    "loudest": lambda seed: LoudestPolicy(),
    "novice": lambda seed: NovicePolicy(
        Random(f"junior/{seed}")
    ),  # the name of its published stream
    "trace": lambda seed: TracePolicy(),
    "belief": lambda seed: BeliefPolicy(),
    "oracle": lambda seed: OraclePolicy(),
}


def make_policy(name: str, seed: int = 0) -> Policy:
    """The policy of that name, its whims drawn from `seed`; `ValueError` for an unknown name."""
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; choose one of {', '.join(POLICIES)}")
    return POLICIES[name](seed)
