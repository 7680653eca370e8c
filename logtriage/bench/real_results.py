"""Policies on real incidents: who finds the root, with intervals, beside the published figures.

    from logtriage.bench.real_results import play_cases, real_table
    frame = play_cases(make_policy("trace"), "petshop")  # any policy, a model or an endpoint too

Our own rule (`agents.unexplained`) was written while looking at one half of the cases, those of
which `half` says so; the other half was played once it was done. Both halves hold the same kinds of
faults at the same services, and the known facts about all cases (which the sources published, and
which rules were compared on before) were known, so the second half tells of chance, not of another
cluster. The rules were played on both halves; none of them was tuned.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..play.episode import final_score
from ..policies.scripted import Policy
from ..real.cases import SOURCES, load_source
from ..real.ranking import RankingPolicy, ranking_policy
from ..real.real_episode import TOP, RealEpisode, top
from ..real.rules import RULES, commonest
from ..world.tasks import BENCHMARK_VERSION
from .intervals import Interval, wilson
from .real_plots import plot_real
from .realism import realism_frame
from .registry import POLICIES, make_policy
from .rollouts import scored
from .runs import write_text

HALVES = ("developed on", "held back")
ALL = "all"
COMMONEST = "commonest"  # plays each case with the roots of all others
OURS = "unexplained"  # without knowledge of the kinds of fault
SCRIPTED = ("loudest", "trace", "novice")  # as they play the simulator
RANKED = ("random_ranking", *RULES)
# What some rules read, and which sources have any of it (`cases.Source`).
NEEDS = {"error_lines": "logs_from", "extra_wait": "edges_from"}
COLUMNS = (
    *("source", "index", "case", "half", "root", "fault", "policy", "blamed"),
    *("top1", "top3", "steps", "closed_by", "confidence", "benchmark"),
)


class PublishedFigure(NamedTuple):
    """What others report: shares of all cases of a source, ours and those that are not here."""

    source: str
    method: str
    cases: int
    top1: float
    top3: float
    told: str


_PETSHOP = "the notebook of the data set; its figures for errors rest on ties"
_NEZHA = "Yu et al. 2023 (FSE), table 3: AS@1, AS@3"
PUBLISHED = (
    PublishedFigure("petshop", "traversal, latency, low traffic", 14, 0.571, 0.571, _PETSHOP),
    PublishedFigure("petshop", "traversal, latency, high traffic", 14, 0.571, 0.786, _PETSHOP),
    PublishedFigure("nezha-trainticket", "PDiagnose", 45, 0.089, 0.133, _NEZHA),
    PublishedFigure("nezha-trainticket", "MicroRCA", 45, 0.200, 0.311, _NEZHA),
    PublishedFigure("nezha-trainticket", "Nezha", 45, 0.867, 0.978, _NEZHA),
    PublishedFigure("nezha-onlineboutique", "MicroRCA", 56, 0.161, 0.625, _NEZHA),
    PublishedFigure("nezha-onlineboutique", "PDiagnose", 56, 0.411, 0.732, _NEZHA),
    PublishedFigure("nezha-onlineboutique", "Nezha", 56, 0.929, 0.964, _NEZHA),
)


def half(case: str) -> str:
    """Which half a case belongs to, by a hash of its id: `HALVES`."""
    return HALVES[int(hashlib.sha256(case.encode()).hexdigest(), 16) % 2]


def play_cases(policy: Policy, source: str, indices: Sequence[int] | None = None) -> pd.DataFrame:
    """Play a policy on the cases of a source, or on those with these numbers.

    Returns:
        A row a case with `COLUMNS`: `blamed` holds the first `TOP` services blamed, in order, with
        spaces between; `top1` and `top3` are 0 or 1.

    Raises:
        ValueError: for an unknown source or number.
    """
    chosen = range(len(load_source(source).cases)) if indices is None else indices
    episodes = [RealEpisode.open(source, at) for at in chosen]
    policy.play(episodes)
    rows = []
    for episode in episodes:
        at, case = episode.incident.index, episode.incident.case
        blamed = list(dict.fromkeys(episode.record.root_causes))[:TOP]
        row = (
            *(source, at, case.id, half(case.id), case.truth.root, case.truth.fault),
            *(policy.name, " ".join(blamed), final_score(episode).root_cause),
            *(float(top(blamed, case)), episode.record.steps, episode.record.closed_by),
            *(episode.record.confidence, BENCHMARK_VERSION),
        )
        rows.append(dict(zip(COLUMNS, row, strict=True)))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"confidence": float})


def play_commonest(source: str) -> pd.DataFrame:
    """Each case by the roots of all *other* cases of its source, nothing read; rows as
    `play_cases`.
    """
    roots = [case.truth.root for case in load_source(source).cases]
    frames = []
    for at in range(len(roots)):
        policy = RankingPolicy(commonest(roots[:at] + roots[at + 1 :]), COMMONEST)
        frames.append(play_cases(policy, source, [at]))
    return pd.concat(frames, ignore_index=True)


def real_policy(name: str, seed: int = 0) -> Policy:
    """The policy of that name as it plays real incidents: a rule, or one of the simulator's
    as it is; `ValueError` for an unknown name.
    """
    if name in RANKED:
        return ranking_policy(name, seed)
    if name in POLICIES:
        return make_policy(name, seed)
    raise ValueError(
        f"unknown policy {name!r:.60}; on real incidents choose one of "
        f"{', '.join((*RANKED, *POLICIES))}"
    )


def real_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a policy of an evaluation of real incidents (`evaluation.Evaluation`): shares of cases
    whose root was blamed first, and among the first `TOP`, with Wilson's intervals; several
    attempts at a case count as their mean.
    """
    rows = []
    for (policy, source), played in scored(frame).groupby(["policy", "split"], sort=False):
        cases = load_source(str(source)).cases
        found = [
            top(blamed.split(), cases[index])
            for blamed, index in zip(played["blamed"], played["index"], strict=True)
        ]
        count = played["index"].nunique()
        shares = {"top1": played["score"].mean(), "top3": sum(found) / len(found)}
        told = {name: str(wilson(share, count)) for name, share in shares.items()}
        rows.append({"policy": policy, "split": source, "cases": count, **told})
    return pd.DataFrame(rows)


