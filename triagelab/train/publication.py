"""Publish a finished run as a model on the Hugging Face Hub: `python -m logtriage publish-model`.

The folder `hub` in the run's folder is uploaded. It holds the card (`templates/model_card.md`,
filled in from the run), the adapter or the whole model, `example.json` for the card's snippet,
`run.json` (the run's `config.json`), metrics, results and figures, but no paths of the machine.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pandas as pd
from huggingface_hub import EvalResult, HfApi, ModelCardData, get_token
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from logtriage import REPOSITORY, __version__
from logtriage.drawing import read_template
from logtriage.play.conversation import opening_messages
from logtriage.play.episode import Episode
from logtriage.play.renaming import names_for
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.world.tasks import BENCHMARK_VERSION

from ..bench import run_evaluation
from ..bench.plots import plot_learning
from ..bench.runs import last_step, read_jsonl, record_of, settings_of
from ..bench.score_tables import DETECTION, REFERENCE, REFERENCES, markdown, summary_table
from ..bench.strata import describe_falls, label, stratum_changes, with_truth
from ..language_models.loading import WHOLE, located, weights_digest
from ..language_models.smollm2 import SMOLLM2
from .drills import HOLDOUT_INDEX

# Copied from `model/`; its other files say where it was trained, or are TRL's.
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
CONFIGURATION = ("config.json", "generation_config.json", "adapter_config.json")
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "chat_template.jinja"),
)
# Deleted from an earlier upload: an adapter beside whole weights would be loaded with them.
REPLACED = ["*.safetensors", "adapter_config.json", "config.json", "*.parquet"]
EXAMPLE = ("cascading_failure", "train", HOLDOUT_INDEX)  # which no run is trained on
# Qwen's research licence asks whoever passes its models on to write this into a file NOTICE.
NOTICE = (
    "Qwen is licensed under the Qwen RESEARCH LICENSE AGREEMENT, Copyright (c) Alibaba Cloud."
    " All Rights Reserved.\n"
)
TAGS = (
    *("logtriage", "incident-response", "root-cause-analysis", "tool-use"),
    *("reinforcement-learning", "grpo", "trl"),
)
CAPTIONS = {
    "learning.png": "The score as training went on.",
    "gain.png": "Held-out incidents, before and after training.",
    "strata.png": "The same by what was true of the incident.",
}


class Licence(NamedTuple):
    identifier: str  # as the Hub knows it; else a name and a link
    name: str | None = None
    link: str | None = None


QWEN_RESEARCH = Licence(
    "other", "qwen-research", "https://huggingface.co/Qwen/Qwen2.5-3B-Instruct/blob/main/LICENSE"
)
APACHE = Licence("apache-2.0")
LICENCES = {
    "Qwen/Qwen2.5-0.5B-Instruct": APACHE,
    "Qwen/Qwen2.5-1.5B-Instruct": APACHE,
    "Qwen/Qwen2.5-3B-Instruct": QWEN_RESEARCH,
    "Qwen/Qwen2.5-7B-Instruct": APACHE,
    "Qwen/Qwen3-4B-Instruct-2507": APACHE,
    "HuggingFaceTB/SmolLM2-135M-Instruct": APACHE,
    "": Licence("mit"),  # the embedded model, ours
}
# What a hub has of a model in a package, whose own weights are rounded to 4 bit.
ORIGINALS = {SMOLLM2: "HuggingFaceTB/SmolLM2-135M-Instruct"}


class Subject(NamedTuple):
    run: Path  # folder of a finished run
    name: str  # of the repository, `owner/name`
    adapter: bool  # an adapter was trained, and not all weights
    merged: bool  # whether it is merged into its base
    base: str  # name on a hub; empty for a base in a folder

    @property
    def title(self) -> str:
        return self.name.partition("/")[2]

    @property
    def licence(self) -> Licence:
        """The licence of the base, from which the model is made or to which the adapter belongs."""
        return LICENCES.get(self.base, Licence("unknown"))


def check_name(name: str) -> None:
    """Raise `ValueError` unless `name` is a valid `owner/name` of the Hub."""
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{name!r:.120} is no name of the Hub: {error}") from None
    if name.count("/") != 1:
        raise ValueError(f"{name!r} lacks its owner; write owner/name, as you/logtriage-agent")


def check_upload(name: str) -> None:
    """Raise `ValueError` if nothing can be published as `name`: better now than after hours."""
    check_name(name)
    if get_token() is None:
        raise ValueError(
            "the Hub needs a token that may write, and none was found; run `hf auth login`, or set"
            " HF_TOKEN"
        )


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
    except (httpx.HTTPError, OSError, RuntimeError) as error:
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
    check_name(name)
    subject, folder, model = _subject(run, name, merged), run / "hub", run / "model"
    run_evaluation.refuse_production(run)
    if folder.exists() and any(folder.iterdir()) and not (folder / "run.json").exists():
        raise ValueError(f"{folder} holds something else; move it away")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def copy(source: Path, patterns: tuple[str, ...]) -> None:
        for path in (path for pattern in patterns for path in source.glob(pattern)):
            shutil.copyfile(path, folder / path.name)

    record = record_of(run)
    if "weights" in record["settings"]:  # a base in a folder, known by its weights
        record["settings"]["model"] = Path(record["settings"]["model"]).name
    (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    copy(model, TOKENIZER)
    copy(run, ("metrics.jsonl", "evaluation.parquet", "*.png"))
    if merged:
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        # Not bfloat16, in which small changes of a weight are rounded away.
        settings = settings_of(run)
        base = located(settings["model"]) if "weights" in settings else subject.base
        whole = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float16)
        PeftModel.from_pretrained(whole, str(model)).merge_and_unload().save_pretrained(folder)
    else:
        copy(model, (*WEIGHTS, *CONFIGURATION))
    episodes = read_jsonl(run / "episodes.jsonl")
    if not (folder / "learning.png").exists():
        plot_learning(episodes).save(folder / "learning.png")

    config = model / "config.json"  # an adapter has none, and reads real names
    names = names_for(json.loads(config.read_text())) if config.exists() else None
    session = ToolSession(Episode.open(*EXAMPLE), names)
    example = {"messages": opening_messages(session.opening), "tools": tool_schemas()}
    (folder / "example.json").write_text(json.dumps(example, indent=1) + "\n")
    if subject.licence == QWEN_RESEARCH:
        (folder / "NOTICE").write_text(NOTICE)
    (folder / "README.md").write_text(_card(subject, folder, record, episodes))
    return folder


def _subject(run: Path, name: str, merged: bool) -> Subject:
    if not (run / "model").is_dir() or not (run / "config.json").exists():
        raise ValueError(
            f"{run} is no finished run, which has config.json and model/; train it to its end"
        )
    adapter = (run / "model" / "adapter_config.json").exists()
    # A run identifies a base in a folder by its weights, one on a hub by its name. One that was
    # quantised beforehand stands for the whole one.
    settings = settings_of(run)
    local, model = "weights" in settings, settings["model"]
    base = ORIGINALS.get(model, "" if local else model)
    if merged and not adapter:
        raise ValueError(f"{run} has no adapter: all weights were trained; leave out --merged")
    if adapter and local and not merged:
        raise ValueError(
            f"{run} is an adapter of weights that no hub has, so nobody could load it; publish it"
            " --merged"
        )
    return Subject(run, name, adapter, merged, WHOLE.get(base.lower(), base))


# -- the card --------------------------------------------------------------------------------------


def _card(subject: Subject, folder: Path, record: dict[str, Any], episodes: pd.DataFrame) -> str:
    """The card for `folder`. Also writes `summary.json` there, the numbers behind the card."""
    run, settings, last = subject.run, record["settings"], last_step(subject.run)
    found = _results(run, folder)
    base, built = {}, Path(settings_of(run)["model"]) / "base.json"
    if not subject.base and built.exists():
        made = json.loads(built.read_text())
        millions = f"{made['parameters'] / 1e6:.2f} million"
        base = {"expert": "base" in made["settings"], "parameters": millions}
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    training = {
        "tasks": dict(episodes["task"].str.replace("_", " ").value_counts() // settings["group"]),
        "incidents": len(episodes) // settings["group"],
        "episodes": len(episodes),
        "first": episodes["index"].min(),
        "last": episodes["index"].max(),
        "warm_up": settings["warm_up"],
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
    }
    return read_template(__package__, "model_card.md").render(
        metadata=_metadata(subject, found.get("rows", [])).to_yaml(),
        subject=subject,
        base=base,
        settings=settings,
        training=training,
        record=record,
        found=found,
        figures={name: said for name, said in CAPTIONS.items() if (folder / name).exists()},
        turn_tokens=run_evaluation.turn_tokens_of(settings),
        own_tokenizer=tokenizer.get("tokenizer_class") == "TokenizersBackend",
        run_named=f"{run.resolve().parent.name}/{run.name}",
        repository=REPOSITORY,
        version=__version__,
        benchmark=BENCHMARK_VERSION,
    )


def _metadata(subject: Subject, rows: list[dict[str, Any]]) -> ModelCardData:
    """The card's head, with one result per task where there are any."""
    adapter, licence = subject.adapter and not subject.merged, subject.licence
    results = [
        EvalResult(
            task_type="text-generation",
            task_name="incident triage by tool calls",
            dataset_type="logtriage",
            dataset_name=f"LogTriage {row['task'].replace('_', ' ')}",
            dataset_config=row["task"],
            dataset_split=row["split"],
            dataset_revision=row["benchmark"],
            metric_type="score",
            metric_name=f"mean score of {row['episodes']} held-out incidents, 0 to 1",
            metric_value=round(row["trained"][0], 4),
            source_name="LogTriage",
            source_url=f"https://github.com/{REPOSITORY}",
            verified=False,
        )
        for row in rows
    ]
    return ModelCardData(
        language="en",
        license=licence.identifier,
        license_name=licence.name,
        license_link=licence.link,
        library_name="peft" if adapter else "transformers",
        pipeline_tag="text-generation",
        base_model=subject.base or None,
        base_model_relation=("adapter" if adapter else "finetune") if subject.base else None,
        tags=[*TAGS, *(["lora"] if subject.adapter else [])],
        model_name=subject.title if results else None,
        eval_results=results or None,
    )


