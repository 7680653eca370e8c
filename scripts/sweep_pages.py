"""Write results/README.md, the page of the published sweeps. A test holds it fresh.

A published sweep is a folder `results/<name>/` with

| file | what |
|---|---|
| `sweep.json` | what was asked, varied and run, when, and by which command |
| `summary.parquet` | a row a (row of the sweep, task): scores, gains and their intervals |
| `learning.png`, `seeds.png` | its pictures; further ones are shown after them |
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from tables import TRACKS

from logtriage.world.tasks import TASKS

RESULTS = Path(__file__).resolve().parents[1] / "results"

OPENING = """# Results

A **sweep** runs one notebook many times: every row changes some of its settings, and is repeated
with several training seeds. In the tables, *trained* is the mean score on held-out incidents after
training, *IQM* that of the middle half of all scores alone, *gain* what training added to the base,
and *difference* what a row is worth over the row that the others are compared with, all with 95 %
intervals: one that holds 0 is no proof of a difference. With three seeds they are a little narrow:
in simulations they held the truth in 87 to 96 % of cases. And of a dozen rows that are compared
with one, one or so strays by chance.

This page is written by `scripts/sweep_pages.py` from the files beside it."""


class Published(NamedTuple):
    """A folder of results that is no sweep: what it is, where it is told, and its command."""

    about: str
    told: str
    command: str


TOLD = {  # where a track's table stands
    "novice": "../README.md#results",
    "expert": "../docs/training.md#a-second-track-taught-then-rewarded",
    "general": "../docs/training.md#a-third-on-many-call-graphs-and-in-many-words",
}
OTHERS = {
    "benchmark": Published(
        "the benchmark: scripted policies on all tasks and splits",
        "../README.md#how-hard-it-is",
        "make benchmark",
    ),
    **{
        name: Published(
            f"the embedded agent, {track.called}", TOLD[name], "make seeds && make results"
        )
        for name, track in TRACKS.items()
    },
    "credit": Published(
        "what each estimator of credit knows of what a call was worth",
        "../notebooks/06_what_teaches.ipynb",
        "make credit",
    ),
    "real": Published(
        "policies on 76 real incidents, and how far the simulator is from them",
        "../notebooks/07_real_incidents.ipynb",
        "make real",
    ),
    "tokens": Published("what an episode costs in tokens", "../docs/t4.md", "make tokens"),
    "serving": Published("many sessions at once", "../docs/serving.md", "make load"),
    "leaderboard": Published(
        "rows of the leaderboard, with the actions that earned them",
        "../LEADERBOARD.md",
        "make leaderboard",
    ),
    "gpu": Published("training on an NVIDIA GPU", "../docs/t4.md", "make gpu"),
}

# A picture's name to what it shows, first those that every sweep has.
PICTURES = {
    "learning": "the score while training, a line a row",
    "seeds": "every training seed of every row",
}
NEEDED = ("sweep.json", "summary.parquet", *(f"{name}.png" for name in PICTURES))
# Head to the columns of `summary.parquet` that make its cells: a value, and maybe its interval.
CELLS = {
    "trained": ("trained", "trained_low", "trained_high"),
    "IQM": ("iqm", "iqm_low", "iqm_high"),
    "gain": ("gain", "gain_low", "gain_high"),
    "least gain of a seed": ("smallest_gain",),
    "difference": ("difference", "difference_low", "difference_high"),
}


def sweep_folders() -> list[Path]:
    """The folders of the published sweeps, by name."""
    return sorted(path.parent for path in RESULTS.glob("*/sweep.json"))


def page() -> str:
    """The text of results/README.md.

    Raises:
        ValueError: when what is published of a sweep is not whole.
    """
    sweeps = sweep_folders()
    contents = [f"- [{folder.name}](#{folder.name.lower()})" for folder in sweeps]
    asked = "\n".join(contents) if sweeps else "No sweep is published yet."
    sections = [sweep_section(folder) for folder in sweeps]
    return "\n\n".join([OPENING, asked, *sections, others_section()]) + "\n"


def others_section() -> str:
    """What is published besides sweeps, a line a folder."""
    lines = [
        f"- [{name}]({one.told}): {one.about}; `{one.command}`"
        for name, one in OTHERS.items()
        if (RESULTS / name).is_dir()
    ]
    return "\n".join(["## Besides the sweeps", "", *lines])


def sweep_section(folder: Path) -> str:
    """What a published sweep asked, what was varied, what came out, and how to run it again.

    Raises:
        ValueError: when a file is missing, or the table has a row that the sweep has not.
    """
    missing = [file for file in NEEDED if not (folder / file).exists()]
    if missing:
        raise ValueError(
            f"{folder} lacks {', '.join(missing)}; publish the sweep again, or delete the folder"
        )
    sweep = json.loads((folder / "sweep.json").read_text())
    summary = pd.read_parquet(folder / "summary.parquet")
    unknown = sorted(set(summary["row"]) - set(sweep["rows"]))
    if unknown:
        raise ValueError(
            f"{folder} has results of {', '.join(unknown)}, which its sweep.json does not name; "
            "publish the sweep again"
        )
    parts = [f"## {folder.name}", sweep["about"], varied(sweep)]
    parts.append("Mean over the tasks:\n\n" + results_table(summary, sweep, ("all",)))
    parts.append("By task:\n\n" + results_table(summary, sweep, TASKS))
    parts += [f"![{folder.name}: {shows}]({at})" for at, shows in pictures(folder)]
    parts.append(origin(sweep, summary))
    if sweep.get("left_out"):
        parts.append(f"Left out: {sweep['left_out']}")
    return "\n\n".join(parts)


def varied(sweep: dict[str, Any]) -> str:
    """What each row changes, and what all of them share, a line each."""
    lines = [
        f"- **{row}**: {changes_in_words(changes) or 'nothing is changed'}"
        for row, changes in sweep["rows"].items()
    ]
    shared = changes_in_words(sweep["parameters"])
    return "\n".join([*lines, f"- in all of them: {shared}"] if shared else lines)


def changes_in_words(parameters: dict[str, Any]) -> str:
    """Parameters as `name=value`, in code; the settings in `changes` are parameters like others."""
    named = {name: value for name, value in parameters.items() if name != "changes"}
    told = {**named, **parameters.get("changes", {})}
    return ", ".join(f"`{name}={value_in_words(value)}`" for name, value in told.items())


def value_in_words(value: Any) -> str:
    """A parameter's value as somebody would type it."""
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def results_table(summary: pd.DataFrame, sweep: dict[str, Any], tasks: Iterable[str]) -> str:
    """The results of these tasks, a line a (task, row of the sweep), in the sweep's order."""
    tasks = list(tasks)
    heads = {
        head: columns for head, columns in CELLS.items() if summary.columns.isin(columns).any()
    }
    several = len(tasks) > 1
    lines = [f"| {'task | ' if several else ''}row | seeds | {' | '.join(heads)} |"]
    lines.append("|---" * (2 + several + len(heads)) + "|")
    by_name = summary.set_index(["task", "row"])
    for task in tasks:
        for row in sweep["rows"]:
            if (task, row) not in by_name.index:  # what was left out, or failed
                continue
            found = by_name.loc[(task, row)]
            cells = [row, str(int(found["seeds"]))]
            cells += [cell([found[column] for column in columns]) for columns in heads.values()]
            lines.append(f"| {' | '.join([task.replace('_', ' ')] * several + cells)} |")
    return "\n".join(lines)


