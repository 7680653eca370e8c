"""Shared settings. Tests run offline, on toy sizes; `slow` ones, some of which install packages, by
`make test-slow`.
"""

import gc
import os

import matplotlib
import pytest
from helpers import url  # noqa: F401 (a fixture)

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
matplotlib.use("Agg")
gc.disable()  # while tests are imported


def pytest_collection_finish():
    """Collect garbage from here on, but never among what was imported, which took a tenth of the
    time.
    """
    gc.freeze()
    gc.enable()


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
