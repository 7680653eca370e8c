"""Which precision a run's base takes, by what was measured; nothing here has a GPU."""

import pytest
import torch

from logtriage.bench.runs import Gpu
from logtriage.train import colab, decoding
from logtriage.train.decoding import Decoding, choose_base, measure_decoding
from logtriage.train.settings import make_config

FOUR, SIXTEEN = Decoding(True, 0.10, 9.0), Decoding(False, 0.06, 13.0)


@pytest.fixture
def measured(monkeypatch):
    """What measuring a T4 comes to, by whether it is in 4 bit."""
    results = {True: FOUR, False: SIXTEEN}
    for module in (decoding, colab):
        monkeypatch.setattr(module, "find_gpu", lambda: Gpu("Tesla T4", 16.1, bf16=False))
    monkeypatch.setattr(decoding, "apart", lambda _, config: results.pop(config.load_in_4bit))
    return results


def test_the_faster_one_is_taken_said_and_kept(measured, tmp_path, capsys):
    config = make_config("recommended")
    assert choose_base(tmp_path / "run", config) == SIXTEEN
    assert "100 ms a decode step" in capsys.readouterr().out
    # A later session must go on with it, and measures nothing.
    assert measured == {} and choose_base(tmp_path / "run", config) == SIXTEEN


@pytest.mark.parametrize("other", [Decoding(False), Decoding(False, 0.06, 14.3)])
def test_what_does_not_fit_is_not_taken(other, measured, tmp_path):
    # A peak without AdamW that leaves no room for it does not fit.
    measured[False] = other
    assert choose_base(tmp_path, make_config("recommended")) == FOUR


def test_where_nothing_fits_the_run_takes_what_it_asked_for(measured, tmp_path, capsys):
    measured[True] = measured[False] = Decoding(False)
    assert choose_base(tmp_path, make_config("t4_starter")) == Decoding(False)
    assert "though it may need more than 14.6 GiB" in capsys.readouterr().out
    assert choose_base(tmp_path, make_config("t4_starter")) == Decoding(False)  # as it was kept


def test_16_bit_is_not_tried_where_its_weights_are_too_large(measured, tmp_path, capsys):
    assert choose_base(tmp_path, make_config("t4_qwen3")) == FOUR
    assert "weights alone take 7.5 of 14.6 GiB, so it is not tried" in capsys.readouterr().out
    # and 4 bit not where nobody asked for it
    assert choose_base(tmp_path / "starter", make_config("t4_starter")) == SIXTEEN


def test_without_a_gpu_there_is_nothing_to_measure(tmp_path, monkeypatch):
    monkeypatch.setattr(decoding, "find_gpu", lambda: None)
    assert choose_base(tmp_path, make_config("recommended")) is None


def test_decoding_is_timed_and_memory_that_ends_is_a_result(tiny_base, monkeypatch):
    sizes = {"incidents": 1, "group": 2, "completion_tokens": 32}
    config = make_config("novice", model=str(tiny_base), **sizes)
    assert 0.0 < measure_decoding(config).seconds < 5.0

    def fail(config):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(decoding, "load_to_train", fail)
    assert measure_decoding(config) == Decoding(False)
