"""The tracks by one command each, on toys."""

import json
from functools import partial

import pandas as pd
import seeds
import tables

from logtriage.training.mini import build_taught


def test_the_tracks_are_trained_and_evaluated_once(tiny_base, tmp_path, monkeypatch):
    # Few incidents are played, and without `belief`; all else is what `make seeds` does.
    small = {"steps": 1, "incidents": 2, "group": 2, "save_every": 1}
    make_config = seeds.make_config
    monkeypatch.setattr(
        seeds, "make_config", lambda preset, **given: make_config(preset, **given, **small)
    )
    built = {}

    def build_base(folder, general=False):
        built[folder] = general
        return tiny_base

    monkeypatch.setattr(seeds, "build_base", build_base)
    monkeypatch.setattr(seeds, "build_taught", partial(build_taught, episodes=4, epochs=1))
    few = partial(seeds.evaluate_run, episodes=2, references=("loudest", "trace"))
    monkeypatch.setattr(seeds, "evaluate_run", few)
    for name in ("evaluate_splits", "evaluate_checkpoints", "audit_run"):
        monkeypatch.setattr(seeds, name, partial(getattr(seeds, name), episodes=2))
    for track in tables.TRACKS:
        seeds.main(track, seeds=1, folder=tmp_path)
        run = tmp_path / track / "seed-0"
        made = {path.name for path in run.iterdir()}
        assert {"config.json", "summary.json", "transcripts.json", "model"} <= made
        for name in ("evaluation", "splits", "checkpoints", "audit"):
            frame = pd.read_parquet(run / f"{name}.parquet")
            learned = {"checkpoint-1"} if name == "checkpoints" else {"base", "trained"}
            assert learned <= set(frame["policy"])
        settings = json.loads((run / "config.json").read_text())["settings"]
        preset = make_config(tables.TRACKS[track].preset, model="", **small)
        own = {"model", "weights"}
        assert all(settings[key] == value for key, value in vars(preset).items() if key not in own)
    assert built == {tmp_path / "demo" / "base": False, tmp_path / "general" / "base": True}
    weights = {
        track: (tmp_path / track / "seed-0" / "model" / "model.safetensors").stat()
        for track in tables.TRACKS
    }
    for track, before in weights.items():
        seeds.main(track, seeds=1, folder=tmp_path)
        after = (tmp_path / track / "seed-0" / "model" / "model.safetensors").stat()
        assert after.st_mtime_ns == before.st_mtime_ns  # what is finished is not made again
