"""What those who need SciPy or torch did on the first 200 incidents of each task of `test`, as
`make results` wrote it; and the incident that is shown first.
"""

import gzip
import json
from functools import cache
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded.json.gz")  # by name, then task, then index
# `watch`, the page and README's picture open on it. tests/lab/bench/test_watch.py has the rule.
CHOSEN = ("cascading_failure", "test", 39)
WHY = (
    "Chosen by a rule: the model fails before training and not after, as in 11 of 200 cascades;"
    " the reverse happens in 1."
)


def recorded_at(task: str, split: str, index: int) -> dict[str, list[str]]:
    """The actions of those recorded on an incident of the default call graph, by name."""
    recorded = _recorded() if split == "test" else {}
    at = {name: done.get(task, [])[index : index + 1] for name, done in recorded.items()}
    return {name: done[0].split() for name, done in at.items() if done}


@cache
def _recorded() -> dict[str, dict[str, list[str]]]:
    """The actions on each incident, separated by spaces: by name, then task, then index."""
    recorded: dict[str, dict[str, list[str]]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return recorded
