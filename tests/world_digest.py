"""Digests of the world: what it shows, and its states to the last bit. Standard library only, so
that any Python can be asked for them.

    python tests/world_digest.py --check    compare with tests/golden/world.json and states.json
    python tests/world_digest.py --write    add this BENCHMARK_VERSION to them

A version that is there is never written again.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from logtriage.world.cluster import Cluster
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS
from logtriage.world.telemetry import Telemetry

GOLDEN = Path(__file__).parent / "golden"


def shown(incident):
    """What is shown of an incident in six ticks, the right remedy applied at the third."""
    cluster = Cluster(incident.topology, incident.injection, incident.untreated, incident.arrival)
    telemetry = Telemetry(incident, cluster, incident.stream("telemetry"))
    seen = [
        incident.root,
        incident.severity,
        incident.remedy,
        incident.team,
        incident.topology.names,
    ]
    for tick in range(6):
        if tick == 3 and incident.injection is not None:
            cluster.remediate(incident.remedy, incident.injection.position)
        seen += [
            [(*row[:2], str(row.value)) for row in telemetry.alerts()],
            [(row[0], *map(str, row[1:])) for row in telemetry.metrics()],
            telemetry.stream(),
            telemetry.sample(),
        ]
        cluster.advance()
    return seen


def states(incident):
    """Every number of an incident's network and of its untreated states; JSON keeps all digits."""
    topology = incident.topology
    return [vars(topology.network), topology.layout, incident.untreated, ()]


def digests(view, incidents):
    found = {}
    for task in TASKS:
        for split in SPLITS:
            digest = hashlib.sha256()
            for index in range(incidents):
                digest.update(json.dumps(view(sample_incident(task, split, index))).encode())
            found[f"{task}/{split}"] = digest.hexdigest()
    return found


# File to what it holds: a view of the first so many incidents of every task and split. Of 300
# networks of `unseen_topology`, 7 differed between Python 3.11 and 3.12 when `sum` made them.
VIEWS = {"world.json": (shown, 20), "states.json": (states, 40)}


def main(option):
    for name, (view, incidents) in VIEWS.items():
        path = GOLDEN / name
        versions = json.loads(path.read_text()) if path.exists() else {}
        pinned = versions.get(BENCHMARK_VERSION)
        if option == "--write" and pinned is None:
            versions[BENCHMARK_VERSION] = digests(view, incidents)
            path.write_text(json.dumps(versions, indent=1) + "\n")
        elif option == "--write":
            print(f"{name} holds {BENCHMARK_VERSION}; raise BENCHMARK_VERSION in world/tasks.py")
        elif pinned is None:
            sys.exit(f"{BENCHMARK_VERSION} is not in {name} yet; --write adds it")
        else:
            wrong = [key for key, one in digests(view, incidents).items() if pinned[key] != one]
            if wrong:
                version = sys.version.split()[0]
                sys.exit(
                    f"{name}: Python {version} sees another world in {', '.join(wrong)}; if "
                    "the world was meant to change, raise BENCHMARK_VERSION"
                )


if __name__ == "__main__":
    if sys.argv[1:] not in (["--check"], ["--write"]):
        sys.exit(__doc__)
    main(sys.argv[1])
