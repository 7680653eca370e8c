"""The model card of a run: `templates/model_card.md`, filled in from what lies in its folder."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from .. import REPOSITORY, __version__
from ..bench.runs import last_step, model_of, read_jsonl, record_of, weights_digest
from ..bench.score_tables import CEILING, DETECTION, REFERENCES, markdown, summary_table
from ..bench.strata import describe_falls, label, stratum_changes, with_truth
from ..drawing import read_template
from ..world.tasks import BENCHMARK_VERSION
from .experiment import incidents_told, same_incidents, summarise_run, turn_tokens_of

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
    """A licence as the Hub knows it; name and link where it has no identifier of its own."""

    identifier: str
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
    "": Licence("mit"),  # the embedded model, ours
}


class Subject(NamedTuple):
    """What a card is about."""

    run: Path  # folder of a finished run
    name: str  # of the repository, `owner/name`
    adapter: bool  # an adapter was trained, and not all weights
    merged: bool  # into its base
    base: str  # its name on a hub; empty for one in a folder

    @property
    def title(self) -> str:
        return self.name.partition("/")[2]

    @property
    def licence(self) -> Licence:
        """The base's, of which what is published is made or to which it belongs."""
        return LICENCES.get(self.base, Licence("unknown"))


def make_card(subject: Subject, folder: Path) -> ModelCard:
    """The card of what lies in `folder`, which gets `summary.json`, the numbers behind it;
    `ValueError` when the run's results are of other weights.
    """
    run = subject.run
    record, found = record_of(run), _results(run, folder)
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    text = read_template(__package__, "model_card.md").render(
        metadata=_metadata(subject, found.get("rows", [])).to_yaml(),
        subject=subject,
        base=_base(subject),
        settings=record["settings"],
        training=_training(run, record["settings"]),
        record=record,
        found=found,
        figures={name: said for name, said in CAPTIONS.items() if (folder / name).exists()},
        turn_tokens=turn_tokens_of(record["settings"]),
        own_tokenizer=tokenizer.get("tokenizer_class") == "TokenizersBackend",
        run_named=f"{run.resolve().parent.name}/{run.name}",
        repository=REPOSITORY,
        version=__version__,
        benchmark=BENCHMARK_VERSION,
    )
    return ModelCard(text)


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


def _base(subject: Subject) -> dict[str, Any]:
    """What the card says of the embedded base; empty for any other model."""
    path = Path(model_of(subject.run)) / "base.json"
    if subject.base or not path.exists():
        return {}
    record = json.loads(path.read_text())
    return {
        "expert": "base" in record["settings"],
        "parameters": f"{record['parameters'] / 1e6:.2f} million",
    }


def _training(run: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """On what was trained, and for how long."""
    episodes, group, last = read_jsonl(run / "episodes.jsonl"), settings["group"], last_step(run)
    tasks = episodes["task"].str.replace("_", " ").value_counts() // group
    return {
        "tasks": dict(tasks),
        "incidents": len(episodes) // group,
        "episodes": len(episodes),
        "first": episodes["index"].min(),
        "last": episodes["index"].max(),
        "warm_up": settings["warm_up"],
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
    }


def _results(run: Path, folder: Path) -> dict[str, Any]:
    """Tables and sentences about held-out incidents, and the rows of `summary.json`, written here;
    empty where the trained model has not been evaluated.
    """
    path = run / "evaluation.parquet"
    if not path.exists():
        return {}
    evaluation = pd.read_parquet(path)
    split = evaluation["split"].iloc[0]  # others may be beside it
    evaluation = same_incidents(evaluation[evaluation["split"] == split])
    base, trained = (evaluation[evaluation["policy"] == name] for name in ("base", "trained"))
    if trained.empty:
        return {}
    if set(trained["weights"]) != {weights_digest(run / "model")}:
        raise ValueError(
            f"{path} holds results of other weights than {run / 'model'}; evaluate the run again,"
            " or move the file away"
        )
    rows = [{**row, "split": split} for row in summarise_run(folder, evaluation)]
    table = summary_table(rows)
    table["task"] = table["task"].str.replace("_", " ")
    columns = ["task", "start", "base", "trained", "gain", f"share of {CEILING}"]
    references = [name for name in REFERENCES if name in table]
    detection = [name for name in map(label, DETECTION) if name in table]
    changes = stratum_changes(base, trained)
    return {
        "rows": rows,
        "split": split,
        "episodes": incidents_told(evaluation),
        "results": markdown(table[[name for name in columns if name in table]]),
        "references": markdown(table[["task", "trained", *references]]) if references else "",
        "strata": markdown(table[["task", *detection]]),
        "falls": describe_falls(changes),
        "judged": bool(changes["low"].notna().any()),
        **_harms(trained),
    }


def _harms(trained: pd.DataFrame) -> dict[str, str]:
    """What would harm a real cluster, as shares by task in words."""
    known = with_truth(trained)
    faults, alarms = known[known["real"]], known[~known["real"]]
    answers = alarms[["root_cause", "remediation", "escalation"]]

    def by_task(harmed: pd.Series, frame: pd.DataFrame) -> str:
        shares = harmed.groupby(frame["task"], sort=False).mean()
        return ", ".join(
            f"{share:.0%} in {task.replace('_', ' ')}" for task, share in shares.items()
        )

    return {
        "dismissed": by_task(faults["closed_by"] == "ignore", faults),
        "wrong_remedy": by_task(faults["remediation"] != 1, faults),
        "acted_in_vain": by_task((answers != 1).any(axis=1), alarms),
    }
