"""All incidents that can be played, simulated or recorded: how to check, open and draw them."""

from markupsafe import Markup

from triagelab.real.cases import load_source
from triagelab.real.real_episode import REAL, TOP, RealEpisode, blames_root
from triagelab.realistic.production_episode import ProductionEpisode, tells_path

from .drawing import cause_of, closed_gate, draw, draw_parts, score_parts, told
from .play.episode import Episode
from .world.tasks import MAX_INDEX, TASKS, Task, check_index, check_split, check_task, splits_on
from .world.topology import Topology

# Tasks whose incidents were recorded, or look like it: nothing reacts to actions, only the root
# cause is scored, and each incident has a call graph of its own.
RECORDED: dict[str, type[RealEpisode]] = {
    one.task_name: one for one in (ProductionEpisode, RealEpisode)
}


def open_incident(
    task: str | Task, split: str, index: int, topology: Topology | None = None
) -> Episode | RealEpisode:
    """Open the incident at these coordinates; recorded ones have call graphs of their own."""
    if isinstance(task, str) and task in RECORDED:
        if topology is not None:
            own = f"{task} incidents have call graphs of their own"
            raise ValueError(f"{own}; leave out the topology")
        return RECORDED[task].open(split, index)
    if isinstance(task, str):
        _check_name(task, topology)
    return Episode.open(task, split, index, topology)


def check_coordinates(task: str, split: str, index: int) -> Task | None:
    """Return the settings of an incident's task, or None for a recorded incident. `ValueError` if
    there is no such incident.
    """
    if task in RECORDED:
        RECORDED[task].check_case(split, index)
        return None
    _check_name(task)
    check_split(split)
    check_index(index)
    return check_task(task)


def _check_name(task: str, topology: Topology | None = None) -> None:
    """Raise `ValueError` for an unknown name; unlike in `check_task`, the message lists all."""
    names = tasks_on(topology)
    if task not in names:
        raise ValueError(f"unknown task {task!r:.60}; choose one of {', '.join(names)}")


def tasks_on(topology: Topology | None) -> list[str]:
    """All tasks that can be played; on a custom call graph, only the simulated ones."""
    return [*TASKS, *RECORDED] if topology is None else list(TASKS)


def splits_of(task: str, topology: Topology | None = None) -> list[str]:
    """The splits of a task; those of real incidents are their sources."""
    return list(RECORDED[task].splits) if task in RECORDED else splits_on(topology)


def last_incident(task: str, split: str) -> int:
    """The highest index that can be opened."""
    return len(load_source(split).cases) - 1 if task == REAL else MAX_INDEX


def draw_episode(episode: Episode | RealEpisode) -> str:
    """Draw all that was shown as HTML, and once the episode is closed, the score and the truth."""
    return draw(episode.incident.topology, episode.opening, episode.history, draw_end(episode))


def draw_end(episode: Episode | RealEpisode) -> Markup:
    """Draw the score, with the answers beside the truth; empty while the episode is open."""
    score, record = episode.score, episode.record
    if score is None:
        return Markup()
    if isinstance(episode, Episode):
        parts = score_parts(score, record, episode.incident)
        return draw_parts(score, parts, cause_of(episode.incident), closed_gate(score, record))
    case, blamed = episode.incident.case, list(dict.fromkeys(record.root_causes))
    truth = case.truth
    parts = [told("root cause", record.root_cause, truth.root, score.root_cause, 1.0)]
    if isinstance(episode, ProductionEpisode):
        did = " on ".join(record.remediations[0] if record.remediations else ())
        right = f"{truth.remedy} on {truth.root}" if truth.root else ""
        way, found = ", ".join(truth.path), float(tells_path(blamed, case))
        parts += [
            told("remedy", did, right, score.remediation),
            told("team", record.team, truth.team, score.escalation),
            told("path to the users", ", ".join(blamed), way, found),
        ]
    else:
        in_time = float(blames_root(blamed, case))
        parts.append(told(f"in {TOP} guesses", ", ".join(blamed[:TOP]), truth.root, in_time))
    return draw_parts(score, parts, truth.fault.replace("_", " "))
