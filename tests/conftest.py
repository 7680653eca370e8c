"""Shared settings. Tests run offline, on toy sizes; `slow` ones, some of which install packages, by
`make test-slow`.
"""

import os

import matplotlib
import pytest
from helpers import url  # noqa: F401 (a fixture)

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
matplotlib.use("Agg")

# On a clean clone, libraries are compiled where they are first imported. The second of two
# processes begins with the largest ones, lest both compile the same at the same time.
if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
    import triagelab.train.loop  # noqa: F401

# Files of a few long tests begin first, lest one of the processes be left alone with them at the
# end; `make test` keeps this order.
LONG_FILES = (
    "test_learning.py",
    "test_formats.py",
    "test_grpo.py",
    "test_publication.py",
    "test_page.py",
    "test_audit.py",
    "test_base_model.py",
    "test_inspect_tasks.py",
    "test_comparison.py",
    "test_answer.py",
    "test_card_command.py",
    "test_evaluation.py",
    "test_mcp.py",
    "test_plots.py",
)


def pytest_collection_modifyitems(items):
    """The tests of long files first, longest first; all else as it was."""
    place = {name: at for at, name in enumerate(LONG_FILES)}
    items.sort(key=lambda test: place.get(test.path.name, len(LONG_FILES)))


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory):
    """A base model that has learned nothing, made in seconds: for testing everything around a
    model.
    """
    from triagelab.train.base_model import build_base

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # built once: who comes second waits for the first
        folder = folder.parent
    sizes = {"drills": 16, "novices": 16}
    return build_base(folder / "tiny" / "base", **sizes, hidden=32, layers=1)


@pytest.fixture
def fake_hub(tmp_path, monkeypatch):
    """A Hub in a folder, where somebody is logged in."""
    from fake_hub import FakeHub

    from triagelab.train import publication

    fake = FakeHub(tmp_path / "hub")
    monkeypatch.setattr(publication, "HfApi", lambda: fake)
    monkeypatch.setattr(publication, "get_token", lambda: "hf_token")
    return fake
