"""Read a CSV file of your cluster's metrics as an incident, and ask the ranker about it.

    time,service,metric,value
    2026-06-20T13:50:00Z,cart,p95,231

    print(rank_metrics("metrics.csv", load_call_graph("graph.yaml")).text())

The window of the incident is six samples; those before it tell what is usual.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from logtriage.play.observed import Measure
from logtriage.world.call_graph import CallGraph

from ..real.evidence import Evidence, recent, z_score
from .features import arrays_of_evidence
from .generator import SAMPLES
from .mesh import METRICS
from .production_episode import UNITS
from .ranker import chances, load_ranker

# What `triage` says of logs, in the same words; chances below the last are not enough.
POSSIBLE, UNSURE, POSSIBLE_FROM = "possible", "not enough evidence", 0.5
COLUMNS, SERIES = ["time", "service", "metric", "value"], ["service", "metric"]
FIRST_TIME, LAST_TIME = 1e8, 1e11  # Unix seconds; lower numbers are dates, higher ones milliseconds
AFTER = 3  # samples of the window that follow the one in which the trouble began
LEAST_BEFORE = 12  # samples before the window
SHOWN, UNUSUAL = 3, 3.0  # suspects, and metrics of the first, at most; sigmas a shown metric needs


class MetricsAnswer(NamedTuple):
    """The ranker's answer to a file of metrics. It is never surer than *possible*, as its chances
    are calibrated only on simulated incidents.
    """

    root: str  # empty if there is not enough evidence
    sure: str  # `possible` or `not enough evidence`
    suspects: list[tuple[str, float]]  # services and their chances, the likeliest first
    nothing: float  # the chance that nothing is wrong
    unusual: list[str]  # metrics of the first suspect, the most unusual first
    read: str

    def text(self) -> str:
        """Format the answer for a terminal."""
        first, chance = self.suspects[0]
        head = f"{first}: {self.sure} ({chance:.0%}), by its metrics and the call graph"
        if not self.root:
            head = f"{self.sure}: no service's metrics make it the root more likely than not"
        names = ", ".join(f"{name} {chance:.0%}" for name, chance in self.suspects)
        rows = [f"  {text}" for text in self.unusual]
        suspects = f"suspects: {names}; nothing is wrong {self.nothing:.0%}"
        return "\n".join([head, *rows, suspects, f"read {self.read}"])


def rank_metrics(path: str | Path, graph: CallGraph, began: str = "") -> MetricsAnswer:
    """Return the ranker's answer to a file of metrics; see `read_metrics`."""
    evidence, read = read_metrics(path, graph, began)
    chance = chances(load_ranker(), arrays_of_evidence(evidence))[0][0]
    order = np.argsort(-chance[:-1], kind="stable")[:SHOWN]
    suspects = [(evidence.graph.names[at], float(chance[at])) for at in order]
    first, most = suspects[0]
    possible = most >= POSSIBLE_FROM
    strange = sorted(evidence.measured(first), key=lambda row: -abs(z_score(row)))
    return MetricsAnswer(
        root=first if possible else "",
        sure=POSSIBLE if possible else UNSURE,
        suspects=suspects,
        nothing=float(chance[-1]),
        unusual=[row.text for row in strange[:SHOWN] if abs(z_score(row)) >= UNUSUAL],
        read=read,
    )


