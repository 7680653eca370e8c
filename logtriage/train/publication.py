"""A finished run as a model of the Hugging Face Hub: `python -m logtriage publish-model`.

The folder that is uploaded holds

| file | what |
|---|---|
| `README.md` | the model card (see `model_card`) |
| weights, configuration, tokenizer | the adapter, or the whole model |
| `example.json` | an opening conversation and the tools' schemas, for the card's snippet |
| `run.json`, `metrics.jsonl` | the run's `config.json` and its training steps |
| `evaluation.parquet`, `summary.json` | results on held-out incidents, where there are any |
| `*.png`, `*.ipynb` | figures and executed notebooks, where there are any |

and nothing of the machine on which the run was made: no checkpoints, no pickled arguments.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from ..bench.learning_plots import plot_learning
from ..bench.runs import model_of, read_jsonl, record_of
from ..play.conversation import opening_messages
from ..play.episode import Episode
from ..play.observation import render
from ..play.tools import tool_schemas
from ..policies.llm.loading import WHOLE
from .drills import HOLDOUT_INDEX
from .hub import check_name, fresh_folder, publish
from .model_card import QWEN_RESEARCH, Subject, make_card

# Of `model/`: the other files say where it was trained, or are TRL's.
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
CONFIGURATION = ("config.json", "generation_config.json", "adapter_config.json")
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "chat_template.jinja"),
)
# The folders of an absolute path; not of an address, nor of a relative path.
FOLDERS = re.compile(r"(?<![\w/:.~<+-])/(?:[\w.@+-]+/)+")
EXAMPLE = ("cascading_failure", "train", HOLDOUT_INDEX)  # which no run is trained on
# What Qwen's research licence has whoever passes its models on write into this file.
NOTICE = (
    "Qwen is licensed under the Qwen RESEARCH LICENSE AGREEMENT, Copyright (c) Alibaba Cloud."
    " All Rights Reserved.\n"
)


def write_model(
    run: str | Path, name: str, folder: str | Path, merged: bool = False, dataset: str = ""
) -> Path:
    """Write the folder that is to be the repository `name`, and return it.

    Args:
        run: folder of a finished run.
        name: `owner/name`, which the card's snippets load.
        folder: made anew; one that this function has not made must be empty.
        merged: whether an adapter is merged into its base, in 16 bit.
        dataset: name of a dataset of the Hub that the card is to name.

    Raises:
        ValueError: when `name` is none, the run is not finished, the folder holds something else,
            nobody else could load the adapter, or the results are not of these weights.
    """
    run = Path(run)
    subject = _subject(run, check_name(name), merged, check_name(dataset) if dataset else "")
    folder = fresh_folder(folder)
    record = record_of(run)
    if "weights" in record["settings"]:  # a base in a folder, known by its weights
        record["settings"]["model"] = Path(record["settings"]["model"]).name
    (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    _copy(run / "model", folder, TOKENIZER)
    if merged:
        _merge(subject.base or model_of(run), run / "model", folder)
    else:
        _copy(run / "model", folder, (*WEIGHTS, *CONFIGURATION))
    _copy(run, folder, ("metrics.jsonl", "evaluation.parquet", "*.png"))
    if not (folder / "learning.png").exists():
        plot_learning([read_jsonl(run / "episodes.jsonl")]).save(folder / "learning.png")
    for notebook in run.glob("*.ipynb"):
        _copy_notebook(notebook, folder / notebook.name)
    episode = Episode.open(*EXAMPLE)
    opening = opening_messages(render(episode.opening, episode.incident.topology))
    example = {"messages": opening, "tools": tool_schemas()}
    (folder / "example.json").write_text(json.dumps(example, indent=1) + "\n")
    if subject.licence == QWEN_RESEARCH:
        (folder / "NOTICE").write_text(NOTICE)
    (folder / "README.md").write_text(str(make_card(subject, folder)))
    return folder


def publish_model(
    run: str | Path,
    name: str,
    private: bool = False,
    merged: bool = False,
    dry_run: bool = False,
    dataset: str = "",
) -> str:
    """Publish a finished run as the model `name`, and return its address; with `dry_run` only write
    the folder, `hub` in the run's, and return that. Errors are those of `write_model` and
    `hub.publish`.
    """
    folder = Path(run) / "hub"
    return publish(lambda: write_model(run, name, folder, merged, dataset), name, private, dry_run)


def _subject(run: Path, name: str, merged: bool, dataset: str) -> Subject:
    if not (run / "model").is_dir() or not (run / "config.json").exists():
        raise ValueError(
            f"{run} is no finished run, which has config.json and model/; train it to its end"
        )
    adapter = (run / "model" / "adapter_config.json").exists()
    settings = record_of(run)["settings"]
    # A run knows a base in a folder by its weights, one of a hub by its name. One that was
    # quantised beforehand stands for the whole one.
    base = "" if "weights" in settings else model_of(run)
    base = WHOLE.get(base.lower(), base)
    if merged and not adapter:
        raise ValueError(f"{run} has no adapter: all weights were trained; leave out --merged")
    if adapter and not base and not merged:
        raise ValueError(
            f"{run} is an adapter of a base in a folder of this machine, which nobody else has;"
            " publish it --merged"
        )
    return Subject(run, name, adapter, merged, base, dataset)


def _copy(source: Path, target: Path, patterns: tuple[str, ...]) -> None:
    """Copy files of a folder whose names match."""
    for pattern in patterns:
        for path in source.glob(pattern):
            shutil.copyfile(path, target / path.name)


def _merge(base: str, adapter: Path, folder: Path) -> None:
    """Write the base with the adapter added to its weights."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    # Not bfloat16, in which small changes of a weight are rounded away.
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float16)
    PeftModel.from_pretrained(model, str(adapter)).merge_and_unload().save_pretrained(folder)


def _copy_notebook(source: Path, target: Path) -> None:
    """Copy an executed notebook without the folders of the machine that executed it, wherever the
    run lies by now.
    """
    notebook = json.loads(source.read_text())
    notebook["metadata"].pop("papermill", None)
    for cell in notebook["cells"]:
        cell["metadata"].pop("papermill", None)
        if {"parameters", "injected-parameters"} & {*cell["metadata"].get("tags", ())}:
            cell["source"] = _without_folders(cell["source"])
        for output in cell.get("outputs", ()):
            for part in (output, output.get("data", {})):
                for name in part.keys() & {"text", "text/plain", "text/html", "traceback"}:
                    part[name] = _without_folders(part[name])
    target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _without_folders(text: str | list[str]) -> str | list[str]:
    """Text in which an absolute path is its last part alone."""
    if isinstance(text, list):
        return [FOLDERS.sub("", line) for line in text]
    return FOLDERS.sub("", text)
