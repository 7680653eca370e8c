"""The Hugging Face Hub: folders that are published there, and a run that is kept there while it
trains.

A borrowed machine, as on Colab, may be gone any minute. `keep_run` keeps a run in a private
repository, after each checkpoint (`trainer.PushRun`), and `pull_run` brings it back to the next
machine, where the same command continues it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, XetDownloadError
from huggingface_hub.utils import validate_repo_id

from ..bench.runs import differing, last_checkpoint, record_of, step_of

# What may go wrong between here and the Hub. Its own errors, and what is raised where the network
# is switched off, are of these.
UNREACHED = (httpx.HTTPError, OSError, RuntimeError, XetDownloadError)
MARK = ".to-be-published"  # in a folder that `fresh_folder` has made; it is not uploaded
# What of an earlier upload is deleted where it is not replaced: an adapter beside whole weights, or
# a table of policies that were left out, would be loaded in place of what is new.
REPLACED = ["*.safetensors", "adapter_config.json", "config.json", "*.parquet"]


def check_name(name: str) -> str:
    """The name of a repository of the Hub, `owner/name`; `ValueError` for another."""
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{name!r:.120} is no name of the Hub: {error}") from None
    if name.count("/") != 1:
        raise ValueError(f"{name!r} lacks its owner; write owner/name, as you/logtriage-agent")
    return name


def check_token() -> None:
    """Raise `ValueError` where nobody is logged in to the Hub: rather now than after the work."""
    if get_token() is None:
        raise ValueError(
            "the Hub needs a token that may write, and none was found; run `hf auth login`, or set"
            " HF_TOKEN"
        )


def check_access(keep: str, publish: str) -> None:
    """Raise `ValueError` unless a run can be kept in one repository and published in another; empty
    for neither.
    """
    if keep and keep == publish:
        raise ValueError(f"a run cannot be kept and published in one repository, {keep}; name two")
    for name in filter(None, (keep, publish)):
        check_name(name)
        check_token()


def fresh_folder(folder: str | Path) -> Path:
    """An empty folder, but for a mark, in place of what was written there before; `ValueError` when
    it holds something without that mark.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise ValueError(f"{folder} holds something else; choose another folder, or empty it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    return folder


def publish(
    write: Callable[[], Path],
    name: str,
    private: bool = False,
    dry_run: bool = False,
    repo_type: str = "model",
) -> str:
    """Upload the folder that `write` returns to a repository of the Hub (`model` or `dataset`), and
    return its address; with `dry_run` only write it, and return its path.

    A repository that is there stays as private as it is.

    Raises:
        ValueError: when nobody is logged in, and nothing has been written then; when a run is kept
            there; or as `write`.
        ConnectionError: when the Hub refuses it, or cannot be reached.
    """
    if dry_run:
        return str(write())
    check_token()
    folder, api = write(), HfApi()
    try:
        address = api.create_repo(name, repo_type=repo_type, private=private, exist_ok=True)
        there = api.list_repo_files(name, repo_type=repo_type)
        if any(file.startswith("checkpoint-") for file in there):
            raise ValueError(f"a run is kept in {name}; publish under another name")
        api.upload_folder(
            repo_id=name,
            repo_type=repo_type,
            folder_path=folder,
            ignore_patterns=[MARK],
            delete_patterns=REPLACED,
        )
    except UNREACHED as error:
        raise ConnectionError(
            f"the Hub did not take {name}: {_first_line(error)}; the folder {folder} is complete, "
            "repeat the command"
        ) from error
    return str(address)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def kept_files(run: Path) -> list[str]:
    """What of a run is kept: its light files, its last complete checkpoint and, once it is
    finished, its model; paths relative to the run.
    """
    files = [path for path in run.iterdir() if path.is_file() and path.suffix != ".partial"]
    for folder in filter(None, (last_checkpoint(run), run / "model")):
        files += folder.glob("*")
    return sorted(path.relative_to(run).as_posix() for path in files)


def keep_run(run: str | Path, name: str) -> None:
    """Keep a run in the private repository `name`, in place of what was kept of it before.

    A failure is only printed: training goes on, and the next checkpoint takes everything along.
    """
    run, api = Path(run), HfApi()
    try:
        api.create_repo(name, private=True, exist_ok=True)
        api.upload_folder(
            repo_id=name,
            folder_path=run,
            allow_patterns=kept_files(run),
            delete_patterns=["checkpoint-*"],  # but those that are uploaded
        )
    except UNREACHED as error:
        print(f"{run} is not kept: the Hub did not take {name}: {_first_line(error)}", flush=True)


def pull_run(name: str, run: str | Path) -> bool:
    """Bring back a run from the repository `name`, where it got further than what lies here.

    The base model is not in it: one that has a folder of its own must be there again.

    Returns:
        Whether anything was brought back: not where there is no such repository, or nothing newer.

    Raises:
        ValueError: when everybody can read the repository, it holds a published model, or the
            folder holds a run with other settings.
        ConnectionError: when the Hub cannot be reached.
    """
    run, api = Path(run), HfApi()
    try:
        files = api.list_repo_files(check_name(name))
        if "run.json" in files:
            raise ValueError(f"{name} holds a published model; keep the run under another name")
        if not api.repo_info(name).private:
            raise ValueError(f"{name} is public; make it private, or keep the run elsewhere")
        here = [path.relative_to(run).as_posix() for path in run.glob("*/*")]
        if _progress(files) <= _progress(here):
            return False
        # Renamed when whole: half a checkpoint must not be taken for one.
        partial = run.with_name(f"{run.name}.partial")
        api.snapshot_download(name, local_dir=partial)
    except RepositoryNotFoundError:
        return False
    except UNREACHED as error:
        raise ConnectionError(f"the Hub did not give {name}: {_first_line(error)}") from error
    if (run / "config.json").exists():
        changed = differing(*(record_of(folder)["settings"] for folder in (partial, run)))
        if changed:
            raise ValueError(
                f"{run} holds a run with other settings ({', '.join(changed)} differ); choose "
                "another folder, or another repository"
            )
    run.mkdir(parents=True, exist_ok=True)
    # Files first: lines beyond the last checkpoint are dropped when a run continues, and lines that
    # are missing stay so.
    for path in sorted(partial.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if not path.name.startswith("."):
            if path.is_dir():
                shutil.rmtree(run / path.name, ignore_errors=True)
            path.replace(run / path.name)
    shutil.rmtree(partial)
    return True


def _progress(files: list[str]) -> tuple[bool, int]:
    """Whether a run with these files is finished, and its last complete checkpoint, 0 for none."""
    folders = [file.partition("/")[0] for file in files if file.endswith("/trainer_state.json")]
    steps = [step_of(folder) for folder in folders if folder.startswith("checkpoint-")]
    return any(file.startswith("model/") for file in files), max(steps, default=0)
