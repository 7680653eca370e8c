"""An incident of `production`: the rows that an agent is shown, the truth, and how it is played.

    production_case("test", 7)
    ProductionEpisode.open("test", 7)

It shows what a real incident shows, to three significant digits (calls to four), and is scored
in the same way: 1 if the first service blamed is the root, or if nothing is wrong and the incident
is ignored, with nobody blamed, fixed or paged. These are reported separately, and not scored:

| question | answered by |
|---|---|
| the remedy | the first `remediate`, of the root |
| the team | the first `escalate` |
| how it spread | the services blamed after the root: caller by caller, up to the users |
"""

import tomllib
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import TypeVar

import numpy as np

from logtriage.play.episode import Answer, final_score
from logtriage.play.observation import CallTime, LineCount, Measure
from logtriage.play.scoring import Record, Score
from logtriage.world.tasks import MAX_INDEX, check_index
from logtriage.world.telemetry import Alert

from ..real.cases import Case, Truth, Window
from ..real.real_episode import RealEpisode
from .generator import ONSETS, SAMPLES, ZERO, Block
from .mesh import AT, BLOCK, METRICS
from .randomisation import FAILURES, NO_FAULT

PRODUCTION = "production"  # the name of the task
SPLITS = ("train", "test")
UNITS = dict(zip(METRICS, ("ms", "ms", "ms", "%", "/s", "%", "%", "%"), strict=True))
REACHED = 0.1  # a fault has reached a service that is slower or failing by this share
LINES_SHOWN = 5  # log lines of a service at most
NAMING = 0.05  # share of the complaints that name another service
# What services write, and what they are called.
WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text())
NOUNS = WORDS["nouns"].split()

Place = TypeVar("Place", int, str)  # a service, by number or by name


@lru_cache(maxsize=8)
def block_of(split: str, number: int) -> Block:
    """Return a block, which is cached while its incidents are opened one after another."""
    return Block(split, number)


