"""A finished run as a model of the Hugging Face Hub: `python -m logtriage publish-model`.

The folder `hub` in the run's, which is uploaded, holds the model card, the adapter or the whole
model, `example.json` for the card's snippet, `run.json` (the run's `config.json`), its metrics,
results and figures, and nothing of the machine: no checkpoints, no pickled arguments.
"""

import json
import shutil
from pathlib import Path

import httpx
from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from ..bench.plots import plot_learning
from ..bench.runs import model_of, read_jsonl, record_of
from ..play.conversation import opening_messages
from ..play.episode import Episode
from ..play.tools import ToolSession, tool_schemas
from ..policies.llm.loading import WHOLE
from ..policies.llm.path_names import names_for
from .drills import HOLDOUT_INDEX
from .experiment import refuse_production
from .model_card import QWEN_RESEARCH, Subject, make_card

# Of `model/`: the other files say where it was trained, or are TRL's.
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
CONFIGURATION = ("config.json", "generation_config.json", "adapter_config.json")
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "chat_template.jinja"),
)
# Of an earlier upload, deleted: an adapter beside whole weights would be loaded with them.
REPLACED = ["*.safetensors", "adapter_config.json", "config.json", "*.parquet"]
EXAMPLE = ("cascading_failure", "train", HOLDOUT_INDEX)  # which no run is trained on
# What Qwen's research licence has whoever passes its models on write into this file.
NOTICE = (
    "Qwen is licensed under the Qwen RESEARCH LICENSE AGREEMENT, Copyright (c) Alibaba Cloud."
    " All Rights Reserved.\n"
)


def check_name(name: str) -> None:
    """Raise `ValueError` for what is no name `owner/name` of the Hub."""
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{name!r:.120} is no name of the Hub: {error}") from None
    if name.count("/") != 1:
        raise ValueError(f"{name!r} lacks its owner; write owner/name, as you/logtriage-agent")


def check_upload(name: str) -> None:
    """Raise `ValueError` where nothing can be published as `name`: rather now than after hours."""
    check_name(name)
    if get_token() is None:
        raise ValueError(
            "the Hub needs a token that may write, and none was found; run `hf auth login`, or set"
            " HF_TOKEN"
        )


def publish_model(
    run: Path, name: str, private: bool = False, merged: bool = False, dry_run: bool = False
) -> str:
    """Publish a finished run as the model `name`, and return its address; with `dry_run` only write
    the folder, and return that. A repository that is there stays as private as it is.

    Raises:
        ValueError: as `write_model`, or when nobody is logged in; nothing has been written then.
        ConnectionError: when the Hub refuses it, or cannot be reached.
    """
    if dry_run:
        return str(write_model(run, name, merged))
    check_upload(name)
    folder, api = write_model(run, name, merged), HfApi()
    try:
        address = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, delete_patterns=REPLACED)
    except (httpx.HTTPError, OSError, RuntimeError) as error:
        raise ConnectionError(
            f"the Hub did not take {name}: {type(error).__name__} {error}; the folder {folder} is "
            "complete, repeat the command"
        ) from error
    return str(address)


def write_model(run: Path, name: str, merged: bool = False) -> Path:
    """Write the folder that is to be the repository `name` (`owner/name`), `hub` in the run's, and
    return it; an adapter is `merged` into its base in 16 bit, or not.

    Raises:
        ValueError: when `name` is none, the run is not finished, or of `production`, nobody else
            could load the adapter, or the results are not of these weights.
    """
    check_name(name)
    subject = _subject(run, name, merged)
    refuse_production(run)
    folder = run / "hub"
    if folder.exists() and any(folder.iterdir()) and not (folder / "run.json").exists():
        raise ValueError(f"{folder} holds something else; move it away")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

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

    config = run / "model" / "config.json"  # an adapter has none, and reads real names
    names = names_for(json.loads(config.read_text())) if config.exists() else None
    session = ToolSession(Episode.open(*EXAMPLE), names)
    example = {"messages": opening_messages(session.opening), "tools": tool_schemas()}
    (folder / "example.json").write_text(json.dumps(example, indent=1) + "\n")
    if subject.licence == QWEN_RESEARCH:
        (folder / "NOTICE").write_text(NOTICE)
    (folder / "README.md").write_text(str(make_card(subject, folder)))
    return folder


def _subject(run: Path, name: str, merged: bool) -> Subject:
    if not (run / "model").is_dir() or not (run / "config.json").exists():
        raise ValueError(
            f"{run} is no finished run, which has config.json and model/; train it to its end"
        )
    adapter = (run / "model" / "adapter_config.json").exists()
    # A run knows a base in a folder by its weights, one of a hub by its name. One that was
    # quantised beforehand stands for the whole one.
    base = "" if "weights" in record_of(run)["settings"] else model_of(run)
    base = WHOLE.get(base.lower(), base)
    if merged and not adapter:
        raise ValueError(f"{run} has no adapter: all weights were trained; leave out --merged")
    if adapter and not base and not merged:
        raise ValueError(
            f"{run} is an adapter of a base in a folder of this machine, which nobody else has;"
            " publish it --merged"
        )
    return Subject(run, name, adapter, merged, base)


def _copy(source: Path, target: Path, patterns: tuple[str, ...]) -> None:
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
