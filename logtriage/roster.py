"""Every policy by name."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .ceiling import BeliefPolicy
from .junior import JuniorPolicy
from .policies import LoudestPolicy, OraclePolicy, Policy, RandomPolicy, TracePolicy, TrainedConstantPolicy

POLICIES: dict[str, Callable[[], Policy]] = {
    "random": RandomPolicy,
    "constant": TrainedConstantPolicy,
    "loudest": LoudestPolicy,
    "junior": lambda: JuniorPolicy(Random("junior")),
    "trace": TracePolicy,
    "belief": BeliefPolicy,
    "oracle": OraclePolicy,
}


def make_policy(name: str) -> Policy:
    """The policy of that name; `ValueError` with the valid names otherwise."""
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; choose one of {', '.join(POLICIES)}")
    return POLICIES[name]()