def names_of(split: str, index: int) -> list[str]:
    """Return distinct names of one style for an incident's services, in the order of its block."""
    size = block_of(split, index // BLOCK).mesh.own.shape[1]
    random = Random(f"production/{split}/{index}/names")
    style = random.choice(WORDS["styles"])
    prefix = "".join(random.choice("abcdefghijklmnoprstuvw") for _ in range(random.randint(2, 4)))
    names = []
    for noun in random.sample(NOUNS, size):
        end = random.choice(WORDS[style["ends"]]) if "ends" in style else ""
        names.append(style["form"].format(noun=noun, Noun=noun.title(), prefix=prefix, end=end))
    return names


@lru_cache(maxsize=64, typed=True)
def production_case(split: str, index: int) -> Case:
    """Return the incident with this index, from 0; raise `ValueError` if there is none."""
    check_index(index, ProductionEpisode.last_index(split))
    block, at = block_of(split, index // BLOCK), index % BLOCK
    name, names = f"production/{split}/{index}", names_of(split, index)
    order = sorted(range(len(names)), key=names.__getitem__)
    kind, root = int(block.kind[at]), int(block.root[at])
    fault = FAILURES[kind] if kind != NO_FAULT else None
    minutes = float(block.mesh.period[at, 0]) / 60.0
    calls = np.argwhere(block.mesh.calls[at])
    logged = bool(block.logged[at])
    random = Random(f"{name}/lines")
    return Case(
        id=name,
        services=sorted(names),
        calls=sorted((names[caller], names[callee]) for caller, callee in calls),
        window=Window(minutes=[(sample - ZERO) * minutes for sample in range(SAMPLES)], zero=ZERO),
        alerts=[alert for place in order for alert in _alerts(block, at, place, names[place])],
        measures=[
            _measure(block, at, place, names[place], metric)
            for place in order
            for metric in METRICS
            if block.mesh.measured[at, place, AT[metric]]
        ],
        call_times=_call_times(block, at, names),
        line_counts=[_line_count(block, at, place, names[place]) for place in order if logged],
        logs={names[place]: _log(block, at, place, names, random) for place in order if logged},
        truth=Truth(
            root=names[root] if fault else "",
            fault=fault.name if fault else "none",
            origin=name,
            how=f"onset in sample {ONSETS[block.onset[at]]:g}",
            remedy=fault.remedy if fault else "",
            team=fault.team if fault else "",
            path=tuple(names[place] for place in _spread_path(block, at)) if fault else (),
        ),
    )


def path_to_users(
    root: Place, callers: Callable[[Place], Iterable[Place]], hurt: Callable[[Place], float]
) -> list[Place]:
    """Go from a root up to the users, each time to the most hurt caller (at least `REACHED`)."""
    way = [root]
    while True:
        worst = max(
            (place for place in callers(way[-1]) if place not in way), key=hurt, default=None
        )
        if worst is None or hurt(worst) < REACHED:
            return way
        way.append(worst)


def _spread_path(block: Block, at: int) -> list[int]:
    """Return the services by which a fault reached users, judged by failing and slow requests."""
    hurt = block.change.errors[at] + np.minimum(block.change.latency[at], 10.0)
    calls = block.mesh.calls[at]
    return path_to_users(
        int(block.root[at]),
        lambda place: np.flatnonzero(calls[:, place]).tolist(),
        hurt.__getitem__,
    )


def _alerts(block: Block, at: int, service: int, name: str) -> list[Alert]:
    """The alerts of a service, with the worst value since the fault began."""
    slow, fails = block.seen.alerts[at, service]
    alerts = []
    if fails:
        share = 1.0 - block.failures[at, service] / np.maximum(block.requests[at, service], 1)
        alerts.append(Alert(name, "errors", _short(100.0 * (1.0 - share.min()))))
    if slow:
        metric = "latency" if block.mesh.measured[at, service, AT["latency"]] else "p95"
        values = block.seen.values[at, service, AT[metric], ZERO + 1 :]
        if np.isfinite(values).any():
            alerts.append(Alert(name, metric, _short(np.nanmax(values))))
    return alerts


def _measure(block: Block, at: int, service: int, name: str, metric: str) -> Measure:
    """A metric of a service over time, and what is usual."""
    seen, place = block.seen, (at, service, AT[metric])
    counted = metric == "requests" and block.mesh.period[at, 0] > 60.0  # not a rate per second
    return Measure(
        name,
        metric,
        "" if counted else UNITS[metric],
        tuple(map(_known, seen.values[place])),
        *(_known(array[place]) for array in (seen.usual, seen.low, seen.high, seen.deviation)),
    )


def _call_times(block: Block, at: int, names: list[str]) -> list[CallTime]:
    """How long calls take, where that is known."""
    waits = block.seen.waits[at]
    known = np.argwhere(np.isfinite(waits[..., 0]))
    return sorted(
        CallTime(names[caller], names[callee], *(_short(wait, 4) for wait in waits[caller, callee]))
        for caller, callee in known
    )


def _line_count(block: Block, at: int, service: int, name: str) -> LineCount:
    """Log lines of a service, errors and warnings among them, each a minute."""
    lines = block.lines
    counts = (
        lines.ordinary + lines.errors + lines.warnings,
        lines.usual + lines.usual_errors + lines.usual_warnings,
        *lines[2:],
    )
    return LineCount(name, *(_short(array[at, service]) for array in counts))


def _log(block: Block, at: int, service: int, names: list[str], random: Random) -> list[str]:
    """Write some lines of a service: a deployment, complaints, and ordinary lines."""
    callees = [names[place] for place in np.flatnonzero(block.mesh.calls[at, service])]
    complaints = round(float(block.lines.errors[at, service] * block.minutes[at, 0]))
    texts = [WORDS["deploy"]] if block.deployed[at, service] else []
    for _ in range(min(complaints, LINES_SHOWN - 2)):
        another = random.random() < NAMING and callees
        texts.append(WORDS["about_another"] if another else random.choice(WORDS["complaints"]))
    texts += random.choices(WORDS["ordinary"], k=LINES_SHOWN - len(texts))
    seconds = sorted(random.uniform(0.0, 120.0) for _ in texts)
    lines = []
    for second, text in zip(seconds, texts, strict=True):
        filled = text.format(
            n=random.randint(1, 9999),
            ms=random.randint(1, 400),
            noun=random.choice(("order", "user", "item", "job")),
            callee=random.choice(callees) if callees else "",
        )
        lines.append(f"10:{30 + int(second // 60)}:{second % 60:06.3f} {filled}")
    return lines


def _short(value: float, digits: int = 3) -> float:
    """Round to so many significant digits."""
    return float(f"{float(value):.{digits}g}")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else _short(value)


class ProductionEpisode(RealEpisode):
    """An incident being played; no action changes it."""

    task_name = PRODUCTION
    splits = SPLITS
    find_case = staticmethod(production_case)
    notice = (
        "the root cause alone counts, blamed first; then blame, one by one, the services through "
        "which it reached the users; ignore where nothing is wrong"
    )

    @classmethod
    def last_index(cls, split: str) -> int:
        if split not in SPLITS:
            rule = f"choose one of {', '.join(SPLITS)}"
            raise ValueError(f"unknown split {split!r:.60} of {PRODUCTION}; {rule}")
        return MAX_INDEX

    def answers(self) -> list[Answer]:
        record, case, score = self.record, self.case, final_score(self)
        did = " on ".join(record.remediations[0] if record.remediations else ())
        right = f"{case.truth.remedy} on {case.truth.root}" if case.truth.root else ""
        path, tells = ", ".join(case.truth.path), float(names_path(self.guesses, case))
        return [
            self._root_answer(),
            Answer("remedy", did, right, score.remediation),
            Answer("team", record.team, case.truth.team, score.escalation),
            Answer("path to the users", ", ".join(self.guesses), path, tells),
        ]

    def _judge(self) -> Score:
        """The root alone makes the score; remedy and team are reported."""
        record, truth = self.record, self.case.truth
        right = float(found_root(record, self.case))
        remedied = bool(truth.root) and record.remediations[:1] == [(truth.remedy, truth.root)]
        paged = bool(truth.root) and record.team == truth.team
        return Score(0.0, right, float(remedied), float(paged), 0.0, 0.0, 1.0, right, right)


def found_root(record: Record, case: Case) -> bool:
    """Whether the root was blamed first, or the incident rightly ignored as nothing is wrong."""
    ignored = record.closed_by == "ignore"
    if not case.truth.root:
        return ignored and not (record.root_causes or record.remediations or record.teams)
    return not ignored and record.root_cause == case.truth.root


def names_path(blamed: Iterable[str], case: Case) -> bool:
    """Whether the services blamed are the path of the fault, in order, up to the users."""
    return tuple(dict.fromkeys(blamed)) == case.truth.path
