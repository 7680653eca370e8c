"""All incidents that can be played, simulated and real: their coordinates, and opening them."""

from ..drawing import Part, draw_parts, draw_verdict
from ..play.episode import Episode
from ..world.tasks import MAX_INDEX, TASKS, Task, check_index, check_split, check_task, splits_on
from ..world.topology import Topology
from .cases import SOURCES, load_case, load_source
from .real_episode import REAL, TOP, RealEpisode, blames_root


def open_incident(
    task: str | Task, split: str, index: int, topology: Topology | None = None
) -> Episode | RealEpisode:
    """The episode at these coordinates; incidents of `real` have call graphs of their own."""
    if task != REAL:
        if isinstance(task, str):
            _check_name(task, topology)
        return Episode.open(task, split, index, topology)
    if topology is not None:
        raise ValueError("real incidents have call graphs of their own; leave out the topology")
    return RealEpisode.open(split, index)


def check_coordinates(task: str, split: str, index: int) -> Task | None:
    """The settings of an incident's task, None for `real`; `ValueError` where there is none."""
    if task == REAL:
        load_case(split, index)
        return None
    _check_name(task)
    check_split(split)
    check_index(index)
    return check_task(task)


def _check_name(task: str, topology: Topology | None = None) -> None:
    """Raise `ValueError` for an unknown name; unlike `check_task`, the message names `real`."""
    names = tasks_on(topology)
    if task not in names:
        raise ValueError(f"unknown task {task!r:.60}; choose one of {', '.join(names)}")


def tasks_on(topology: Topology | None) -> list[str]:
    """All tasks that can be played; on a custom call graph the simulated ones."""
    return [*TASKS, REAL] if topology is None else list(TASKS)


def splits_of(task: str, topology: Topology | None = None) -> list[str]:
    """The splits of a task: of real incidents their sources."""
    return list(SOURCES) if task == REAL else splits_on(topology)


def last_incident(task: str, split: str) -> int:
    """The highest index that can be opened."""
    return len(load_source(split).cases) - 1 if task == REAL else MAX_INDEX


def draw_end(episode: Episode | RealEpisode) -> str:
    """The score beside what was answered and what was true; empty while the episode is open."""
    if episode.score is None:
        return ""
    if isinstance(episode, Episode):
        return draw_verdict(episode.score, episode.record, episode.incident)
    blamed, truth = episode.record.root_causes, episode.incident.case.truth
    first, guesses = blamed[0] if blamed else "none", ", ".join(blamed[:TOP]) or "none"
    in_time = float(blames_root(blamed, episode.incident.case))
    parts = [
        Part("root cause", first, truth.root, episode.score.root_cause, 1.0),
        Part(f"in {TOP} guesses", guesses, truth.root, in_time, 0.0),
    ]
    return draw_parts(episode.score, parts, truth.fault.replace("_", " "))
