"""The page at /web, over HTTP and in a real browser."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest
import requests

from logtriage import REPOSITORY
from logtriage.recorded import CHOSEN, WHY
from logtriage.world.incidents import sample_incident

WHERE = {"task": "cascading_failure", "split": "test", "index": 21}
ADDRESS = f"/web?{urlencode(WHERE)}"
SCORES = f"https://github.com/{REPOSITORY}/blob/main/docs/smollm2.md"
# The smallest text in pixels of the screen, and whatever a reader would have to scroll sideways.
MEASURE = """() => {
  const sizes = [], cut = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, box = text.parentElement, range = document.createRange();
    if (!text.data.trim() || !box.checkVisibility() || box.tagName === "OPTION") continue;
    const scale = box.closest("svg") ? box.getScreenCTM().a : 1;
    sizes.push(scale * parseFloat(getComputedStyle(box).fontSize));
    range.selectNodeContents(text);
    if (range.getBoundingClientRect().right > innerWidth) cut.push(text.data.trim());
  }
  for (const box of document.querySelectorAll("html, main *"))
    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible")
      cut.push(`${box.tagName} ${box.className}`);
  return [Math.min(...sizes), cut];
}"""


@pytest.fixture
def tab(open_tab, url):
    with open_tab(url) as tab:
        yield tab


def press_tab_to(tab, name):
    """Press Tab until the link of that name has the focus; how often that was."""
    for count in range(1, 100):
        tab.keyboard.press("Tab")
        focused = tab.evaluate("[document.activeElement.ariaLabel, document.activeElement.text]")
        if name in focused:
            return count
    raise AssertionError(f"{name} cannot be reached")


def test_an_incident_is_played_to_a_full_score_by_clicking(tab, url):
    incident = sample_incident(**WHERE)
    tab.goto(url)  # leads to the page
    tab.get_by_label("task").select_option(WHERE["task"])
    tab.get_by_label("split").select_option(WHERE["split"])
    tab.get_by_label("incident", exact=True).fill(str(WHERE["index"]))
    tab.get_by_role("button", name="Open").click()
    assert tab.get_by_label("task").input_value() == "cascading_failure"
    assert tab.get_by_label("split").input_value() == "test"
    assert tab.get_by_text("First answers count").is_visible()
    assert tab.locator("svg rect").count() == len(incident.topology.services)
    for label in (
        f"classify severity {incident.severity}",
        f"identify root cause {incident.root}",
        f"remediate {incident.remedy} {incident.root}",
        f"escalate {incident.team}",
        "resolve",
    ):
        assert "score" not in tab.locator(".lt").inner_text()
        assert tab.locator(".do").count() <= 20
        if str(incident.root) in label and "service=" not in tab.url:
            tab.get_by_role("link", name=f"choose {incident.root}", exact=True).click()
        tab.get_by_role("link", name=label, exact=True).click()
    assert "First answers count" not in tab.locator("main").inner_text()
    assert "score 1.00" in tab.locator(".score").inner_text()
    assert tab.locator("rect.marked").count() == 1  # the root
    assert "What it was: crash." in tab.locator(".score").inner_text()
    assert tab.get_by_role("link", name="resolve", exact=True).count() == 0
    tab.get_by_role("link", name="the next incident").click()
    assert tab.get_by_label("incident", exact=True).input_value() == str(WHERE["index"] + 1)
    assert "step 0 of 12" in tab.locator(".lt").inner_text()


@pytest.mark.parametrize("width", [1240, 390])
def test_a_game_by_keyboard_ends_at_the_gate_which_says_why(open_tab, url, width):
    root = sample_incident(*CHOSEN).root
    keys = ["request more logs all", f"choose {root}", f"request more logs {root}"]
    keys += [f"identify root cause {root}", "escalate security", "resolve"]
    with open_tab(url, width) as tab:
        tab.goto(url)
        assert WHY in tab.locator("header").inner_text()
        assert tab.get_by_role("link", name="The scores on all").get_attribute("href") == SCORES
        for label in keys:
            assert tab.evaluate(MEASURE) == [14, []], label
            before = tab.url
            press_tab_to(tab, label)
            tab.keyboard.press("Enter")
            tab.wait_for_url(lambda address, before=before: address != before)
        assert tab.evaluate(MEASURE) == [14, []]
        said = tab.locator(".score .error")
        assert re.search(
            r"makes it 0, and not 0\.35: the right root cause, and the wrong team paged\. "
            rf'It was for dba, the owner; step 2 showed the lock convoy: "LOG {root} process still',
            said.inner_text(),
        )
        assert said.bounding_box()["y"] < 500  # on a phone, above the other card


def test_another_incident_was_not_chosen(url):
    assert WHY not in requests.get(url + ADDRESS, timeout=10).text


def test_a_keyboard_reaches_the_actions_and_stays_there(tab, url):
    tab.goto(url + ADDRESS)
    assert press_tab_to(tab, "classify severity P1") < 20
    tab.goto(url + ADDRESS)
    assert press_tab_to(tab, "Skip to the actions") == 1
    tab.keyboard.press("Enter")
    assert press_tab_to(tab, "classify severity P1") == 1
    tab.keyboard.press("Enter")  # the page that it leads to does not begin at the top again
    tab.wait_for_url("**did=*")
    assert tab.evaluate("document.activeElement.innerText") == "Log stream, newest first"
    assert press_tab_to(tab, "classify severity P1") == 1


def test_a_phone_shows_the_newest_lines_and_the_actions_at_once(open_tab, url):
    with open_tab(url, 390, 844) as phone:
        phone.goto(f"{url}{ADDRESS}&did=request_more_logs:all")
        panel = phone.locator(".actions").bounding_box()
        assert panel["y"] > 300 and panel["y"] + panel["height"] <= 844
        phone.get_by_role("link", name="choose user-db").click()
        phone.get_by_role("link", name="request more logs user-db").click()
        phone.wait_for_url("**user-db*")
        newest = phone.get_by_text("step 2: request_more_logs user-db").bounding_box()
        assert 0 < newest["y"] < 100
        phone.get_by_role("link", name="resolve").click()
        phone.wait_for_url("**resolve*")
        assert phone.locator(".score").bounding_box()["y"] > 0  # a closed one shows its score


MISTAKES = [
    ({"task": "<b>"}, r"unknown task '<b>'; choose one of single_crash.*, real"),
    ({"split": "dev"}, "unknown split 'dev'"),
    ({"index": "²"}, "got '²'"),
    ({"index": "9" * 5000}, "limit"),
    ({"did": ["resolve", "resolve"]}, "Incident closed"),
    ({"did": "escalate:" + "x" * 300}, "too long; open the incident again"),
]


@pytest.mark.parametrize("wrong, message", MISTAKES)
def test_a_wrong_address_is_answered_with_a_page_that_says_so(url, wrong, message):
    answer = requests.get(f"{url}/web", {**WHERE, **wrong}, timeout=10)
    assert answer.status_code == 400 and re.search(message, unescape(answer.text))
    assert "<b>" not in answer.text and "<form" in answer.text


@pytest.mark.parametrize("name", ["task", "split", "index", "did"])
def test_nothing_of_the_address_becomes_markup(url, name):
    attack = '"><script>alert(1)</script>'
    text = requests.get(f"{url}/web", {**WHERE, name: attack}, timeout=10).text
    assert "<script" not in text and "&lt;script" in text


def test_the_page_may_load_and_run_nothing(url):
    answer = requests.get(f"{url}/web/", timeout=10)
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'none'", "form-action 'self'", "base-uri 'none'"} <= set(policy)
    assert not [rule for rule in policy if "script" in rule or "http" in rule or "*" in rule]
    assert answer.url == f"{url}/web" and answer.headers["Referrer-Policy"] == "no-referrer"
    assert not re.search(
        r"<script|javascript:|\son\w+=|https?://(?!www\.w3\.org/2000/svg)",
        answer.text.replace(f'<a href="{SCORES}">', ""),
    )
