"""A digest of what episodes say and score; unlike `world_digest` it needs the whole package.

python tests/score_digest.py --write     add this BENCHMARK_VERSION to tests/golden/scores.json; one
that is there stays
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import BENCHMARK_VERSION, SPLITS, TASKS

GOLDEN = Path(__file__).parent / "golden" / "scores.json"


def play(incident, half_right):
    """Ask around, answer (rightly, or with the wrong service and team), close: every observation,
    and the score.
    """
    episode, names = Episode(incident), incident.topology.names
    root, team = (names[-1], "security")
    if half_right:
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
    seen += [render(episode.act(action)) for action in actions]
    return seen, episode.score


def digests():
    found = {}
    for task in TASKS:
        for split in SPLITS:
            incidents = [sample_incident(task, split, index) for index in range(20)]
            played = [
                play(incident, half_right) for incident in incidents for half_right in (True, False)
            ]
            found[f"{task}/{split}"] = hashlib.sha256(json.dumps(played).encode()).hexdigest()
    return found


if __name__ == "__main__":
    versions = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    if BENCHMARK_VERSION in versions:
        sys.exit(
            f"{BENCHMARK_VERSION} is pinned; raise BENCHMARK_VERSION in world/tasks.py and say "
            "why in LOG.md, or, if nobody has this version yet, git checkout tests/golden"
        )
    GOLDEN.write_text(json.dumps({**versions, BENCHMARK_VERSION: digests()}, indent=1) + "\n")
