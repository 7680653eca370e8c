"""What a model card tells of a run's results: how much it gained, where that holds, and where it
does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..bench.intervals import paired_gain
from ..bench.runs import weights_digest
from ..bench.strata import (
    FEWEST,
    STRATA,
    describe_falls,
    label,
    named_once,
    stratum_changes,
    with_truth,
)
from .experiment import REFERENCES
from .summaries import CEILING, DETECTION, summarise_run, summary_table

WEAKEST = 5  # strata that are named for being solved least


def markdown(frame: pd.DataFrame) -> str:
    """A table of text cells in Markdown."""
    lines = [list(map(str, frame.columns)), ["---"] * len(frame.columns)]
    lines += [[str(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def results_of(run: Path, file: str) -> pd.DataFrame | None:
    """The rows of a file of results; None where there is none.

    Raises:
        ValueError: when they are not of the weights that are published.
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


def evaluated(run: Path, folder: Path, evaluation: pd.DataFrame) -> dict[str, Any]:
    """What the card tells of the results on held-out incidents: rows of `summarise_run`, tables and
    sentences.

    Args:
        run: its folder.
        folder: where `summary.json` goes.
        evaluation: rows of `evaluation.parquet`.
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
        "mean": f"{trained['score'].mean():.2f} on `{split}`",
        "unseen": _unseen(run),
        **_harms(trained),
    }


def _detection(changes: pd.DataFrame) -> pd.DataFrame:
    """Faults found and false alarms dismissed, before and after, with the paired change."""
    rows = []
    for row in changes[changes["stratum"].isin(DETECTION)].itertuples():
        known = row.incidents >= FEWEST
        rows.append(
            {
                "task": row.task.replace("_", " "),
                "share of": label(row.stratum),
                "incidents": row.incidents,
                "base": f"{row.base:.2f}",
                "trained": f"{row.trained:.2f}",
                "change": f"{row.change:+.2f} [{row.low:+.2f}, {row.high:+.2f}]" if known else "-",
            }
        )
    return pd.DataFrame(rows)


def _weakest(changes: pd.DataFrame) -> list[str]:
    """The strata that the trained model solves least, in words."""
    better = [name for name, stratum in STRATA.items() if stratum.better > 0]
    told = named_once(changes)
    told = told[told["stratum"].isin(better) & (told["incidents"] >= FEWEST)]
    return [
        f"{row.task.replace('_', ' ')}: {label(row.stratum, row.group)}, {row.trained:.2f}"
        f" of {row.incidents}"
        for row in told.nsmallest(WEAKEST, "trained").itertuples()
    ]


def _unseen(run: Path) -> dict[str, Any]:
    """A table of the splits that hold something new, and each one's mean score; empty where they
    were not played.
    """
    frame = results_of(run, "splits.parquet")
    if frame is None:
        return {}
    rows = []
    for (split, task), part in frame.groupby(["split", "task"], sort=False):
        before, after = (part[part.policy == name] for name in ("base", "trained"))
        rows.append(
            {
                "split": f"`{split}`",
                "task": task.replace("_", " "),
                "incidents": len(after),
                "base": f"{before['score'].mean():.2f}",
                "trained": f"{after['score'].mean():.2f}",
                "gain": "{:+.2f} [{:+.2f}, {:+.2f}]".format(*paired_gain(before, after)),
            }
        )
    means = frame[frame.policy == "trained"].groupby("split", sort=False)["score"].mean()
    return {
        "table": markdown(pd.DataFrame(rows)),
        "means": ", ".join(f"{mean:.2f} on `{split}`" for split, mean in means.items()),
    }


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
