"""Shared settings. Tests run offline, on toy sizes; `slow` ones only by `make test-slow`."""

import os

import matplotlib
import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
matplotlib.use("Agg")
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory):
    """A base model that has learned nothing, made in seconds: for testing everything around a model."""
    from logtriage.mini import build_base

    toy = {"drills": 16, "drill_epochs": 1, "juniors": 16, "junior_epochs": 1, "hidden": 32, "layers": 1, "parity": 0.0}
    return build_base(tmp_path_factory.mktemp("tiny") / "base", **toy)


@pytest.fixture(scope="session")
def constant():
    """The shipped open-loop policy, trained. Training takes a while, so one instance serves the session."""
    from logtriage.incidents import TASKS
    from logtriage.roster import make_policy

    policy = make_policy("constant")
    for task in TASKS:
        policy.prepare(task, "test")
    return policy
