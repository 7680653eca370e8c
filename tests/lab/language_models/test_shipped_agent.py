"""The agent in the package is the one whose results are published."""

import pytest

from triagelab.bench.published import read
from triagelab.bench.registry import named


@pytest.mark.parametrize("name, policy", [("agent", "trained"), ("base", "base")])
def test_its_weights_are_those_of_the_results(name, policy):
    rows = read("novice/seed-1/evaluation.parquet").query("policy == @policy")
    assert set(rows["weights"]) == {named(name).settings["weights"]}
