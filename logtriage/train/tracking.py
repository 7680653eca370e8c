"""Trackers: dashboards that show a run's metrics while it trains, by `train --track`.

The Trainer of transformers talks to all of them (`report_to`); here stands what it is told. A run
is the same run with or without one, so a tracker is no setting of `TrainingConfig`.

| tracker | where the metrics lie | what shows them |
|---|---|---|
| `trackio` | `$TRACKIO_DIR`; `~/.cache/huggingface/trackio` | `trackio show --project logtriage` |
| `tensorboard` | `tensorboard/` in the run's folder | `tensorboard --logdir runs` |
| `wandb` | its own servers, after `wandb login` | its own page |
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .settings import TrainingConfig

TRACKERS = ("trackio", "tensorboard", "wandb")
PROJECT = "logtriage"  # what runs are gathered under in trackio and wandb
# Either of them sends what trackio is told to another machine.
ELSEWHERE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")


def check_tracker(track: str) -> None:
    """Raise `ValueError` for a tracker that cannot be used here; empty is none.

    It must be one of `TRACKERS` and installed, and trackio must keep to this machine.
    """
    if not track:
        return
    if track not in TRACKERS:
        raise ValueError(f"unknown tracker {track!r:.60}; choose one of {', '.join(TRACKERS)}")
    found = find_spec(track)
    if found is None or found.origin is None:  # wandb's own folder of logs passes for a package
        raise ValueError(
            f"the tracker {track} is not installed; run `pip install {track}`, or train without it"
        )
    for name in ELSEWHERE if track == "trackio" else ():
        if os.environ.get(name):
            raise ValueError(
                f"{name} is set, by which trackio sends a run to another machine; unset it: runs "
                "are tracked on this one only"
            )


def run_name(config: TrainingConfig, folder: Path) -> str:
    """What a run is called in a tracker: the settings that tell runs apart first, and a digest of
    its folder.

    Trackio continues a run by its name. Two folders are two runs, whatever else they differ in, and
    an interrupted run goes on under its name.
    """
    place = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:6]
    return (
        f"{Path(config.model).name}-{config.credit}-{config.steps}x{config.incidents}"
        f"x{config.group}-lr{config.learning_rate:g}-seed{config.seed}-{place}"
    )


def tracker_arguments(config: TrainingConfig, folder: Path, track: str) -> dict[str, Any]:
    """What the Trainer is told of the tracker; by default it would report to all that it finds."""
    if not track:
        return {"report_to": []}
    return {
        "report_to": [track],
        "run_name": run_name(config, folder),
        "project": PROJECT,  # read for trackio alone
        "trackio_space_id": None,  # it has been `trackio` by default, a Space in the user's name
    }


@contextmanager
def tracked(config: TrainingConfig, folder: Path, track: str) -> Iterator[None]:
    """Train in this: trackers find here what the Trainer has no argument for. What the user has set
    by the same variables stays.
    """
    if not track:
        yield
        return
    name = run_name(config, folder)
    asked = {
        "wandb": {"WANDB_PROJECT": PROJECT},
        # A continued run goes on in one curve; by default each attempt has a folder of its own.
        "tensorboard": {"TENSORBOARD_LOGGING_DIR": str(folder / "tensorboard" / name)},
    }
    ours = {key: value for key, value in asked.get(track, {}).items() if key not in os.environ}
    os.environ.update(ours)
    if track == "trackio":
        _open_trackio(name)
    try:
        yield
    finally:
        for key in ours:
            del os.environ[key]


def _open_trackio(name: str) -> None:
    """Open the project before the Trainer does, which shows its dashboard in a notebook, and on
    Colab by a public address. It then takes the run over from here.
    """
    import trackio

    trackio.init(PROJECT, name, resume="allow", embed=False, auto_log_cpu=False, auto_log_gpu=False)
