"""The model card of a run: `templates/model_card.md`, filled in from what lies in its folder.

The scores of training that the reference project showed, of the first and the last ten episodes,
are no result and are left out.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from jinja2 import Environment, PackageLoader, StrictUndefined

from .. import REPOSITORY, __version__
from ..bench.intervals import Interval, paired_gain
from ..bench.runs import model_of, read_jsonl, record_of, weights_digest
from ..bench.score_tables import markdown
from ..bench.strata import (
    FEWEST,
    STRATA,
    describe_falls,
    label,
    named_once,
    stratum_changes,
    with_truth,
)
from ..policies.llm.language_models import TURN_TOKENS
from ..world.tasks import BENCHMARK_VERSION
from .experiment import CEILING, DETECTION, REFERENCES, summarise_run, summary_table, tell
from .settings import TrainingConfig, incident_rows

WEAKEST = 5  # strata that are named for being solved least

TAGS = (
    *("logtriage", "incident-response", "root-cause-analysis", "tool-use"),
    *("reinforcement-learning", "grpo", "trl"),
)
CAPTIONS = {
    "learning.png": "The score as training went on.",
    "gain.png": "Held-out incidents, before and after training.",
    "parts.png": "The parts of the score, before and after.",
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
}
UNKNOWN = Licence("unknown")  # an identifier of the Hub's
OWN = Licence("mit")  # of the adapter, and of the embedded model


class Subject(NamedTuple):
    """What a card is about: the folder of a finished run, and the repository `owner/name`."""

    run: Path
    name: str
    adapter: bool  # an adapter was trained, and not all weights
    merged: bool  # into its base
    base: str  # its name on a hub; empty for one in a folder
    dataset: str  # the published conversations; empty for none

    @property
    def title(self) -> str:
        return self.name.partition("/")[2]

    @property
    def licence(self) -> Licence:
        """The base's, of which what is published is made or to which it belongs."""
        return LICENCES.get(self.base, UNKNOWN) if self.base else OWN


def render_template(template: str, **facts: Any) -> str:
    """A template of this package with its facts; one that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("logtriage.train"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is Markdown, and all facts are the project's own
    )
    return environment.get_template(template).render(**facts)


def make_card(subject: Subject, folder: Path) -> ModelCard:
    """The card of what lies in `folder`, which gets `summary.json`, the numbers behind it.

    Raises:
        ValueError: when the run's results are of other weights, or of another version of the
            benchmark.
    """
    record = record_of(subject.run)
    known = {field.name for field in dataclasses.fields(TrainingConfig)}
    settings = {name: value for name, value in record["settings"].items() if name in known}
    config = TrainingConfig(**settings)
    evaluation = _results_of(subject.run, "evaluation.parquet")
    if evaluation is not None:  # others may be beside it
        evaluation = evaluation[evaluation.split == evaluation.split.iloc[0]]
    found = {} if evaluation is None else _evaluated(subject.run, folder, evaluation)
    figures = {name: CAPTIONS[name] for name in CAPTIONS if (folder / name).exists()}
    text = render_template(
        "model_card.md",
        metadata=_metadata(subject, found.get("rows", [])).to_yaml(),
        subject=subject,
        title=subject.title,
        base=_base(subject),
        config=config,
        training=_training(config, record["settings"]),
        record=record,
        minutes=float(read_jsonl(subject.run / "metrics.jsonl")["seconds"].iloc[-1]) / 60.0,
        found=found,
        figures=figures,
        transcript=_transcript(subject.run),
        turn_tokens=max(TURN_TOKENS, record["settings"]["turn_tokens"]),
        own_tokenizer=_has_own_tokenizer(folder),
        run_named=f"{subject.run.resolve().parent.name}/{subject.run.name}",
        repository=REPOSITORY,
        version=__version__,
        benchmark=BENCHMARK_VERSION,
        notebooks=sorted(path.name for path in folder.glob("*.ipynb")),
    )
    return ModelCard(text)


def _metadata(subject: Subject, rows: list[dict[str, Any]]) -> ModelCardData:
    """The card's head, with one result per task where there are any."""
    adapter = subject.adapter and not subject.merged
    licence = subject.licence
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
        datasets=[subject.dataset] if subject.dataset else None,
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


def _has_own_tokenizer(folder: Path) -> bool:
    """Whether the tokenizer must be loaded as it was saved: see `loading.load_language_model`."""
    config = json.loads((folder / "tokenizer_config.json").read_text())
    return config.get("tokenizer_class") == "TokenizersBackend"


def _training(config: TrainingConfig, settings: dict[str, Any]) -> dict[str, Any]:
    """On what was trained: counts of incidents by task, and a table of settings."""
    rows = incident_rows(config)
    shown = []
    for name, value in settings.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {share}" for key, share in value.items())
        if name not in ("model", "weights"):
            shown.append({"setting": name, "value": str(value)})
    return {
        "tasks": Counter(row["task"].replace("_", " ") for row in rows),
        "incidents": len(rows),
        "episodes": len(rows) * config.group,
        "first": min(row["index"] for row in rows),
        "last": max(row["index"] for row in rows),
        "warm_up": config.lessons if config.warm_up else (),
        "settings": markdown(shown),
    }


