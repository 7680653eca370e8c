"""Windows cut from an incident: the root is suspected where it can be known, and nobody on a calm
day. results/own-logs.md has the results of the half that the rules were made without.
"""

from pathlib import Path

import operators
from pasted_windows import measure

PAGE = Path(__file__).parents[2] / "results" / "own-logs.md"


def test_pasted_windows_name_the_root_and_calm_ones_nobody():
    counts = measure("first")
    assert counts["sick, first suspect right"] >= 0.8 * counts["sick"] > 40
    assert counts["sick, named rightly"] >= 0.9 * counts["sick, named"] >= 0.54 * counts["sick"]
    assert counts["calm, named"] <= 0.05 * counts["calm"] and not counts["likely and wrong"]
    assert counts["sick, cause shown"] >= 0.8 * counts["sick, named rightly"]


def test_the_page_says_what_comes_of_logs_as_operators_paste_them():
    page = PAGE.read_text()
    for name in operators.SETS:
        assert operators.row_of(name) in page
