"""Logs of many kinds, written for this test and half of them never looked at while the reader was
made: whose trouble it was is found in whatever form they are written.
"""

from functools import cache

import pytest
from corpus import CLIENTS, FORMATS, ROOT, incident, scenarios, silent

from logtriage.logs.answer import answer_of
from logtriage.logs.log import read_named
from logtriage.logs.names import REPLICA
from logtriage.logs.suspects import LIKELY

ONSET = ":48:1"  # minute and seconds, which are the same in all zones
INCIDENT, SCENARIOS = incident(), scenarios()


@cache
def in_format(name):
    return answer_of(read_named(FORMATS[name](INCIDENT)))


@cache
def of_client(name):
    return answer_of(read_named(silent(name)))


@cache
def of_scenario(name):
    return answer_of(read_named(SCENARIOS[name].files))


def is_right(name):
    """Whether somebody who may be named is, or, where nobody may be, nobody for sure."""
    answer, roots = of_scenario(name), SCENARIOS[name].roots
    return answer.root in roots if roots else answer.sure != LIKELY


@pytest.mark.parametrize("name", FORMATS)
def test_the_root_and_the_onset_are_found_in_every_format(name):
    answer = in_format(name)
    assert answer.root == answer.evidence[0].service == ROOT
    chain = [REPLICA.sub("", one) for one in answer.chain]
    assert ONSET in answer.began and chain == [ROOT, "orders", "gateway"]
    files = FORMATS[name](INCIDENT)
    for one in answer.evidence if "sed" in answer.next else ():  # else lines are parts of records
        line = files[one.file].decode().split("\n")[one.number - 1]
        assert all(word in line for word in one.line.split() if word.isalpha() and word.islower())


def test_in_nearly_every_format_the_answer_is_sure():
    assert len(FORMATS) == 48 and sum(in_format(name).sure == LIKELY for name in FORMATS) >= 46


@pytest.mark.parametrize("name", CLIENTS)
def test_nobody_else_is_blamed_for_sure_in_the_words_of_any_client(name):
    answer = of_client(name)
    assert answer.sure != LIKELY or answer.root == ROOT


def test_who_prints_nothing_is_found_by_the_words_of_clients():
    assert len(CLIENTS) == 50 and sum(of_client(name).root == ROOT for name in CLIENTS) >= 46


@pytest.mark.parametrize("name", SCENARIOS)
def test_nobody_is_blamed_for_sure_who_is_not_the_root(name):
    assert of_scenario(name).sure != LIKELY or is_right(name)


def test_the_roots_of_odd_incidents_are_found():
    assert len(SCENARIOS) == 54 and sum(map(is_right, SCENARIOS)) >= 44