def reads(name: str, source: str) -> bool:
    """Whether a source has anything that a rule could read."""
    return name not in NEEDS or bool(getattr(load_source(source), NEEDS[name]))


def players() -> dict[str, Callable[[], Policy]]:
    """What plays every case without a model, in the order of the table."""
    ranked: dict[str, Callable[[], Policy]] = {
        name: lambda name=name: ranking_policy(name)  # type: ignore[misc]
        for name in RANKED
    }
    scripted: dict[str, Callable[[], Policy]] = {
        name: lambda name=name: make_policy(name)  # type: ignore[misc]
        for name in SCRIPTED
    }
    return {**ranked, **scripted}


def play_scripted(names: Sequence[str] | None = None) -> pd.DataFrame:
    """All cases by these policies of `players` and `COMMONEST`, or by all of them; those with
    nothing to read on a source are left out there.
    """
    wanted = [COMMONEST, *players()] if names is None else names
    frames = []
    for name in wanted:
        for source in SOURCES:
            if name == COMMONEST:
                frames.append(play_commonest(source))
            elif reads(name, source):
                frames.append(play_cases(players()[name](), source))
    return pd.concat(frames, ignore_index=True)


def real_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a (policy, source, part of the cases): all of them, or one of `HALVES`.

    Columns: `cases`; `top1` and `top3` with Wilson's interval over cases (`Interval`); `groups`,
    the different (root, fault); `by_group`, the mean of their shares of `top1`, with Wilson's
    interval as if each group were one case: the cases of a group are near copies of each other.
    """
    rows = []
    for (policy, source), played in frame.groupby(["policy", "source"], sort=False):
        for part in (ALL, *HALVES):
            some = played if part == ALL else played[played["half"] == part]
            if some.empty:
                continue
            groups = some.groupby(["root", "fault"])["top1"].mean()
            rows.append(
                {
                    "policy": policy,
                    "source": source,
                    "part": part,
                    "cases": len(some),
                    "top1": wilson(some["top1"].mean(), len(some)),
                    "top3": wilson(some["top3"].mean(), len(some)),
                    "groups": len(groups),
                    "by_group": wilson(groups.mean(), len(groups)),
                }
            )
    return pd.DataFrame(rows)


def published_frame() -> pd.DataFrame:
    """`PUBLISHED` as a table."""
    return pd.DataFrame(PUBLISHED)


def readable(table: pd.DataFrame, part: str = ALL, by_group: bool = False) -> pd.DataFrame:
    """A part of `real_table` for reading: a row a policy, a column a source, `top1 [interval] /
    top3`, or with `by_group` the mean over groups; `-` where a rule has nothing to read.
    """
    some = table[table["part"] == part]
    cells = {}
    for row in some.itertuples():
        text = "{:.2f} [{:.2f}, {:.2f}]".format(*(row.by_group if by_group else row.top1))
        cells[row.policy, row.source] = text if by_group else f"{text} / {row.top3.mean:.2f}"
    policies = list(dict.fromkeys(some["policy"]))
    columns = {
        source: [cells.get((policy, source), "-") for policy in policies] for source in SOURCES
    }
    return pd.DataFrame(columns, index=pd.Index(policies, name="policy"))


def as_json(table: pd.DataFrame) -> str:
    """`real_table` as JSON, intervals as lists, figures to six digits."""
    rows = [
        {
            key: [round(float(one), 6) for one in value] if isinstance(value, tuple) else value
            for key, value in row.items()
        }
        for row in table.to_dict("records")
    ]
    return json.dumps({"benchmark": BENCHMARK_VERSION, "rows": rows}, indent=1) + "\n"


def read_real_table(folder: str | Path) -> pd.DataFrame:
    """`real_table` as `write_report` has kept it."""
    rows = json.loads((Path(folder) / "table.json").read_text())["rows"]
    columns = ("top1", "top3", "by_group")
    return pd.DataFrame(
        [{**row, **{name: Interval(*row[name]) for name in columns}} for row in rows]
    )


def write_report(frame: pd.DataFrame, folder: str | Path, incidents: int = 100) -> None:
    """Everything under `results/real/`: the cases, the table, realism, the figure; files there are
    replaced.

    Args:
        frame: from `play_scripted`, and `play_cases` of models.
        folder: where it goes.
        incidents: of each simulated task, for realism.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(folder / "cases.parquet", index=False)
    write_text(folder / "table.json", as_json(real_table(frame)))
    realism_frame(incidents).to_parquet(folder / "realism.parquet", index=False)
    draw_real(folder)


def draw_real(folder: str | Path) -> list[Path]:
    """Draw the figure anew from the table; returns the file."""
    path = Path(folder) / "policies.png"
    plot_real(read_real_table(folder), published_frame()).save(path)
    return [path]
