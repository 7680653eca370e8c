"""`scripts/credit.py`: what its policies are called, what it prints, and what it leaves behind."""

import json
import shutil
from pathlib import Path

import credit
import numpy as np
import pandas as pd
import pytest

from logtriage.bench.credit_truth import MEASURES
from logtriage.train.credit import CREDITS


def test_a_policy_is_named_by_its_track_and_run(tmp_path, monkeypatch):
    assert credit.policy_name(tmp_path / "runs/novice/base") == "base"
    names = {
        credit.policy_name(tmp_path / "runs" / track / run / weights)
        for track in ("novice", "expert")
        for run in ("seed-0", "seed-1")
        for weights in ("checkpoint-40", "checkpoint-80", "model")
    }
    assert len(names) == 12 and {"novice-seed-0-checkpoint-40", "expert-seed-1-model"} <= names
    inside = tmp_path / "runs/novice/seed-0"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert credit.policy_name(Path("model")) == "novice-seed-0-model"


def test_each_measure_is_shown_with_its_interval():
    row = {"policy": "base", "estimator": "part", "by": "all", "part": "all"}
    row |= {"calls": 40, "incidents": 2, "reliability": 0.9, "square": 0.04}
    for place, measure in enumerate(MEASURES):
        row |= {measure: 0.1 * place, f"{measure}_low": -0.5, f"{measure}_high": np.nan}
    shown = credit.shown(pd.DataFrame([row]))
    assert list(shown) == ["policy", "estimator", "by", "part", "calls", "incidents", *MEASURES]
    assert shown.loc[0, MEASURES[1]] == "0.100 [-0.500, nan]"
    assert shown.loc[0, "policy"] == "base" and shown.loc[0, "calls"] == 40


def test_weights_are_compared_and_a_rerun_goes_on(tiny_base, tmp_path, capsys):
    checkpoint = tmp_path / "novice" / "seed-0" / "checkpoint-1"
    shutil.copytree(tiny_base, checkpoint)
    asked = {"model": tiny_base, "checkpoint": [checkpoint], "incidents": 2, "forks": 2}
    folders = {"folder": tmp_path / "kept", "results": tmp_path / "results"}
    credit.main(**asked, **folders)
    names = {"base", "novice-seed-0-checkpoint-1"}
    kept = {path.name.rpartition("-")[0]: path for path in folders["folder"].glob("*.jsonl")}
    assert set(kept) == names
    forks = pd.read_parquet(folders["results"] / "forks.parquet")
    assert set(forks["policy"]) == names and set(forks["forks"]) == {2}
    assert {f"credit_{name}" for name in CREDITS} <= set(forks.columns)
    table = pd.DataFrame(json.loads((folders["results"] / "estimators.json").read_text()))
    assert set(table["policy"]) == names and set(table["estimator"]) == set(CREDITS)
    baseline = json.loads((folders["results"] / "baseline.json").read_text())
    assert {row["policy"] for row in baseline} == names
    assert (folders["results"] / "credit.png").stat().st_size > 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)
    before = {path: path.read_bytes() for path in kept.values()}
    credit.main(**asked, **folders)
    assert {path: path.read_bytes() for path in kept.values()} == before
    with pytest.raises(ValueError, match="forks"):  # of another number, nothing is taken over
        credit.main(**{**asked, "forks": 3}, **folders)
