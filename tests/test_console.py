"""The console as a user meets it: its widgets one by one, and whole, in JupyterLab in a browser."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from html import escape, unescape
from pathlib import Path

import nbformat
import pytest
import requests
from browser import need_browser, open_tab
from conftest import free_port
from real_secrets import secrets

from logtriage.console import Console
from logtriage.play.actions import ACTION_TYPES, Action, check_action
from logtriage.play.episode import Episode
from logtriage.real.cases import SOURCES, load_source
from logtriage.world.call_graph import Service
from logtriage.world.incidents import sample_incident
from logtriage.world.topology import Topology

WHERE = ("cascading_failure", "test", 7)


class Screen:
    """What a user has in front of them."""

    def __init__(self, *coordinates):
        self.console = Console(*coordinates)
        choice, self.kind, action, self.view = self.console.widget.children
        self.task, self.split, self.index, self.open = choice.children
        self.value, self.act = action.children

    def press(self, kind, value=None):
        self.kind.value = kind
        if value is not None:
            self.value.value = value
        self.act.click()


@pytest.fixture
def screen():
    return Screen(*WHERE)


def test_the_opening_is_shown_before_anything_is_pressed(screen):
    observation = screen.console.episode.opening
    assert all(escape(line) in screen.view.value for line in observation.lines)
    assert "step 0 of 12" in screen.view.value and "score" not in screen.view.value.split("<svg")[1]
    assert not screen.act.disabled
    assert (screen.task.value, screen.split.value, screen.index.value) == WHERE


def test_a_press_takes_the_chosen_action_and_draws_what_it_brought(screen):
    before = screen.view.value
    screen.press("request_more_logs", "user-db")
    assert screen.view.value != before and "<svg" in screen.view.value
    observation = screen.console.episode.history[-1].observation
    assert "step 1 of 12" in screen.view.value and screen.console.episode.record.steps == 1
    assert all(escape(line) in screen.view.value for line in observation.lines)
    screen.press("escalate", "dba")
    assert "paged dba" in screen.view.value and screen.console.episode.record.team == "dba"


def test_the_values_offered_are_the_valid_ones(screen):
    topology = screen.console.episode.incident.topology
    for kind in (screen.kind.value, *ACTION_TYPES):
        screen.kind.value = kind
        assert screen.value.options and screen.value.value == screen.value.options[0]
        assert screen.value.disabled == (kind in ("resolve", "ignore"))
        for value in screen.value.options:
            check_action(Action.parse(kind, value), topology)


def test_the_end_shows_the_score_and_disables_the_button(screen):
    incident = sample_incident(*WHERE)
    screen.press("classify_severity", incident.severity)
    screen.press("identify_root_cause", incident.root)
    screen.press("remediate", f"{incident.remedy}:{incident.root}")
    screen.press("escalate", incident.team)
    assert not screen.act.disabled and "What it was" not in screen.view.value
    screen.press("resolve")
    assert screen.act.disabled
    assert "<b>score 1.00</b>" in screen.view.value and "What it was" in screen.view.value
    end = screen.view.value
    screen.press("escalate", "sre")
    assert screen.view.value == end and screen.console.episode.record.steps == 5


def test_another_incident_is_opened_with_its_own_call_graph(screen):
    screen.press("resolve")
    screen.task.value, screen.split.value, screen.index.value = "single_crash", "unseen_topology", 3
    screen.kind.value = "identify_root_cause"
    assert screen.console.episode.done, "chosen is not opened yet"
    screen.open.click()
    incident = sample_incident("single_crash", "unseen_topology", 3)
    assert screen.value.options == incident.topology.names and not screen.act.disabled
    assert "step 0 of" in screen.view.value and incident.topology.names[-1] in screen.view.value


def test_incidents_are_played_on_a_call_graph_of_ones_own():
    front, store = Service("front", "edge", calls=("store",)), Service("store", "database")
    topology = Topology((front, store))
    screen = Screen(*WHERE, topology)
    assert "unseen_topology" not in screen.split.options
    screen.index.value = 8
    screen.open.click()
    screen.kind.value = "identify_root_cause"
    assert screen.value.options == ("front", "store") and screen.view.value.count("<rect") == 2


def test_an_incident_beyond_the_slider_can_be_opened_too():
    assert Screen("single_crash", "train", 12_345).index.value == 12_345


@pytest.mark.parametrize("source", SOURCES)
def test_every_real_incident_is_played(source):
    screen = Screen("real", source, 0)
    for index, case in enumerate(load_source(source).cases):
        screen.index.value = index
        screen.open.click()
        screen.press("request_more_logs", case.truth.root)
        shown = unescape(screen.view.value)
        assert not [one for one in secrets(case) if one in shown]
        screen.press("identify_root_cause", case.truth.root)
        screen.press("resolve")
        assert "score 1.00" in screen.view.value and screen.act.disabled
    assert screen.index.max == index


def test_errors_are_shown_escaped():
    console = Console("single_crash", "test", 0)
    console.act(Action("escalate", ("<img src=x onerror=alert(1)> & co",)))
    page = console.html()
    assert "unknown team" in page and "choose one of sre, backend, dba, security" in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt; &amp; co") == 2 and "<img" not in page


def test_two_screens_of_one_console_would_not_reset_it(screen):
    screen.press("escalate", "sre")
    *_, view = screen.console.widget.children
    assert view.value == screen.view.value


@contextmanager
def jupyterlab(folder, source):
    """A JupyterLab on loopback with settings of its own: yields the address of a notebook whose
    only cell has that source.
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, folder / "console.ipynb")
    config = folder / "config" / "labconfig" / "page_config.json"
    config.parent.mkdir(parents=True)  # do not ask whether news may be fetched
    news = "@jupyterlab/apputils-extension:announcements"
    config.write_text(json.dumps({"disabledExtensions": {news: True}}))

    names = ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR")
    names += ("JUPYTERLAB_WORKSPACES_DIR",)
    settings = {name: str(folder / name.lower()) for name in names}
    settings["JUPYTER_CONFIG_DIR"] = str(folder / "config")
    settings["PYTHONPATH"] = str(Path(__file__).parents[2])  # the kernel starts in `folder`
    port = free_port()
    options = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"]
    options += [f"--ServerApp.root_dir={folder}", "--no-browser", "--allow-root"]
    options += ["--IdentityProvider.token=test"]
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            env={**os.environ, **settings},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    address, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    try:
        while True:
            try:
                requests.get(f"{address}/api", timeout=5).raise_for_status()
                break
            except (requests.ConnectionError, requests.Timeout):
                assert process.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.1)
        yield f"{address}/doc/tree/console.ipynb?token=test"
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()


