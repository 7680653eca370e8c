"""Names and folders of the Hub, and a run that survives its machine, against a Hub that is a
folder.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from logtriage.train import hub
from logtriage.train.grpo import train
from logtriage.train.hub import (
    MARK,
    check_name,
    fresh_folder,
    keep_run,
    kept_files,
    pull_run,
    push_run,
    upload,
)
from logtriage.train.presets import make_config
from logtriage.train.trainer import PushRun

ROOT = Path(__file__).parents[2]

KEPT = "you/kept"


def checkpoint(run, step, complete=True):
    folder = run / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    save_file({"weight": torch.tensor([step])}, folder / "model.safetensors")
    with zipfile.ZipFile(folder / "optimizer.pt", "w") as optimizer:
        optimizer.writestr("step", str(step))
    if complete:
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    (run / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": one}) + "\n" for one in range(1, step + 1))
    )


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "here" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"settings": {"seed": 0}}))
    (folder / "README.md").write_text("TRL's")
    (folder / "metrics.jsonl.partial").write_text("half")
    checkpoint(folder, 20)
    return folder


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_names_have_an_owner():
    assert check_name("you/logtriage-demo") == "you/logtriage-demo"
    for name in ("logtriage-demo", "../base", "a b/c", "/tmp/run", "you/logtriage--demo", ""):
        with pytest.raises(ValueError, match=r"owner|no name of the Hub"):
            check_name(name)


def test_a_folder_of_somebody_elses_is_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="holds something else; choose another folder"):
        fresh_folder(tmp_path)
    ours = fresh_folder(tmp_path / "ours")
    (ours / "run.json").write_text("{}")
    assert files(fresh_folder(ours)) == {MARK}


def test_what_is_new_replaces_weights_and_leaves_the_rest(fake_hub, tmp_path):
    # An adapter that stays beside merged weights would be loaded with them.
    before, now = tmp_path / "adapter", tmp_path / "merged"
    for folder, name in ((before, "adapter_model.safetensors"), (now, "model.safetensors")):
        folder.mkdir()
        (folder / name).write_text("weights")
    assert upload(before, "you/m", private=True) == "https://huggingface.co/you/m"
    (fake_hub.root / "you/m" / "LICENSE").write_text("put there by hand")
    upload(now, "you/m", private=False)
    assert files(fake_hub.root / "you/m") == {"LICENSE", "model.safetensors"}
    assert fake_hub.calls[0] == ("create", "you/m", {"repo_type": "model", "private": True})


def test_the_last_checkpoint_is_kept_and_older_ones_are_deleted(fake_hub, run):
    push_run(run, KEPT)
    checkpoint(run, 40)
    checkpoint(run, 60, complete=False)  # killed while it was saved
    push_run(run, KEPT)
    assert files(fake_hub.root / KEPT) == {
        "config.json",
        "metrics.jsonl",
        "checkpoint-40/model.safetensors",
        "checkpoint-40/optimizer.pt",
        "checkpoint-40/trainer_state.json",
    }
    assert all(details.get("private", True) for _, _, details in fake_hub.calls)
    (run / "model").mkdir()
    (run / "model" / "model.safetensors").write_text("trained")
    assert "model/model.safetensors" in kept_files(run)


def test_a_run_is_kept_in_private_and_apart_from_what_is_published(fake_hub, run, tmp_path):
    push_run(run, KEPT)
    with pytest.raises(ValueError, match=f"a run is kept in {KEPT}; publish under another name"):
        upload(tmp_path, KEPT, private=True)
    published = tmp_path / "published"
    published.mkdir()
    (published / "run.json").write_text("{}")
    upload(published, "you/m", private=True)
    with pytest.raises(ValueError, match="you/m holds a published model"):
        pull_run("you/m", run)
    fake_hub.create_repo("you/open", private=False, exist_ok=True)
    with pytest.raises(ValueError, match="you/open is public; make it private"):
        pull_run("you/open", run)


@pytest.mark.parametrize("error", [TimeoutError("slow"), RuntimeError("xet"), PermissionError()])
def test_nothing_that_goes_wrong_on_the_way_ends_training(error, fake_hub, run, capsys):
    fake_hub.down = error
    keep_run(run, KEPT)
    assert f"{run} is not kept: the Hub did not take {KEPT}" in capsys.readouterr().out


def test_a_new_machine_goes_on_where_the_old_one_was(fake_hub, run, tmp_path):
    push_run(run, KEPT)
    there = tmp_path / "there" / "seed-0"
    assert pull_run(KEPT, there) and files(there) == set(kept_files(run))
    optimizer = "checkpoint-20/optimizer.pt"
    assert (there / optimizer).read_bytes() == (run / optimizer).read_bytes()
    assert not there.with_name("seed-0.partial").exists()
    assert not pull_run(KEPT, there)  # as far as that
    checkpoint(there, 40)
    assert not pull_run(KEPT, there)  # further
    checkpoint(run, 60)
    push_run(run, KEPT)
    assert pull_run(KEPT, there)
    assert len((there / "metrics.jsonl").read_text().splitlines()) == 60
    assert (there / "checkpoint-60").exists()
    (run / "model").mkdir()
    (run / "model" / "model.safetensors").write_text("trained")
    push_run(run, KEPT)
    assert pull_run(KEPT, there) and (there / "model").exists()


def test_half_a_checkpoint_here_is_replaced(fake_hub, run, tmp_path):
    push_run(run, KEPT)
    there = tmp_path / "there"
    checkpoint(there, 20, complete=False)
    assert pull_run(KEPT, there) and "checkpoint-20/trainer_state.json" in files(there)


def test_another_run_in_the_folder_is_left_alone(fake_hub, run, tmp_path):
    push_run(run, KEPT)
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps({"settings": {"seed": 1}}))
    with pytest.raises(ValueError, match=r"other settings \(seed differ\); choose another folder"):
        pull_run(KEPT, other)
    assert files(other) == {"config.json"}


def test_nothing_is_brought_from_a_repository_that_is_not_there(fake_hub, tmp_path):
    assert not pull_run("you/nothing", tmp_path / "run") and not (tmp_path / "run").exists()


def test_a_hub_that_is_down_is_told(fake_hub, run, tmp_path, capsys):
    fake_hub.down = ConnectionError("no route to host")
    for act in (
        lambda: push_run(run, KEPT),
        lambda: pull_run(KEPT, tmp_path / "there"),
        lambda: upload(run, KEPT, private=True),
    ):
        with pytest.raises(ConnectionError, match=r"you/kept: no route to host"):
            act()
    # Training goes on, and the next checkpoint takes along what this one could not.
    keeper = PushRun(run, KEPT)
    keeper.on_save(None, None, None)
    told = capsys.readouterr().out
    assert told == f"{run} is not kept: the Hub did not take you/kept: no route to host\n"
    fake_hub.down = None
    keeper.on_save(None, None, None)
    assert "checkpoint-20/optimizer.pt" in files(fake_hub.root / KEPT)


def test_training_is_kept_and_goes_on_elsewhere(fake_hub, tiny_base, tmp_path):
    # A first machine is gone after step 2 of 4; a second one, which has the base, finishes the run.
    settings = {"incidents": 2, "group": 2, "micro_batches": 2, "save_every": 2}
    config = make_config("novice", model=str(tiny_base), steps=4, **settings)
    first, second = (tmp_path / name / "seed-0" for name in ("first", "other"))
    train(config, first, progress=False, until=2, keep_on_hub=KEPT)
    assert "checkpoint-2/trainer_state.json" in files(fake_hub.root / KEPT)
    assert pull_run(KEPT, second)
    assert train(config, second, progress=False, keep_on_hub=KEPT) == second / "model"
    steps = [json.loads(line)["step"] for line in (second / "metrics.jsonl").open()]
    kept = files(fake_hub.root / KEPT)
    assert steps == [1, 2, 3, 4] and "model/model.safetensors" in kept
    assert {file.partition("/")[0] for file in kept if "checkpoint" in file} == {"checkpoint-4"}


def test_nothing_here_imports_transformers():
    # Unsloth, which is imported when training starts, must come before it.
    code = (
        "import sys; import logtriage.train.hub, logtriage.train.publication,"
        " logtriage.train.conversations; assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_switched_off_network_and_the_hubs_own_errors_are_known():
    # The real ones, of which the fake knows nothing: both must be caught by what `hub` catches.
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    assert issubclass(HfHubHTTPError, hub.UNREACHED)
    assert issubclass(OfflineModeIsEnabled, hub.UNREACHED)


def test_the_real_api_takes_what_it_is_handed():
    # The fake's signatures are ours: they must be the real ones' too.
    from inspect import signature

    from huggingface_hub import HfApi

    asked = {
        "create_repo": {"repo_type", "private", "exist_ok"},
        "upload_folder": {
            *("repo_id", "folder_path", "repo_type", "allow_patterns", "delete_patterns")
        },
        "list_repo_files": {"repo_id"},
        "snapshot_download": {"repo_id", "local_dir"},
    }
    for name, parameters in asked.items():
        assert parameters <= set(signature(getattr(HfApi, name)).parameters), name
