"""Names that say where a service stands: what an agent may read in the place of real ones.

An agent that has learned on a few names knows those names. So it reads, and calls, each service by
its path from where users enter: `edge`, its callees `app-1` and `app-2`, theirs `app-2-1` or
`db-2-1-3`. The numbers are shuffled for each incident, and say nothing else. Call graph and kinds
are those that every policy is given; where several callers share a service, its name follows the
shortest path, of equals the first. The world's text is left as it is: `play.tools.ToolSession`
translates what is read, and what is called.
"""

from random import Random
from typing import Any

from ...play.episode import BaseEpisode, incident_id
from ...play.renaming import Names
from ...world.call_graph import UNKNOWN_KIND, CallGraph
from ...world.exact import shuffled

PATH_NAMES = "path_names"  # in the config of a model that has learned to read them
KIND_WORDS = {
    "edge": "edge",
    "app": "app",
    "database": "db",
    "queue": "queue",
    UNKNOWN_KIND: "service",
}


def path_names(graph: CallGraph, seed: str) -> dict[str, str]:
    """Real name to path name, for every service; `seed` shuffles the numbers of siblings.

    Nothing depends on the real names. Whatever no edge leads to is numbered as another edge would.
    """
    random, paths, roots = Random(f"path names/{seed}"), dict[str, tuple[int, ...]](), 0
    for start in (*(graph.names[position] for position in graph.edges), *graph.names):
        if start in paths:
            continue
        roots += 1
        paths[start] = (roots,)
        reached = [start]
        for name in reached:  # it grows meanwhile: breadth first
            callees = graph.service(name).downstream
            numbers = shuffled(random, range(1, len(callees) + 1))
            for callee, number in zip(callees, numbers, strict=True):
                if callee not in paths:
                    paths[callee] = (*paths[name], number)
                    reached.append(callee)
    common = int(roots == 1)  # a number that all share says nothing
    return {
        name: "-".join([KIND_WORDS[graph.service(name).kind], *map(str, path[common:])])
        for name, path in paths.items()
    }


def incident_names(episode: BaseEpisode) -> dict[str, str]:
    """The path names of an episode's incident, shuffled by its coordinates."""
    return path_names(episode.incident.topology, incident_id(episode))


def names_for(config: dict[str, Any]) -> Names | None:
    """The names that a model of this configuration reads services by; None for their own."""
    return incident_names if config.get(PATH_NAMES) else None
