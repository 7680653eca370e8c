"""The shipped cases: whole, licensed, and read by a schema."""

import pytest

from triagelab.real import cases

COUNTS = {"petshop": 26, "nezha-trainticket": 23, "nezha-onlineboutique": 27}


@pytest.mark.parametrize("source", cases.SOURCES)
def test_a_source_is_whole(source):
    loaded = cases.load_source(source)
    assert loaded.source == source and len(loaded.cases) == COUNTS[source]
    assert len({case.id for case in loaded.cases}) == COUNTS[source]
    assert loaded.licence in loaded.attribution or "MIT" in loaded.attribution
    assert any(loaded.licence in path.name for path in (cases.FOLDER / "LICENSES").iterdir())
    for case in loaded.cases:
        named = {case.truth.root, *case.logs, *(row.service for row in case.line_counts)}
        named |= {name for call in case.calls for name in call}
        named |= {row.service for row in case.measures} | {name for name, _, _ in case.alerts}
        assert named <= set(case.services)
        samples = {len(row.values) for row in (*case.measures, *case.users)}
        assert samples == {len(case.window.minutes)}


def test_a_case_is_found_by_its_number():
    assert cases.load_case("petshop", 25) is cases.load_source("petshop").cases[25]
    for index in (26, -1, True, "0"):
        with pytest.raises(ValueError, match=r"index must be an integer >= 0 and <= 25, got"):
            cases.load_case("petshop", index)
    for source in ("test", {}, None):
        with pytest.raises(ValueError, match=r"unknown split .* of real incidents; choose one of"):
            cases.load_case(source, 0)
