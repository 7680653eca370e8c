"""Both tracks by one command, on toys."""

from functools import partial

import pandas as pd
import seeds
import tables

from logtriage.training.mini import build_taught


def test_both_tracks_are_trained_and_evaluated_once(tiny_base, tmp_path, monkeypatch):
    # Few incidents are played, and without `belief`; all else is what `make seeds` does.
    small = {"steps": 1, "incidents": 2, "group": 2, "save_every": 1}
    make_config = seeds.make_config
    monkeypatch.setattr(
        seeds, "make_config", lambda preset, **given: make_config(preset, **given, **small)
    )
    monkeypatch.setattr(seeds, "build_base", lambda folder: tiny_base)
    monkeypatch.setattr(seeds, "build_taught", partial(build_taught, episodes=4, epochs=1))
    few = partial(seeds.evaluate_run, episodes=2, references=("loudest", "trace"))
    monkeypatch.setattr(seeds, "evaluate_run", few)
    for name in ("evaluate_splits", "evaluate_checkpoints", "audit_run"):
        monkeypatch.setattr(seeds, name, partial(getattr(seeds, name), episodes=2))
    seeds.main(seeds=1, folder=tmp_path)
    for track in tables.TRACKS:
        run = tmp_path / track / "seed-0"
        made = {path.name for path in run.iterdir()}
        assert {"config.json", "summary.json", "transcripts.json", "model"} <= made
        for name in ("evaluation", "splits", "checkpoints", "audit"):
            frame = pd.read_parquet(run / f"{name}.parquet")
            learned = {"checkpoint-1"} if name == "checkpoints" else {"base", "trained"}
            assert learned <= set(frame["policy"])
    weights = {
        track: (tmp_path / track / "seed-0" / "model" / "model.safetensors").stat()
        for track in tables.TRACKS
    }
    seeds.main(seeds=1, folder=tmp_path)
    for track, before in weights.items():
        after = (tmp_path / track / "seed-0" / "model" / "model.safetensors").stat()
        assert after.st_mtime_ns == before.st_mtime_ns  # what is finished is not made again
