"""Labelled incidents of real clusters, converted from two public data sets and shipped here;
docs/real.md has a table of them.

A source is one file, `<source>.json.gz`, with its attribution and the rows that an agent is shown,
as arrays; `LICENSES/` holds the licences. `scripts/real_cases.py` at commit 264b8c9 made the cases
from the public repositories.
"""

import gzip
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from logtriage.play.observation import CallTime, LineCount, Measure
from logtriage.world.tasks import check_index
from logtriage.world.telemetry import Alert

SOURCES = ("petshop", "nezha-trainticket", "nezha-onlineboutique")
FOLDER = Path(__file__).parent


class Strict(BaseModel):
    """Reads these fields only, with exactly these types; a file also says how it was made."""

    model_config = ConfigDict(strict=True, frozen=True)


class Window(Strict):
    """When the samples were taken."""

    minutes: list[float]  # from the injection or the alarm, one per sample
    zero: int  # place of the sample nearest to it, or the first after it


class Truth(Strict):
    """What was injected, and where; never shown before the end."""

    root: str  # empty where nothing is wrong
    fault: str
    origin: str  # where the source has it; `how` gives details, if any
    how: str = ""
    # Only simulated cases have these; the sources do not know them.
    remedy: str = ""
    team: str = ""
    path: tuple[str, ...] = ()  # from the root, caller by caller, to the users


class Case(Strict):
    """One incident; baselines are from minutes without one."""

    id: str
    services: list[str]
    calls: list[tuple[str, str]]  # caller, callee
    window: Window
    alerts: list[Alert]
    measures: list[Measure]  # of services, over the window
    users: list[Measure] = []  # what users feel
    # In Train Ticket, a wait is the sum of two 90th percentiles: the time at the callee, and the
    # time that the caller waits beyond it.
    call_times: list[CallTime] = []
    line_counts: list[LineCount] = []  # per minute, after the injection
    logs: dict[str, list[str]] = {}  # by service, each `time LEVEL text`
    truth: Truth


class Source(Strict):
    """The cases and licence of a data set; `edges_from` says how the edges, if any, were made."""

    source: str
    licence: str
    attribution: str
    edges_from: str = ""
    cases: list[Case]


def load_source(name: str) -> Source:
    """Load a shipped source; `ValueError` for an unknown name."""
    if name not in SOURCES:
        known = ", ".join(SOURCES)
        raise ValueError(f"unknown split {name!r:.60} of real incidents; choose one of {known}")
    return _read(name)


@cache
def _read(name: str) -> Source:
    return Source.model_validate_json(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def load_case(source: str, index: int) -> Case:
    """Load a case by its number, from 0; `ValueError` for an unknown source or number."""
    cases = load_source(source).cases
    check_index(index, len(cases) - 1)
    return cases[index]
