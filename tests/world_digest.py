"""A digest of what the world shows, standard library only, so that any Python can be asked for it.

python tests/world_digest.py --check     compare with what tests/golden/world.json holds of this
BENCHMARK_VERSION python tests/world_digest.py --write     add a new version to it; a version that
is there is never written again
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from logtriage.world.cluster import Cluster
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import ALL_TASKS, BENCHMARK_VERSION, SPLITS
from logtriage.world.telemetry import Telemetry, plain

GOLDEN = Path(__file__).parent / "golden" / "world.json"


def digests():
    found = {}
    for task in ALL_TASKS:
        for split in SPLITS:
            digest = hashlib.sha256()
            for index in range(20):
                incident = sample_incident(task, split, index)
                cluster = Cluster(
                    incident.topology, incident.injections, incident.untreated, incident.arrival
                )
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
                        [(*row[:2], plain(row.value)) for row in telemetry.alerts()],
                        [(row[0], *map(plain, row[1:])) for row in telemetry.metrics()],
                        telemetry.stream(),
                        telemetry.sample(),
                    ]
                    cluster.advance()
                digest.update(json.dumps(seen).encode())
            found[f"{task}/{split}"] = digest.hexdigest()
    return found


if __name__ == "__main__":
    versions = json.loads(GOLDEN.read_text())
    if sys.argv[1:] == ["--write"]:
        if BENCHMARK_VERSION in versions:
            sys.exit(
                f"{BENCHMARK_VERSION} is pinned; raise BENCHMARK_VERSION in world/tasks.py and say "
                "why in LOG.md, or, if nobody has this version yet, git checkout tests/golden"
            )
        GOLDEN.write_text(json.dumps({**versions, BENCHMARK_VERSION: digests()}, indent=1) + "\n")
    elif sys.argv[1:] == ["--check"]:
        if BENCHMARK_VERSION not in versions:
            sys.exit(f"{BENCHMARK_VERSION} is not in {GOLDEN.name} yet; --write adds it")
        pinned = versions[BENCHMARK_VERSION]
        wrong = [name for name, digest in digests().items() if pinned.get(name) != digest]
        sys.exit(
            f"Python {sys.version.split()[0]} sees another world in {wrong}; raise"
            " BENCHMARK_VERSION"
            if wrong
            else 0
        )
    else:
        sys.exit(__doc__)
