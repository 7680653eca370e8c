"""All incidents that can be played, simulated or recorded: how to check, open and draw them."""

from collections.abc import Mapping

from markupsafe import Markup

from . import registry
from .drawing import cause_of, draw, draw_parts, gate_reason, score_parts
from .play.episode import BaseEpisode, Episode, RecordedEpisode
from .world.tasks import MAX_INDEX, TASKS, Task, check_index, check_split, splits_on
from .world.topology import Topology

# Few incidents of `test`, for whoever pays per token: indices by task. `lite` was chosen blind: of
# the first 200 of each task, false alarms and each depth of the root have their share of ten, the
# lowest indices first.
SUITES = {
    "lite": {
        "single_crash": (0, 1, 2, 4, 6, 7, 8, 9, 11, 12),
        "cascading_failure": (0, 1, 2, 3, 4, 5, 7, 8, 9, 10),
        "silent_degradation": (0, 1, 2, 3, 4, 5, 6, 7, 8, 12),
    }
}


def recorded_task(task: str) -> type[RecordedEpisode] | None:
    """The task of that name if another package adds it, else None."""
    added = task in registry.names(registry.TASKS)
    return registry.load(registry.TASKS, task) if added else None


def find_task(task: str | Task, topology: Topology | None = None) -> Task | type[RecordedEpisode]:
    """Return the settings of a simulated task, or the class of another's episodes. `ValueError` for
    an unknown name, and for a task that cannot be played on a custom call graph.
    """
    if isinstance(task, Task):
        return task
    if task in [*TASKS]:  # a list: from the wire, it may be of any type
        return TASKS[task]
    recorded = recorded_task(task)
    if recorded is None:
        known, more = ", ".join(tasks_on(topology)), registry.hint(registry.TASKS)
        raise ValueError(f"unknown task {task!r:.60}; choose one of {known}{more}")
    if topology is not None:
        own = f"{task} incidents have call graphs of their own"
        raise ValueError(f"{own}; leave out the topology")
    return recorded


def open_incident(
    task: str | Task, split: str, index: int, topology: Topology | None = None
) -> BaseEpisode:
    """Open the incident at these coordinates; recorded ones have call graphs of their own."""
    known = find_task(task, topology)
    if isinstance(known, Task):
        return Episode.open(known, split, index, topology)
    return known.open(split, index)


def check_coordinates(task: str, split: str, index: int) -> Task | None:
    """An incident's task, None if recorded; `ValueError` if there is no such incident."""
    known = find_task(task)
    if isinstance(known, Task):
        check_split(split)
        check_index(index)
        return known
    check_index(index, known.last_index(split))
    return None


def tasks_on(topology: Topology | None) -> list[str]:
    """All tasks that can be played; on a custom call graph, only the simulated ones."""
    return list(TASKS) if topology is not None else [*TASKS, *registry.names(registry.TASKS)]


def splits_of(task: str, topology: Topology | None = None) -> list[str]:
    """The splits of a task; those of real incidents are their sources."""
    recorded = recorded_task(task)
    return splits_on(topology) if recorded is None else list(recorded.splits)


def suite_places(name: str) -> list[tuple[str, int]]:
    """Task and index of every incident of a suite, tasks in turn; `ValueError` if unknown."""
    if name not in SUITES:
        raise ValueError(f"unknown suite {name!r:.60}; choose {', '.join(SUITES)}")
    turns = zip(*SUITES[name].values(), strict=True)
    return [(task, index) for turn in turns for task, index in zip(SUITES[name], turn, strict=True)]


def last_incident(task: str, split: str) -> int:
    """The highest index that can be opened."""
    recorded = recorded_task(task)
    return MAX_INDEX if recorded is None else recorded.last_index(split)


def draw_episode(
    episode: BaseEpisode, links: Mapping[str, str] | None = None, marked: str = ""
) -> str:
    """Draw all that was shown as HTML (see `drawing.draw`), and once closed, score and truth."""
    if episode.done and isinstance(episode, Episode):
        marked = episode.incident.root or ""
    graph, end = episode.incident.topology, draw_end(episode)
    return draw(graph, episode.opening, episode.history, end, links, marked)


def draw_end(episode: BaseEpisode) -> Markup:
    """Draw the score, with the answers beside the truth; empty while the episode is open."""
    score = episode.score
    if score is None:
        return Markup()
    if isinstance(episode, RecordedEpisode):
        return draw_parts(score, episode.answers(), episode.cause)
    assert isinstance(episode, Episode)
    parts = score_parts(score, episode.record, episode.incident)
    return draw_parts(score, parts, cause_of(episode.incident), gate_reason(episode))
