"""What policies that need SciPy or torch did on the first incidents of each task of `test`, as
`make results` and `scripts/make_results.py smollm2` wrote it; and the incident that is shown first.
"""

import gzip
import json
from functools import cache
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded.json.gz")  # by name, then task, then index
# The language model that `watch` and README's picture show, by its names in that file.
BEFORE, AFTER = "SmolLM2 before GRPO", "SmolLM2 after GRPO"
# `watch`, the page and the picture open on it. tests/lab/bench/test_watch.py has the rule.
CHOSEN = ("cascading_failure", "test", 39)
GAINED, LOST = 9, 1  # of 100 cascades: those that it fails before alone, and after alone
WHY = (
    "Chosen since a language model, SmolLM2, fails before it is rewarded for anything (GRPO) and"
    f" not after (three seeds' weights averaged): so in {GAINED} of 100 cascades; the reverse"
    f" happens in {LOST}."
)


def recorded_actions(task: str, split: str, index: int) -> dict[str, list[str]]:
    """The actions of those recorded on an incident of the default call graph, by name."""
    recorded = _recorded() if split == "test" else {}
    at = {name: done.get(task, [])[index : index + 1] for name, done in recorded.items()}
    return {name: done[0].split() for name, done in at.items() if done}


@cache
def _recorded() -> dict[str, dict[str, list[str]]]:
    """The actions on each incident, separated by spaces: by name, then task, then index."""
    recorded: dict[str, dict[str, list[str]]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return recorded
