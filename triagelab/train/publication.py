"""Publish a finished run on the Hugging Face Hub: `python -m logtriage publish-model`.

What is uploaded is the folder `hub` in the run's folder: the adapter or the whole model, its
tokenizer, `run.json` (the run's `config.json`), metrics, results and figures, and a card that is
written from them (`templates/model_card.md`). Nothing in it names a path of the machine.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
from huggingface_hub import HfApi, get_token

from logtriage import REPOSITORY, __version__
from logtriage.drawing import read_template

from ..bench import run_evaluation
from ..bench.runs import last_step, record_of, settings_of
from ..bench.score_tables import markdown, summarise, summary_table
from ..bench.strata import describe_falls, stratum_changes
from ..language_models.loading import WHOLE, base_of, is_adapter, resolve_model, weights_digest
from ..language_models.smollm2 import SMOLLM2

# Not copied from `model/`: these say where it was trained, or are TRL's and PEFT's own.
LEFT_OUT = ("*.bin", "*.md")
FROM_RUN = ("metrics.jsonl", "evaluation.parquet", "*.png")
# Deleted from an earlier upload: an adapter beside whole weights would be loaded with them.
REPLACED = ["*.safetensors", "adapter_config.json", "config.json", "*.parquet"]
# What a hub has of a model in a package, whose own weights are rounded to 4 bit.
ORIGINALS = {SMOLLM2: "HuggingFaceTB/SmolLM2-135M-Instruct"}
RESEARCH = "Qwen/Qwen2.5-3B-Instruct"  # for research only; a copy needs this notice
NOTICE = (
    "Improved using Qwen. Qwen is licensed under the Qwen RESEARCH LICENSE AGREEMENT, Copyright (c)"
    " Alibaba Cloud. All Rights Reserved."
)
NO_BASE = "an adapter of weights that no hub has could be loaded by nobody; name a base of a hub"


def check_upload(name: str, adapted: str = "") -> None:
    """Raise `ValueError` if nothing can be published as `name`, or no adapter of the model
    `adapted`: better now than after hours.
    """
    _check_name(name)
    if get_token() is None:
        raise ValueError(
            "the Hub needs a token that may write, and none was found; run `hf auth login`, or set"
            " HF_TOKEN"
        )
    if adapted and not _hub_base(adapted):
        raise ValueError(NO_BASE)


def _check_name(name: str) -> None:
    owner, _, model = name.partition("/")
    if not owner.strip(".") or not model or "/" in model:
        raise ValueError(f"{name!r:.120} lacks its owner; write owner/name, as you/logtriage-agent")


def publish_model(run: Path, name: str, private: bool = False, dry_run: bool = False) -> str:
    """Publish a finished run as the model `name`, and return its address; with `dry_run`, only
    write the folder, and return that. An existing repository stays as private as it is.
    `ValueError` as in `write_model`, or without a login; `ConnectionError` if the Hub refuses it.
    """
    if dry_run:
        return str(write_model(run, name))
    check_upload(name)
    folder, api = write_model(run, name), HfApi()
    try:
        address = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, delete_patterns=REPLACED)
    except (httpx.HTTPError, OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"the Hub did not take {name}: {type(error).__name__} {error}; the folder {folder} is "
            "complete, repeat the command"
        ) from error
    return str(address)


def write_model(run: Path, name: str) -> Path:
    """Write the folder `hub` in the run's folder, the contents of the repository `name`
    (`owner/name`), and return it. `ValueError` if `name` is invalid, the run is unfinished or of
    `production`, `hub` holds something else, nobody else could load the adapter, or the results are
    of other weights.
    """
    _check_name(name)
    model, folder = run / "model", run / "hub"
    if not model.is_dir() or not (run / "config.json").exists():
        raise ValueError(f"{run} is no finished run, with config.json and model/; train it first")
    run_evaluation.refuse_production(run)
    base, adapter = _hub_base(settings_of(run)["model"]), is_adapter(model)
    if adapter and not base:
        raise ValueError(NO_BASE)
    if folder.exists() and any(folder.iterdir()) and not (folder / "run.json").exists():
        raise ValueError(f"{folder} holds something else; move it away")
    results = _results(run)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for path in (path for pattern in FROM_RUN for path in run.glob(pattern)):
        shutil.copyfile(path, folder / path.name)
    if base == RESEARCH:
        (folder / "NOTICE").write_text(NOTICE + "\n")
    record = record_of(run)
    if "weights" in record["settings"]:  # a base in a folder, known by its weights
        record["settings"]["model"] = Path(record["settings"]["model"]).name
    (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    card = read_template(__package__, "model_card.md").render(
        name=name,
        base=base,
        adapter=adapter,
        notice=NOTICE if base == RESEARCH else "",
        record=record,
        settings=record["settings"],
        last=last_step(run),
        results=results,
        figures=sorted(path.name for path in folder.glob("*.png")),
        command=f"evaluate --run runs/{run.resolve().parent.name}/{run.name}",
        repository=REPOSITORY,
        version=__version__,
    )
    (folder / "README.md").write_text(card)
    return folder


def _hub_base(model: str) -> str:
    """The name on a hub of a run's base, or of the adapter's that it trained further; empty for one
    in a folder. One that was quantised stands for the whole one.
    """
    if is_adapter(model):
        model, _ = base_of(model)
    if model not in ORIGINALS and Path(resolve_model(model)).is_dir():
        return ""
    base = ORIGINALS.get(model, model)
    return WHOLE.get(base.lower(), base)


def _results(run: Path) -> dict[str, Any]:
    """The table of held-out incidents, and what got worse; empty if the trained model was not
    evaluated. `ValueError` for results of other weights.
    """
    path = run / "evaluation.parquet"
    evaluation = pd.read_parquet(path) if path.exists() else pd.DataFrame({"policy": []})
    trained = evaluation[evaluation["policy"] == "trained"]
    if trained.empty:
        return {}
    if set(trained["weights"]) != {weights_digest(run / "model")}:
        raise ValueError(
            f"{path} holds results of other weights than {run / 'model'}; evaluate the run again,"
            " or move the file away"
        )
    split = evaluation["split"].iloc[0]  # there may be others, too
    evaluation = run_evaluation.same_incidents(evaluation[evaluation["split"] == split])
    table = summary_table(summarise([evaluation]))
    changes = stratum_changes([evaluation])
    return {
        "split": split,
        "table": markdown(table),
        "falls": describe_falls(changes),
        "judged": bool(changes["low"].notna().any()),
    }
