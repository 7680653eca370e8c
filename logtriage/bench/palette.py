"""What colour means, once for the whole repository: one palette for policies, one for tasks, one
for verdicts.

No colour stands in two. Within a palette any two can be told apart with normal sight and with each
of the three dichromacies, and all but the fillings of verdicts can be seen on white;
`tests/bench/test_palette.py` measures that. Reds and greys outside the palettes mean share: how
ill a service is, how often something happened.
"""

from __future__ import annotations

POLICY_COLOURS = {
    "random": "#949494",
    "constant": "#B05CD6",
    "loudest": "#C76C00",
    "novice": "#663300",
    "trace": "#2E9E5B",
    "belief": "#580063",
    "oracle": "#000000",
    "base": "#5F5A63",  # the embedded model before training ...
    "trained": "#1F5BFF",  # ... and after
}
OTHER_MODEL = "#331199"  # a model that a reader has brought; its row says which
TASK_COLOURS = {
    "single_crash": "#0698CA",
    "cascading_failure": "#D6219C",
    "silent_degradation": "#9B8804",
    "double_fault": "#510030",
}
VERDICT_COLOURS = {  # of the audit, in the order of a bar: teal is right, red is wrong
    "grounded": "#005F6B",
    "lucky": "#7CC4C6",
    "unanswered": "#EFEFEF",
    "misled": "#FFC08F",
    "reckless": "#C22F1B",
}
ILL = "Reds"  # a service: white is healthy, deep red fails every request
SHARE = "Greys"  # a table of shares: white is none, black is all
INK, FAINT = "#222222", "#B8B8B8"  # what is neither policy nor task


def policy_colour(name: str) -> str:
    """The colour of a policy, by its name in rollout frames; one for all models not listed."""
    return POLICY_COLOURS.get(name, OTHER_MODEL)


def words(name: str, lines: bool = False) -> str:
    """An identifier as a label: `silent_degradation` is "silent degradation", a word a `lines`."""
    return name.replace("_", "\n" if lines else " ")
