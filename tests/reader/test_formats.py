"""Logs of many kinds, written for this test and half of them never looked at while the reader was
made: whose trouble it was is found in whatever form they are written.
"""

from functools import cache

import pytest
from corpus import CLIENTS, FORMATS, ROOT, SCENARIOS, in_format, of_client, of_scenario

from logreader.answer import answer_of
from logreader.log import read_named
from logreader.names import REPLICA
from logreader.sureness import LIKELY

ONSET = ":48:1"  # minute and seconds, which are the same in all zones


@cache
def answer_to(write, name):
    """The answer to a log, and its files."""
    files = write(name)
    return answer_of(read_named(files)), files


def answers(write, names):
    return [answer_to(write, name)[0] for name in names]


def is_right(name):
    """Whether somebody who may be named is, or, where nobody may be, nobody for sure."""
    answer, roots = answer_to(of_scenario, name)[0], SCENARIOS[name]["roots"]
    return answer.root in roots if roots else answer.sure != LIKELY


@pytest.mark.parametrize("name", FORMATS)
def test_the_root_and_the_onset_are_found_in_every_format(name):
    answer, files = answer_to(in_format, name)
    assert answer.root == answer.evidence[0].service == ROOT
    chain = [REPLICA.sub("", name) for name in answer.chain]
    assert ONSET in answer.began and chain == [ROOT, "orders", "gateway"]
    for row in answer.evidence if "sed" in answer.next else ():  # else lines are parts of records
        line = files[row.file].decode().split("\n")[row.number - 1]
        assert all(word in line for word in row.line.split() if word.isalpha() and word.islower())


def test_in_nearly_every_format_the_answer_is_sure():
    assert len(FORMATS) == 48 and sum(a.sure == LIKELY for a in answers(in_format, FORMATS)) >= 46


def test_who_prints_nothing_is_found_by_the_words_of_clients_and_nobody_else_for_sure():
    replies = answers(of_client, CLIENTS)
    assert len(CLIENTS) == 50 and sum(answer.root == ROOT for answer in replies) >= 46
    assert all(answer.root == ROOT or answer.sure != LIKELY for answer in replies)


def test_the_roots_of_odd_incidents_are_found_and_nobody_else_is_blamed_for_sure():
    assert len(SCENARIOS) == 54 and sum(map(is_right, SCENARIOS)) >= 44
    sure = [name for name in SCENARIOS if answer_to(of_scenario, name)[0].sure == LIKELY]
    assert [name for name in sure if not is_right(name)] == []