def _transcript(run: Path) -> dict[str, Any]:
    """One held-out incident as the trained model played it, where the run keeps it."""
    path = run / "transcripts.json"
    if not path.exists():
        return {}
    kept = json.loads(path.read_text())
    if kept["weights"]["trained"] != weights_digest(run / "model"):
        return {}
    return {
        "task": kept["task"].replace("_", " "),
        "index": kept["index"],
        "telling": kept["telling"],
        "base": f"{kept['base']['score']['total']:.2f}",
        "trained": f"{kept['trained']['score']['total']:.2f}",
        "text": tell(kept["trained"]["messages"]),
    }


def _results_of(run: Path, file: str) -> pd.DataFrame | None:
    """The rows of a file of results, where there is one; `ValueError` when they are not of the
    weights that are published.
    """
    if not (run / file).exists():
        return None
    frame = pd.read_parquet(run / file)
    trained = frame.loc[frame.policy == "trained", "weights"].unique()
    if not len(trained):  # it was played before training alone
        return None
    (weights,) = trained
    if weights != weights_digest(run / "model"):
        raise ValueError(
            f"{run / file} holds results of other weights than {run / 'model'}; evaluate the run"
            " again, or move the file away"
        )
    return frame


def _evaluated(run: Path, folder: Path, evaluation: pd.DataFrame) -> dict[str, Any]:
    """Tables and sentences about held-out incidents, and the rows of `summarise_run`, which writes
    `summary.json` into `folder`.
    """
    (split,) = evaluation["split"].unique()
    rows = [{**row, "split": split} for row in summarise_run(folder, evaluation)]
    table = summary_table(rows)
    table["task"] = table["task"].str.replace("_", " ")
    share = f"share of {CEILING}"
    results = [name for name in ("task", "base", "trained", "gain", share) if name in table]
    references = [name for name in REFERENCES if name in table]
    base, trained = (evaluation[evaluation.policy == name] for name in ("base", "trained"))
    changes = stratum_changes(base, trained)
    changes["task"] = changes["task"].str.replace("_", " ")
    return {
        "rows": rows,
        "split": split,
        "episodes": rows[0]["episodes"],
        "results": markdown(table[results]),
        "references": markdown(table[["task", "trained", *references]]) if references else "",
        "strata": markdown(_detection(changes)),
        "falls": describe_falls(changes),
        "judged": bool(changes["low"].notna().any()),
        "weakest": _weakest(changes),
        "unseen": _unseen(run),
        **_harms(trained),
    }


def _detection(changes: pd.DataFrame) -> pd.DataFrame:
    """Faults found and false alarms dismissed, before and after, with the paired change."""
    rows = []
    for row in changes[changes["stratum"].isin(DETECTION)].itertuples():
        change = Interval(row.change, row.low, row.high)
        rows.append(
            {
                "task": row.task,
                "share of": label(row.stratum),
                "incidents": row.incidents,
                "base": f"{row.base:.2f}",
                "trained": f"{row.trained:.2f}",
                "change": f"{change:+.2f}" if row.incidents >= FEWEST else "-",
            }
        )
    return pd.DataFrame(rows)


def _weakest(changes: pd.DataFrame) -> list[str]:
    """The strata that the trained model solves least, in words."""
    better = [name for name, one in STRATA.items() if one.better > 0 and one.answer]
    known = named_once(changes)
    known = known[known["stratum"].isin(better) & (known["incidents"] >= FEWEST)]
    return [
        f"{row.task}: {label(row.stratum, row.group)}, {row.trained:.2f} of {row.incidents}"
        for row in known.nsmallest(WEAKEST, "trained").itertuples()
    ]


def _unseen(run: Path) -> str:
    """A table of the splits that hold something new; empty where they were not played."""
    frame = _results_of(run, "splits.parquet")
    if frame is None:
        return ""
    rows = []
    for (split, task), part in frame.groupby(["split", "task"], sort=False):
        before, after = (part[part.policy == name] for name in ("base", "trained"))
        rows.append(
            {
                "split": f"`{split}`",
                "task": task.replace("_", " "),
                "incidents": str(len(after)),
                "base": f"{before['score'].mean():.2f}",
                "trained": f"{after['score'].mean():.2f}",
                "gain": f"{paired_gain(before, after):+.2f}",
            }
        )
    return markdown(rows)


def _harms(trained: pd.DataFrame) -> dict[str, str]:
    """What would harm a real cluster, as shares by task in words."""
    known = with_truth(trained)
    faults, alarms = known[known["real"]], known[~known["real"]]
    answers = alarms[["root_cause", "remediation", "escalation"]]

    def by_task(harmed: pd.Series, frame: pd.DataFrame) -> str:
        shares = harmed.groupby(frame["task"], sort=False).mean()
        return ", ".join(
            f"{100 * share:.0f} % in {task.replace('_', ' ')}" for task, share in shares.items()
        )

    return {
        "dismissed": by_task(faults["closed_by"] == "ignore", faults),
        "wrong_remedy": by_task(faults["remediation"] != 1, faults),
        "acted_in_vain": by_task((answers != 1).any(axis=1), alarms),
    }
