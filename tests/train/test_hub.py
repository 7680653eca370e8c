"""Names and folders of the Hub, and a run that survives its machine, against a Hub that is a
folder.
"""

import json
import subprocess
import sys
import zipfile
from inspect import signature
from pathlib import Path

import pytest
import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from safetensors.torch import save_file

from logtriage.train import hub
from logtriage.train.hub import (
    MARK,
    check_name,
    fresh_folder,
    keep_run,
    kept_files,
    publish,
    pull_run,
)

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
    lines = [json.dumps({"step": one}) + "\n" for one in range(1, step + 1)]
    (run / "metrics.jsonl").write_text("".join(lines))


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "here" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"settings": {"seed": 0}}))
    (folder / "metrics.jsonl.partial").write_text("half")
    checkpoint(folder, 20)
    return folder


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_names_have_an_owner():
    assert check_name("you/logtriage-demo") == "you/logtriage-demo"
    for name in ("logtriage-demo", "../base", "a b/c", "/tmp/run", ""):
        with pytest.raises(ValueError, match=r"owner|no name of the Hub"):
            check_name(name)


def test_a_folder_that_is_not_ours_is_not_touched(tmp_path):
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
    assert publish(lambda: before, "you/m", private=True) == "https://huggingface.co/you/m"
    (fake_hub.root / "you/m" / "LICENSE").write_text("put there by hand")
    publish(lambda: now, "you/m")
    assert files(fake_hub.root / "you/m") == {"LICENSE", "model.safetensors"}
    assert fake_hub.calls[0] == ("create", "you/m", {"repo_type": "model", "private": True})


def test_the_last_complete_checkpoint_is_kept_in_private(fake_hub, run):
    keep_run(run, KEPT)
    checkpoint(run, 40)
    checkpoint(run, 60, complete=False)  # killed while it was saved
    keep_run(run, KEPT)
    assert files(fake_hub.root / KEPT) == {
        "config.json",
        "metrics.jsonl",
        "checkpoint-40/model.safetensors",
        "checkpoint-40/optimizer.pt",
        "checkpoint-40/trainer_state.json",
    }
    assert all(details.get("private", True) for _, _, details in fake_hub.calls)


def test_a_kept_run_and_a_published_model_are_apart(fake_hub, run, tmp_path):
    keep_run(run, KEPT)
    with pytest.raises(ValueError, match=f"a run is kept in {KEPT}; publish under another name"):
        publish(lambda: tmp_path, KEPT)
    published = tmp_path / "published"
    published.mkdir()
    (published / "run.json").write_text("{}")
    publish(lambda: published, "you/m")
    with pytest.raises(ValueError, match="you/m holds a published model"):
        pull_run("you/m", run)
    fake_hub.create_repo("you/open", private=False, exist_ok=True)
    with pytest.raises(ValueError, match="you/open is public; make it private"):
        pull_run("you/open", run)


def test_a_new_machine_continues_where_the_old_one_was(fake_hub, run, tmp_path):
    keep_run(run, KEPT)
    there = tmp_path / "there" / "seed-0"
    assert not pull_run("you/nothing", there) and not there.exists()
    checkpoint(there, 20, complete=False)  # half a checkpoint here is replaced
    assert pull_run(KEPT, there) and files(there) == set(kept_files(run))
    assert not pull_run(KEPT, there)  # as far as that
    checkpoint(run, 60)
    keep_run(run, KEPT)
    assert pull_run(KEPT, there)
    assert len((there / "metrics.jsonl").read_text().splitlines()) == 60
    (run / "model").mkdir()
    (run / "model" / "model.safetensors").write_text("trained")
    keep_run(run, KEPT)
    assert pull_run(KEPT, there) and (there / "model").exists()
    (there / "config.json").write_text(json.dumps({"settings": {"seed": 1}}))
    (there / "model" / "model.safetensors").unlink()
    (there / "model").rmdir()
    with pytest.raises(ValueError, match=r"other settings \(seed differ\); choose another folder"):
        pull_run(KEPT, there)


@pytest.mark.parametrize("error", [TimeoutError("slow"), RuntimeError("xet"), PermissionError()])
def test_a_hub_that_cannot_be_reached_does_not_end_training(error, fake_hub, run, tmp_path, capsys):
    fake_hub.down = error
    keep_run(run, KEPT)
    assert f"{run} is not kept: the Hub did not take {KEPT}" in capsys.readouterr().out
    with pytest.raises(ConnectionError, match=KEPT):
        pull_run(KEPT, tmp_path / "there")
    with pytest.raises(ConnectionError, match=KEPT):
        publish(lambda: run, KEPT)


def test_nothing_here_imports_transformers():
    # Unsloth, which is imported when training starts, must come before it.
    code = (
        "import sys; import logtriage.train.hub, logtriage.train.publication,"
        " logtriage.train.conversations; assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_real_hub_takes_and_raises_what_the_fake_does():
    assert issubclass(HfHubHTTPError, hub.UNREACHED)
    assert issubclass(OfflineModeIsEnabled, hub.UNREACHED)
    asked = {
        "create_repo": {"repo_type", "private", "exist_ok"},
        "upload_folder": {"repo_id", "folder_path", "allow_patterns", "delete_patterns"},
        "list_repo_files": {"repo_id"},
        "snapshot_download": {"repo_id", "local_dir"},
    }
    for name, parameters in asked.items():
        assert parameters <= set(signature(getattr(HfApi, name)).parameters), name