def cell(values: list[float]) -> str:
    """A value, with its interval where there is one; empty where there is no value."""
    if pd.isna(values[0]):
        return ""
    if len(values) == 1 or pd.isna(values[1]):
        return f"{values[0]:.2f}"
    return "{:.2f} [{:.2f}, {:.2f}]".format(*values)


def pictures(folder: Path) -> list[tuple[str, str]]:
    """A sweep's pictures, (path from the page, what it shows), those of every sweep first."""
    further = sorted(path.stem for path in folder.glob("*.png") if path.stem not in PICTURES)
    shown = PICTURES | {name: name.replace("_", " ") for name in further}
    return [(f"{folder.name}/{name}.png", shows) for name, shows in shown.items()]


def origin(sweep: dict[str, Any], summary: pd.DataFrame) -> str:
    """How many points, on what, when, from which commits, and the command that runs it again."""
    incidents = sorted(set(summary.loc[summary["task"] != "all", "incidents"]))
    seeds = ", ".join(map(str, sweep["seeds"]))
    told = [
        f"{sweep['points']} points (seeds {seeds})",
        f"{' or '.join(map(str, incidents))} held-out incidents a task",
        f"finished on {sweep['finished']}",
    ]
    if sweep["commits"]:
        shas = ", ".join(f"`{sha[:7]}`" for sha in dict.fromkeys(sweep["commits"]))
        told.append(f"from commit {shas}")
    if sweep["machine"]:
        told.append(
            "on "
            + ", ".join(f"{name} {value_in_words(one)}" for name, one in sweep["machine"].items())
        )
    notebook = Path(sweep["notebook"]).name
    return f"{'; '.join(told)}. Run it again: `{sweep['command']}`, which executes `{notebook}`."


def write_page() -> None:
    """Write results/README.md."""
    (RESULTS / "README.md").write_text(page())


if __name__ == "__main__":
    write_page()