@pytest.mark.slow  # a browser and a JupyterLab
def test_an_incident_is_played_to_its_score_in_jupyterlab(tmp_path):
    need_browser()
    incident = sample_incident(*WHERE)
    actions = (
        Action("request_more_logs", ("all",)),
        Action("classify_severity", (incident.severity,)),
        Action("identify_root_cause", (incident.root,)),
        Action("remediate", (incident.remedy, incident.root)),
        Action("escalate", (incident.team,)),
        Action("resolve"),
    )
    episode = Episode(incident)
    for action in actions:
        episode.act(action)

    source = f"from logtriage.console import Console\n\nConsole(*{WHERE}).widget"
    with jupyterlab(tmp_path, source) as address, open_tab(address) as tab:
        tab.goto(address)
        tab.get_by_text("| Idle").wait_for()  # the kernel has started
        tab.locator(".jp-CodeCell .cm-content").click()
        tab.keyboard.press("Shift+Enter")
        drawing, act = tab.locator(".lt"), tab.get_by_role("button", name="Act", exact=True)
        drawing.get_by_text("step 0 of 12").wait_for()
        opening = drawing.locator("svg").inner_html()
        assert drawing.locator("svg rect").count() == len(incident.topology.services)

        for step, (kind, value) in enumerate(actions, 1):
            assert tab.locator(".score").count() == 0
            tab.get_by_role("button", name=kind.replace("_", " ")).click()
            if value:
                tab.get_by_label("value").select_option(value)
            act.click()
            drawing.get_by_text(f"step {step} of 12").wait_for()
            assert drawing.locator("svg").inner_html() != opening
        assert f"score {episode.score.total:.2f}" in tab.locator(".score").inner_text()
        assert episode.score.total > 0.9 and act.is_disabled()

        tab.get_by_label("split").select_option("unseen_topology")
        tab.get_by_role("button", name="Open").click()
        drawing.get_by_text("step 0 of 12").wait_for()
        other = sample_incident(WHERE[0], "unseen_topology", WHERE[2])
        assert drawing.locator("svg rect").count() == len(other.topology.services)
