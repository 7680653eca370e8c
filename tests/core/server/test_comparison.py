"""A closed page says what others did on the same incident, and links to it."""

import re
from html import unescape
from urllib.parse import urlencode

import requests
from helpers import SHOP

from logtriage.play.scoring import Record
from logtriage.policies.scripted import LoudestPolicy, TracePolicy
from logtriage.recorded import recorded_actions
from logtriage.server.comparison import YOU, describe, ranking

CASCADE = {"task": "cascading_failure", "split": "test", "index": 7}
SCRIPTS = [LoudestPolicy.name, TracePolicy.name]
# A row of the ranking: whether it is the page's own, its score, and the link to its episode.
ROW = re.compile(r'<li( class=own)?><b>(\S+)</b>\s*<a href="(.*?)".*?>(.*?)</a>')
NOT_RECORDED = {"task": "single_crash", "split": "test", "index": 200}


def get(url, where, did):
    """The page after these actions."""
    answer = requests.get(f"{url}/web?{urlencode({**where, 'did': did}, doseq=True)}", timeout=30)
    assert answer.status_code == 200
    return answer.text


def test_the_visitor_stands_among_the_others():
    did = ["identify_root_cause:notification-service", "escalate:backend", "resolve"]
    rows = ranking(*CASCADE.values(), None, did)
    assert {row.name for row in rows} == {YOU, *SCRIPTS, *recorded_actions(*CASCADE.values())}
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    (own,) = (row for row in rows if row.name == YOU)
    assert (own.score, own.did) == (0.45, tuple(did))
    assert own.answer == "blames notification-service, pages backend, 3 steps"
    trace = next(row for row in rows if row.name == "trace")
    again = ranking(*CASCADE.values(), None, trace.did)  # the page shows another's episode
    assert again == [row for row in rows if row.name != YOU]


def test_nobody_is_recorded_on_a_custom_call_graph():
    rows = ranking(*CASCADE.values(), SHOP, ["resolve"])
    assert {row.name for row in rows} == {YOU, *SCRIPTS}


def test_an_answer_is_told_in_a_line():
    assert describe(Record(steps=2, severity="P3", closed_by="ignore")) == "dismisses it, 2 steps"
    twice = Record(root_causes=["a", "b"], remediations=[("restart", "b"), ("scale", "a")], steps=5)
    assert describe(twice) == "blames a, restart b, 5 steps"


def test_a_row_leads_to_the_episode_it_tells_of(url):
    assert 'class="ranking"' not in get(url, CASCADE, ["classify_severity:P1"])  # no hint
    rows = ROW.findall(get(url, CASCADE, ["classify_severity:P1", "resolve"]))
    assert len(rows) == len({YOU, *SCRIPTS, *recorded_actions(*CASCADE.values())})
    assert [name for own, _, _, name in rows if own] == [YOU]
    for _, score, address, name in rows:
        page = requests.get(f"{url}/web{unescape(address)}", timeout=30).text
        assert f"score {score}" in page
        assert name in [named for own, _, _, named in ROW.findall(page) if own]


def test_where_nobody_is_recorded_the_page_says_so(url):
    text = get(url, NOT_RECORDED, ["resolve"])
    assert "are recorded on incidents 0 to 199 of test" in text
    assert "trace" in [name for *_, name in ROW.findall(text)]
    assert "are recorded on" not in get(url, CASCADE, ["resolve"])


def test_nothing_that_was_done_becomes_markup(url):
    attack = '"><script>alert(1)</script>'
    text = get(url, CASCADE, [attack, f"remediate:{attack}", "resolve"])
    assert "<script" not in text and "no answer, 3 steps" in unescape(text)