def _results(run: Path, folder: Path) -> dict[str, Any]:
    """Tables and sentences about held-out incidents, and the rows of `summary.json`, which it
    writes. Empty if the trained model was not evaluated; `ValueError` for results of other weights.
    """
    path = run / "evaluation.parquet"
    if not path.exists():
        return {}
    evaluation = pd.read_parquet(path)
    split = evaluation["split"].iloc[0]  # there may be others, too
    evaluation = run_evaluation.same_incidents(evaluation[evaluation["split"] == split])
    trained = evaluation[evaluation["policy"] == "trained"]
    if trained.empty:
        return {}
    if set(trained["weights"]) != {weights_digest(run / "model")}:
        raise ValueError(
            f"{path} holds results of other weights than {run / 'model'}; evaluate the run again,"
            " or move the file away"
        )
    rows = [{**row, "split": split} for row in run_evaluation.summarise_run(folder, evaluation)]
    table = summary_table(rows)
    table["task"] = table["task"].str.replace("_", " ")

    def shown(*columns: str) -> str:
        return markdown(table[["task", *(name for name in columns if name in table)]])

    changes = stratum_changes([evaluation])
    return {
        "rows": rows,
        "split": split,
        "episodes": run_evaluation.count_incidents(evaluation),
        "results": shown("start", "base", "trained", "gain", f"share of {REFERENCE}"),
        "references": shown("trained", *REFERENCES) if {*REFERENCES} & {*table} else "",
        "strata": shown(*map(label, DETECTION)),
        "falls": describe_falls(changes),
        "judged": bool(changes["low"].notna().any()),
        **_harms(trained),
    }


def _harms(trained: pd.DataFrame) -> dict[str, str]:
    """How often the model would harm a real cluster: shares by task, in words."""
    known = with_truth(trained)
    faults, alarms = known[known["real"]], known[~known["real"]]
    answers = alarms[["root_cause", "remediation", "escalation"]]
    harms = {
        "dismissed": faults["closed_by"] == "ignore",
        "wrong_remedy": faults["remediation"] != 1,
        "acted_in_vain": (answers != 1).any(axis=1),
    }
    shares = {
        name: harmed.groupby(known["task"], sort=False).mean() for name, harmed in harms.items()
    }
    return {
        name: ", ".join(f"{one:.0%} in {task.replace('_', ' ')}" for task, one in by_task.items())
        for name, by_task in shares.items()
    }