def read_metrics(path: str | Path, graph: CallGraph, began: str = "") -> tuple[Evidence, str]:
    """Return the evidence in a file of metrics, and a line about what was read.

    Args:
        path: CSV with the columns `COLUMNS`: ISO 8601 (UTC if it names no zone) or Unix seconds; a
            service of `graph`; one of `METRICS` (times in ms, shares in %); a number, or nothing
            for a missing sample.
        graph: who calls whom.
        began: when the trouble began; if empty, it began within the last three samples.

    Raises:
        ValueError: if the file cannot be read like this, or if no metric has `LEAST_BEFORE`
            samples before the window.
    """
    frame = _rows(path)
    for column, known in (("service", graph.names), ("metric", METRICS)):
        strange = frame[column][~frame[column].isin(known)]
        if len(strange):
            raise ValueError(
                f"{path}: unknown {column} {strange.iloc[0]!r:.60}; known are "
                f"{', '.join(known)}; leave out its rows or add it to the call graph"
            )
    step, end = _clock(path, frame)
    if began:
        (onset,) = _seconds("--began", pd.Series([began]))
        later = frame["time"][frame["time"] >= onset]
        if later.empty:
            raise ValueError(f"{path}: no sample is as late as {began!r:.60}, its last {_utc(end)}")
        end = min(end, later.min() + AFTER * step)
    # Samples are numbered from the end of the window: 0 to `SAMPLES` - 1 are in it.
    frame["number"] = np.floor((end - frame["time"]) / step + 0.5).astype(int)
    measures: dict[str, dict[str, Measure]] = {}
    before = 0  # samples before the window, of the metric with most
    for (service, metric), rows in frame[frame["number"] >= 0].groupby(SERIES):
        values = rows.drop_duplicates("number", keep="last").set_index("number")["value"]
        measures.setdefault(service, {})[metric] = _measure(service, metric, values)
        before = max(before, int((values.index >= SAMPLES).sum()))
    if before < LEAST_BEFORE:
        raise ValueError(
            f"{path}: {before} samples before the window of {SAMPLES}, at least {LEAST_BEFORE} are "
            "needed to tell what is usual; give an hour or more from before"
        )
    measured = sum(any(map(recent, own.values())) for own in measures.values())
    start = _utc(end - (SAMPLES - 1) * step)
    read = (
        f"{path}: {SAMPLES} samples, one every {step:g} s from {start} on, and up to {before} "
        f"before; {measured} of {len(graph.names)} services have metrics then"
    )
    return Evidence(graph, (), measures, (), ()), read


def _rows(path: str | Path) -> pd.DataFrame:
    """Return the rows that have a value, ordered by time, which is in Unix seconds."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: no CSV in UTF-8: {error}") from None
    if list(frame.columns) != COLUMNS or frame.empty:
        raise ValueError(
            f"{path}: expected rows under the header {','.join(COLUMNS)}, got "
            f"{len(frame)} under {','.join(map(str, frame.columns))!r:.60}"
        )
    frame["time"] = _seconds(path, frame["time"])
    values = pd.to_numeric(frame["value"], errors="coerce")
    wrong = frame["value"][(values.isna() & (frame["value"] != "")) | np.isinf(values)]
    if len(wrong):
        raise ValueError(
            f"{path}: {wrong.iloc[0]!r:.60} is no value; give a number, or nothing where a sample "
            "is missing"
        )
    frame["value"] = values
    twice = frame[frame.duplicated([*SERIES, "time"])]
    if len(twice):
        first = twice.iloc[0]
        raise ValueError(
            f"{path}: two values of {first['metric']} of {first['service']} at "
            f"{_utc(first['time'])}; combine those of its instances first"
        )
    return frame.dropna(subset="value").sort_values("time", kind="stable")


def _clock(path: str | Path, frame: pd.DataFrame) -> tuple[float, float]:
    """Return the seconds between samples and the time of the last: medians over all metrics."""
    series = frame.groupby(SERIES)["time"]
    steps = series.apply(lambda times: times.diff().median()).dropna()
    if steps.empty:
        raise ValueError(f"{path}: no metric has samples of two times; give an hour of each")
    step = float(steps.median())
    others = steps[(steps > 1.5 * step) | (steps < step / 1.5)]
    if len(others):
        service, metric = others.index[0]
        raise ValueError(
            f"{path}: {metric} of {service} has a sample every {others.iloc[0]:g} s, most metrics "
            f"every {step:g} s; bring all to one interval"
        )
    return step, float(series.max().median())


def _seconds(where: str | Path, texts: pd.Series) -> pd.Series:
    """Convert times to Unix seconds."""
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.notna().all() and numbers.between(FIRST_TIME, LAST_TIME).all():
        return numbers.astype(float)
    times = pd.to_datetime(texts, utc=True, format="ISO8601", errors="coerce")
    wrong = texts[times.isna()]
    if len(wrong):
        raise ValueError(
            f"{where}: {wrong.iloc[0]!r:.60} is no time; write ISO 8601 or Unix seconds (not "
            "milliseconds)"
        )
    return (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _measure(service: str, metric: str, by_number: pd.Series) -> Measure:
    """Return a metric of a service in the window, with what was usual before."""
    values = [by_number.get(number) for number in reversed(range(SAMPLES))]
    known = tuple(None if value is None else float(value) for value in values)
    usual = by_number[by_number.index >= SAMPLES]
    if len(usual) < LEAST_BEFORE:
        return Measure(service, metric, UNITS[metric], known)
    low, median, high = usual.quantile([0.05, 0.5, 0.95])
    deviation = 1.4826 * (usual - median).abs().median()
    return Measure(service, metric, UNITS[metric], known, median, low, high, deviation)
