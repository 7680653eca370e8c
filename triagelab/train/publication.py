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

# Copied from `model/`; its other files say where it was trained, or are TRL's.
MODEL = (
    *("*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json"),
    "adapter_config.json",
)
TOKENIZER = (
    "token*.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "*.jinja",
)
FROM_RUN = ("metrics.jsonl", "evaluation.parquet", "*.png")
# Deleted from an earlier upload: an adapter beside whole weights would be loaded with them.
REPLACED = ["*.safetensors", "adapter_config.json", "config.json", "*.parquet"]
# What a hub has of a model in a package, whose own weights are rounded to 4 bit.
ORIGINALS = {SMOLLM2: "HuggingFaceTB/SmolLM2-135M-Instruct"}
RESEARCH = "Qwen/Qwen2.5-3B-Instruct"  # for research only; a copy needs this notice
NOTICE = (
    "Improved using Qwen. Qwen is licensed under the Qwen RESEARCH LICENSE AGREEMENT, Copyright (c)"
    " Alibaba Cloud. All Rights Reserved.\n"
)


def check_upload(name: str) -> None:
    """Raise `ValueError` if nothing can be published as `name`: better now than after hours."""
    _check_name(name)
    if get_token() is None:
        raise ValueError(
            "the Hub needs a token that may write, and none was found; run `hf auth login`, or set"
            " HF_TOKEN"
        )


def _check_name(name: str) -> None:
    owner, _, model = name.partition("/")
    if not owner.strip(".") or not model or "/" in model:
        raise ValueError(f"{name!r:.120} lacks its owner; write owner/name, as you/logtriage-agent")


def publish_model(
    run: Path, name: str, private: bool = False, merged: bool = False, dry_run: bool = False
) -> str:
    """Publish a finished run as the model `name`, and return its address; with `dry_run`, only
    write the folder, and return that. An existing repository stays as private as it is.
    `ValueError` as in `write_model`, or without a login; `ConnectionError` if the Hub refuses it.
    """
    if dry_run:
        return str(write_model(run, name, merged))
    check_upload(name)
    folder, api = write_model(run, name, merged), HfApi()
    try:
        address = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, delete_patterns=REPLACED)
    except (httpx.HTTPError, OSError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"the Hub did not take {name}: {type(error).__name__} {error}; the folder {folder} is "
            "complete, repeat the command"
        ) from error
    return str(address)


def write_model(run: Path, name: str, merged: bool = False) -> Path:
    """Write the folder `hub` in the run's folder, the contents of the repository `name`
    (`owner/name`), and return it. With `merged`, an adapter is merged into its base in 16 bit.
    `ValueError` if `name` is invalid, the run is unfinished or of `production`, `hub` holds
    something else, nobody else could load the adapter, or the results are of other weights.
    """
    _check_name(name)
    model, folder = run / "model", run / "hub"
    if not model.is_dir() or not (run / "config.json").exists():
        raise ValueError(f"{run} is no finished run, with config.json and model/; train it first")
    run_evaluation.refuse_production(run)
    base, adapter = _base_of(run), is_adapter(model)
    if merged and not adapter:
        raise ValueError(f"{run} has no adapter: all weights were trained; leave out --merged")
    if adapter and not base and not merged:
        raise ValueError(f"{run} is an adapter of weights that no hub has; publish it --merged")
    if folder.exists() and any(folder.iterdir()) and not (folder / "run.json").exists():
        raise ValueError(f"{folder} holds something else; move it away")
    results = _results(run)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    record = record_of(run)
    if "weights" in record["settings"]:  # a base in a folder, known by its weights
        record["settings"]["model"] = Path(record["settings"]["model"]).name
    (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    copied = [(model, TOKENIZER), (run, FROM_RUN)]
    if merged:
        _merge(settings_of(run), base, model, folder)
    else:
        copied.append((model, MODEL))
    for source, patterns in copied:
        for path in (path for pattern in patterns for path in source.glob(pattern)):
            shutil.copyfile(path, folder / path.name)
    if base == RESEARCH:
        (folder / "NOTICE").write_text(NOTICE)
    card = read_template(__package__, "model_card.md").render(
        name=name,
        base=base,
        kind="adapter" if adapter and not merged else "finetune",
        research=NOTICE if base == RESEARCH else "",
        merged=merged,
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


def _base_of(run: Path) -> str:
    """The name of the base on a hub; empty for one in a folder. One that was quantised stands for
    the whole one.
    """
    settings = settings_of(run)
    model = settings["model"]
    if is_adapter(model):  # trained further
        model, _ = base_of(model)
    elif "weights" in settings and model not in ORIGINALS:
        return ""
    base = ORIGINALS.get(model, model)
    return WHOLE.get(base.lower(), base)


def _merge(settings: dict[str, Any], base: str, adapter: Path, folder: Path) -> None:
    """Write the base with the adapter merged into it."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    # Not bfloat16, in which small changes of a weight are rounded away.
    source = resolve_model(base_of(adapter)[0]) if "weights" in settings else base
    whole = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float16)
    PeftModel.from_pretrained(whole, str(adapter)).merge_and_unload().save_pretrained(folder)


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
