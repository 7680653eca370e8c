"""The console as a user meets it: drop-down lists, one button, and a page that grows."""

from html import escape

import pytest

from logtriage.agents.console import Console
from logtriage.play.actions import ACTION_TYPES, check_action
from logtriage.world.incidents import sample_incident


class Screen:
    """What a user has in front of them."""

    def __init__(self, *coordinates):
        self.console = Console(*coordinates)
        controls, self.view = self.console.widget.children
        self.kind, self.value, self.button = controls.children

    def press(self, kind, value=None):
        self.kind.value = kind
        if value is not None:
            self.value.value = value
        self.button.click()


@pytest.fixture
def screen():
    return Screen("cascading_failure", "test", 7)


def test_the_opening_is_shown_before_anything_is_pressed(screen):
    observation = screen.console.episode.opening
    assert all(escape(line) in screen.view.value for line in observation.lines)
    assert (
        "step 0 of 12" in screen.view.value
        and "score" not in screen.view.value
        and not screen.button.disabled
    )


def test_a_press_takes_the_chosen_action_and_shows_what_it_brought(screen):
    before = screen.view.value.removesuffix("</pre>")
    screen.press("request_more_logs", "user-db")
    assert screen.view.value.startswith(before)
    news = screen.view.value.removeprefix(before)
    assert "&gt;&gt;&gt; request_more_logs user-db" in news and "step 1 of 12" in news
    assert screen.console.episode.record.steps == 1
    screen.press("escalate", "dba")
    assert "paged dba" in screen.view.value and screen.console.episode.record.team == "dba"


def test_the_values_offered_are_the_valid_ones(screen):
    topology = screen.console.episode.incident.topology
    for kind in ACTION_TYPES:
        screen.kind.value = kind
        assert screen.value.options and screen.value.value == screen.value.options[0]
        for value in screen.value.options:
            check_action(kind, value, topology)


def test_the_end_shows_the_score_and_disables_the_button(screen):
    incident = sample_incident("cascading_failure", "test", 7)
    screen.press("classify_severity", incident.severity)
    screen.press("identify_root_cause", incident.root)
    screen.press("remediate", f"{incident.remedy}:{incident.root}")
    screen.press("escalate", incident.team)
    assert not screen.button.disabled and "score" not in screen.view.value
    screen.press("resolve")
    assert screen.button.disabled
    assert (
        "<b>score 1.00</b> (severity 1.00, root cause 1.00, remediation 1.00" in screen.view.value
    )
    end = screen.view.value
    screen.press("escalate", "sre")
    assert screen.view.value == end and screen.console.episode.record.steps == 5


def test_errors_are_shown_escaped():
    console = Console("single_crash", "test", 0)
    console.act("escalate", "<img src=x onerror=alert(1)> & co")
    page = console.html()
    assert "error: unknown team" in page and "choose one of sre, backend, dba, security" in page
    assert (
        page.count("&lt;img src=x onerror=alert(1)&gt; &amp; co") == 2 and "<img" not in page
    )  # the echo and the error


def test_two_screens_of_one_console_would_not_reset_it(screen):
    screen.press("escalate", "sre")
    _, view = screen.console.widget.children
    assert view.value == screen.view.value
