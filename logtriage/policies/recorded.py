"""What others did on the first 200 incidents of each task of `test`, and which one is shown first.

`belief` may need a second and SciPy, and the agents need torch, so what they did is read from
`recorded.json.gz`, which `make results` writes.
"""

import gzip
import json
from functools import cache
from pathlib import Path

from ..world.topology import Topology

RECORDED = Path(__file__).with_name("recorded.json.gz")
RECORDED_SPLIT = "test"
# The cascade on which `watch`, the page and README's picture open; tests/lab/bench/test_watch.py
# has the rule.
CHOSEN = 39
WHY = (
    "Chosen by a rule: the model fails here before training and not after it, "
    "as in 11 of 200 cascades."
)


def recorded_at(
    task: str, split: str, index: int, topology: Topology | None
) -> dict[str, list[str]]:
    """The actions of those recorded on an incident, by name; none on a custom call graph."""
    if split != RECORDED_SPLIT or topology is not None:
        return {}
    recorded = {name: done.get(task, [])[index : index + 1] for name, done in _recorded().items()}
    return {name: done[0].split() for name, done in recorded.items() if done}


@cache
def _recorded() -> dict[str, dict[str, list[str]]]:
    """The actions on each incident, separated by spaces: by name, then task, then index."""
    recorded: dict[str, dict[str, list[str]]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return recorded
