"""Digests of what incidents show, of their states to the last bit, and of what episodes say and
score. Standard library only, so that any Python can be asked for them.

    python tests/core/digests.py --check    compare with tests/core/golden/
    python tests/core/digests.py --write    add this BENCHMARK_VERSION; one that is there stays
"""

import hashlib
import json
import sys
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.cluster import Cluster
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from logtriage.world.telemetry import Telemetry

GOLDEN = Path(__file__).parent / "golden"


def observed(incident):
    """What is shown of an incident in six ticks, the right remedy applied at the third."""
    cluster = Cluster(incident.topology, incident.injection, incident.untreated, incident.arrival)
    telemetry = Telemetry(incident, cluster, incident.stream("telemetry"))
    truth = [incident.root, incident.severity, incident.remedy, incident.team]
    seen = [*truth, incident.topology.names]
    for tick in range(6):
        if tick == 3 and incident.injection is not None:
            cluster.remediate(incident.remedy, incident.injection.position)
        seen += [
            [(*row[:2], str(row.value)) for row in telemetry.alerts()],
            [(row[0], *map(str, row[1:])) for row in telemetry.metrics()],
            telemetry.opening_lines(),
            telemetry.sample(),
        ]
        cluster.advance()
    return seen


def states(incident):
    """Every number of an incident's network and of its untreated states; JSON keeps all digits."""
    topology = incident.topology
    return [vars(topology.network), topology.layout, incident.untreated, ()]


def played(incident, right):
    """Ask around, answer (rightly, or with the wrong service and team), close: every observation,
    and the score up to its total.
    """
    episode, names = Episode(incident), incident.topology.names
    root, team = names[-1], "security"
    if right:
        root, team = incident.root or names[0], incident.team or "sre"
    actions = [
        Action("request_more_logs", ("all",)),
        Action("request_more_logs", (root,)),
        Action("classify_severity", ("P2",)),
        Action("identify_root_cause", (root,)),
        Action("remediate", (incident.remedy or "scale", root)),
        Action("escalate", (team,)),
        Action("escalate", ("ceo",)),
        Action("resolve"),
    ]
    seen = [render(episode.opening, incident.topology)]
    return [*seen, *(render(episode.act(action)) for action in actions)], episode.score[:8]


# File to how many incidents of every task and split it holds, and what is digested of them. Of 300
# networks of `unseen_topology`, 7 differed between Python 3.11 and 3.12 when `sum` made them.
VIEWS = {
    "world.json": (20, lambda incidents: map(observed, incidents)),
    "states.json": (40, lambda incidents: map(states, incidents)),
    "scores.json": (
        20,
        lambda incidents: [[played(*turn) for turn in product(incidents, (True, False))]],
    ),
}


def digests(count, view):
    """Task and split to the digest of their first incidents."""
    digested = {}
    for task, split in product(TASKS, SPLITS):
        incidents = [sample_incident(task, split, index) for index in range(count)]
        text = "".join(map(json.dumps, view(incidents)))
        digested[f"{task}/{split}"] = hashlib.sha256(text.encode()).hexdigest()
    return digested


def main(option):
    for name, view in VIEWS.items():
        path = GOLDEN / name
        versions = json.loads(path.read_text())
        pinned = versions.get(BENCHMARK_VERSION)
        if option == "--write" and pinned is None:
            versions[BENCHMARK_VERSION] = digests(*view)
            path.write_text(json.dumps(versions, indent=1) + "\n")
        elif option == "--write":
            print(
                f"{name} holds {BENCHMARK_VERSION}; raise BENCHMARK_VERSION in world/tasks.py and "
                "say why in the log, or, if nobody has this version yet, undo what is in golden/"
            )
        elif pinned is None:
            sys.exit(f"{BENCHMARK_VERSION} is not in {name} yet; --write adds it")
        elif wrong := [key for key, own in digests(*view).items() if pinned[key] != own]:
            sys.exit(
                f"{name}: Python {sys.version.split()[0]} sees another world in {', '.join(wrong)};"
                " if the world or the score was meant to change, raise BENCHMARK_VERSION"
            )


if __name__ == "__main__":
    if sys.argv[1:] not in (["--check"], ["--write"]):
        sys.exit(__doc__)
    main(sys.argv[1])
