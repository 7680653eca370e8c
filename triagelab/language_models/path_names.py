"""Path names: names of services for a model that has learned no names of services.

Such a model reads and calls each service by its path from where users enter: `edge`, its callees
`app-a1` and `app-a2`, theirs `app-a2-b1` or `db-a2-b2`. The letter is the level, so each part of a
name belongs to one level. The numbers are shuffled for each incident and say nothing else. A
service with several callers is named by the shortest path to it, or by the first of equally short
ones.
"""

from random import Random
from string import ascii_lowercase
from typing import Any

from logtriage.play.episode import BaseEpisode, incident_id
from logtriage.play.renaming import Names
from logtriage.world.call_graph import UNKNOWN_KIND, CallGraph
from logtriage.world.exact import shuffled

KIND_WORDS = {
    "edge": "edge",
    "app": "app",
    "database": "db",
    "queue": "queue",
    UNKNOWN_KIND: "service",
}
# Which form of path names a model has learned, in its configuration.
NAMING = "letter per level"


def path_names(graph: CallGraph, seed: str) -> dict[str, str]:
    """Map the real name of every service to its path name; `seed` shuffles the siblings' numbers.

    Nothing depends on the real names. A service that users cannot reach is numbered like an entry
    service.
    """
    random, paths, roots = Random(f"path names/{seed}"), dict[str, tuple[int, ...]](), 0
    entries = [graph.names[position] for position in graph.entry_services]
    for start in (*entries, *graph.names):
        if start in paths:
            continue
        roots += 1
        paths[start] = (roots,)
        reached = [start]
        for name in reached:  # grows during the loop: breadth-first search
            callees = graph.service(name).downstream
            numbers = shuffled(random, range(1, len(callees) + 1))
            for callee, number in zip(callees, numbers, strict=True):
                if callee not in paths:
                    paths[callee] = (*paths[name], number)
                    reached.append(callee)
    common = int(roots == 1)  # a number that all names share says nothing
    return {
        name: "-".join([KIND_WORDS[graph.service(name).kind], *_steps(path[common:])])
        for name, path in paths.items()
    }


def _steps(path: tuple[int, ...]) -> list[str]:
    """Write each number of a path behind the letter of its level; after 26 levels `a` follows."""
    return [f"{ascii_lowercase[level % 26]}{number}" for level, number in enumerate(path)]


def incident_names(episode: BaseEpisode) -> dict[str, str]:
    """The path names of an episode's incident, shuffled by its coordinates."""
    return path_names(episode.incident.topology, incident_id(episode))


def names_for(config: dict[str, Any]) -> Names | None:
    """How a model with this configuration names services; None if it uses their real names.
    `ValueError` if it has learned another form of path names.
    """
    naming = config.get("path_names")
    if naming not in (None, NAMING):
        raise ValueError(
            f"this model has learned another form of path names ({naming!r}, not {NAMING!r}), and "
            "would not find its way; train it again"
        )
    return incident_names if naming else None
