"""Labelled incidents of real clusters, converted from two public data sets and shipped here.

| source | cases | what | licence |
|---|---|---|---|
| `petshop` | 26 | a shop on AWS: latency, availability, requests | CC-BY-4.0 |
| `nezha-trainticket` | 23 | 28 services: resources, latency, calls, log lines | MIT |
| `nezha-onlineboutique` | 27 | 10 services: resources, latency, calls | MIT |

A source is one file, `<source>.json.gz`: what its cases share, and the cases. `LICENSES/` beside it
holds the licences, and every file its attribution. How a case is made from the public repositories
is in `scripts/real_cases.py`.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, model_validator

SOURCES = ("petshop", "nezha-trainticket", "nezha-onlineboutique")
FOLDER = Path(__file__).parent


class Strict(BaseModel):
    """Nothing but what is named, and nothing of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Series(Strict):
    """A metric over the window.

    Attributes:
        values: a sample each; None where nothing was measured.
        usual: the median without an incident, and `mad` 1.4826 times the median distance from it,
            which is a normal distribution's sigma.
        range: between which nine of ten values lie then.
    """

    values: list[float | None]
    usual: float | None = None
    mad: float | None = None
    range: list[float] | None = None


class Window(Strict):
    """When the samples were taken: `minutes` from the injection or the alarm, one a sample, the one
    at place `zero` the nearest to it, or the first after it.
    """

    minutes: list[float]
    zero: int
    resolution_s: int
    zero_is: str


class CaseAlert(Strict):
    """A threshold that was crossed, as the source names the metric."""

    service: str
    metric: str
    value: float
    usual: float | None = None


class Edges(Strict):
    """What was measured of calls: a row a (caller, callee), with the names of its columns."""

    columns: list[str]
    rows: list[list[str | float | None]]


class LineRates(Strict):
    """Log lines a minute of a service, after the injection and in the minute before."""

    lines_per_min: float
    usual: float
    errors_per_min: float
    usual_errors: float
    warns_per_min: float
    usual_warns: float


class Truth(Strict):
    """What was injected, and where; never shown before the end. `origin` and `how` tell where the
    source says so.
    """

    root: str
    fault: str
    origin: str
    how: str = ""


class Case(Strict):
    """One incident."""

    id: str
    services: list[str]
    calls: list[tuple[str, str]]
    window: Window
    alerts: list[CaseAlert]
    metrics: dict[str, dict[str, Series]]
    users: dict[str, Series] = {}
    edges: Edges | None = None
    logs: dict[str, list[str]] = {}
    log_minutes: float = 0.0  # after the injection, from which the lines and their counts are
    log_counts: dict[str, LineRates] = {}
    truth: Truth

    @model_validator(mode="after")
    def _names_its_services(self) -> Case:
        named = {self.truth.root, *self.metrics, *self.logs, *self.log_counts}
        named |= {one.service for one in self.alerts} | {one for call in self.calls for one in call}
        unknown = sorted(named - set(self.services))
        if unknown:
            raise ValueError(f"{self.id} names {', '.join(unknown)}, which are not its services")
        samples = len(self.window.minutes)
        for service, metrics in self.metrics.items():
            for name, series in metrics.items():
                if len(series.values) != samples:
                    raise ValueError(
                        f"{self.id}: {name} of {service} has {len(series.values)} values, and the "
                        f"window has {samples}"
                    )
        return self


class Source(Strict):
    """The cases of a data set, and what they share: where they come from, and under which licence.

    The names that end in `from` tell how that part was obtained.
    """

    source: str
    licence: str
    attribution: str
    origin_url: str
    calls_from: str
    usual_from: str
    alerts_from: str
    logs_from: str = ""
    edges_from: str = ""
    cases: list[Case]


def check_source(name: str) -> None:
    """Raise `ValueError` for an unknown source; the message names the known ones."""
    if name not in SOURCES:
        raise ValueError(
            f"unknown split {name!r:.60} of real incidents; choose one of {', '.join(SOURCES)}"
        )


@cache
def load_source(name: str) -> Source:
    """A shipped source.

    Raises:
        ValueError: for an unknown source, or a file that breaks the schema.
    """
    check_source(name)
    return Source.model_validate_json(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def load_case(source: str, index: int) -> Case:
    """A case of a source by its number, from 0.

    Raises:
        ValueError: for an unknown source or number; the message says which there are.
    """
    check_source(source)  # what is no text cannot even be looked up
    cases = load_source(source).cases
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(cases):
        raise ValueError(
            f"{source} has the incidents 0 to {len(cases) - 1}, got {index!r:.60}; choose one"
        )
    return cases[index]
