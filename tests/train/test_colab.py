"""What a notebook on a borrowed GPU needs around training."""

import sys
import types

import pytest

from logtriage.bench.runs import Gpu
from logtriage.train import colab
from logtriage.train.colab import choose_gpu, choose_preset, command, problems, run_folder


@pytest.mark.parametrize(
    "gpu, preset, costs",
    [
        (Gpu("Tesla T4", 16.1, bf16=False), "recommended", "T4"),
        (Gpu("NVIDIA L4", 24.2, bf16=True), "l4", "L4"),
        (Gpu("NVIDIA A100-SXM4-40GB", 42.0, bf16=True), "a100", "A100"),
        (Gpu("NVIDIA GeForce RTX 5090", 34.0, bf16=True), "a100", "A100"),
        (Gpu("Quadro RTX 6000", 25.0, bf16=False), "recommended", "T4"),
    ],
)
def test_the_gpu_chooses_the_preset(gpu, preset, costs, monkeypatch):
    monkeypatch.setattr(colab, "find_gpu", lambda: gpu)
    assert choose_preset("auto") == preset and choose_gpu().name == costs


def test_a_profile_may_be_asked_for(monkeypatch):
    monkeypatch.setattr(colab, "find_gpu", lambda: None)
    assert choose_preset("t4") == "recommended" and choose_preset("l4") == "l4"
    assert choose_preset("auto") == choose_preset("cpu") == "novice"
    assert choose_preset("auto", "expert") == "expert"
    with pytest.raises(ValueError, match="unknown profile 'tpu'; choose one of auto"):
        choose_preset("tpu")


def test_a_module_that_was_loaded_before_the_install_is_reported(monkeypatch):
    stale = types.SimpleNamespace(__version__="0.1")
    monkeypatch.setitem(sys.modules, "pyarrow", stale)
    (said,) = problems()
    assert said.startswith("pyarrow 0.1 is loaded") and "Restart session" in said


def test_runs_are_kept_on_drive_where_it_is_mounted(tmp_path, monkeypatch):
    # Without it, as where nobody consents in time, training must not stop at a question.
    monkeypatch.setattr(colab, "DRIVE", tmp_path / "MyDrive")
    assert run_folder("l4", 2).parts == ("..", "runs", "l4", "seed-2")
    (tmp_path / "MyDrive").mkdir()
    assert run_folder("l4", 2) == tmp_path / "MyDrive/logtriage/l4/seed-2"
    assert run_folder("l4", 2, str(tmp_path / "x")) == tmp_path / "x" / "seed-2"


def test_a_command_says_what_it_does_and_how_it_ends(capfd):
    command("evaluate", "--help", first=2, env_url="", model=None, task=["all", "all"])
    said = capfd.readouterr().out
    assert (
        "-m logtriage evaluate --help --first 2 --task all --task all\n" in said
        and "Usage:" in said
    )
    with pytest.raises(RuntimeError, match="logtriage evaluate failed with exit status 2"):
        command("evaluate", policies="trace")
    assert "No such option: --policies" in capfd.readouterr().out
