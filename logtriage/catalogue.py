"""All incidents that can be played, simulated and real: their coordinates, and opening them."""

from collections.abc import Callable

from .drawing import Part, draw_parts, draw_verdict
from .play.episode import Episode
from .production.production_episode import (
    PRODUCTION,
    ProductionEpisode,
    check_production,
    production_case,
    tells_path,
)
from .production.production_episode import SPLITS as PRODUCTION_SPLITS
from .real.cases import SOURCES, Case, load_case, load_source
from .real.real_episode import REAL, TOP, RealEpisode, blames_root
from .world.tasks import MAX_INDEX, TASKS, Task, check_index, check_split, check_task, splits_on
from .world.topology import Topology

# Tasks whose incidents were recorded, or look like it: nothing reacts, the root cause alone is
# scored, and each incident has a call graph of its own.
RECORDED: dict[str, Callable[[str, int], RealEpisode]] = {
    PRODUCTION: ProductionEpisode.open,
    REAL: RealEpisode.open,
}


def open_incident(
    task: str | Task, split: str, index: int, topology: Topology | None = None
) -> Episode | RealEpisode:
    """The episode at these coordinates; recorded incidents have call graphs of their own."""
    if isinstance(task, str) and task in RECORDED:
        if topology is not None:
            own = f"{task} incidents have call graphs of their own"
            raise ValueError(f"{own}; leave out the topology")
        return RECORDED[task](split, index)
    if isinstance(task, str):
        _check_name(task, topology)
    return Episode.open(task, split, index, topology)


def check_coordinates(task: str, split: str, index: int) -> Task | None:
    """The settings of an incident's task, None for one that was recorded; `ValueError` where there
    is none.
    """
    if task == REAL:
        load_case(split, index)
        return None
    if task == PRODUCTION:
        check_production(split, index)
        return None
    _check_name(task)
    check_split(split)
    check_index(index)
    return check_task(task)


def _check_name(task: str, topology: Topology | None = None) -> None:
    """Raise `ValueError` for an unknown name; unlike `check_task`, the message names all."""
    names = tasks_on(topology)
    if task not in names:
        raise ValueError(f"unknown task {task!r:.60}; choose one of {', '.join(names)}")


def tasks_on(topology: Topology | None) -> list[str]:
    """All tasks that can be played; on a custom call graph the simulated ones."""
    return [*TASKS, *RECORDED] if topology is None else list(TASKS)


def splits_of(task: str, topology: Topology | None = None) -> list[str]:
    """The splits of a task: of real incidents their sources."""
    if task == PRODUCTION:
        return list(PRODUCTION_SPLITS)
    return list(SOURCES) if task == REAL else splits_on(topology)


def last_incident(task: str, split: str) -> int:
    """The highest index that can be opened."""
    return len(load_source(split).cases) - 1 if task == REAL else MAX_INDEX


def recorded_case(task: str, split: str, index: int) -> Case:
    """The case at these coordinates of a task of `RECORDED`, with its truth."""
    return production_case(split, index) if task == PRODUCTION else load_case(split, index)


def draw_end(episode: Episode | RealEpisode) -> str:
    """The score beside what was answered and what was true; empty while the episode is open."""
    if episode.score is None:
        return ""
    if isinstance(episode, Episode):
        return draw_verdict(episode.score, episode.record, episode.incident)
    record, truth = episode.record, episode.incident.case.truth
    blamed = list(dict.fromkeys(record.root_causes))
    root, score = truth.root or "none", episode.score
    parts = [Part("root cause", record.root_cause or "none", root, score.root_cause, 1.0)]
    if isinstance(episode, ProductionEpisode):
        did = " on ".join(record.remediations[0]) if record.remediations else "none"
        right = f"{truth.remedy} on {truth.root}" if truth.root else "none"
        parts += [
            Part("remedy", did, right, score.remediation, 0.0),
            Part("team", record.team or "none", truth.team or "none", score.escalation, 0.0),
            _guess(
                "path to the users", blamed, truth.path, tells_path(blamed, episode.incident.case)
            ),
        ]
    else:
        in_time = blames_root(record.root_causes, episode.incident.case)
        parts.append(_guess(f"in {TOP} guesses", blamed[:TOP], (truth.root,), in_time))
    return draw_parts(score, parts, truth.fault.replace("_", " "))


def _guess(name: str, blamed: list[str], truth: tuple[str, ...], right: bool) -> Part:
    return Part(name, ", ".join(blamed) or "none", ", ".join(truth) or "none", float(right), 0.0)
