"""Shared settings. Tests run offline, on toy sizes; `slow` ones, some of which install packages, by
`make test-slow`.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import matplotlib
import pytest
import requests
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
matplotlib.use("Agg")
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")

# On a clean clone, libraries are compiled where they are first imported. The second of two
# processes begins with the largest ones, lest both compile the same at the same time.
if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
    import triagelab.train.loop  # noqa: F401

SESSIONS = 80  # room on the test server
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Files of a few long tests begin first, lest one of the processes be left alone with them at the
# end; `make test` keeps this order.
LONG_FILES = (
    "test_notebooks.py",
    "test_learning.py",
    "test_formats.py",
    "test_grpo.py",
    "01_explore_the_environment.ipynb",
    "test_publication.py",
    "test_page.py",
    "test_audit.py",
    "test_base_model.py",
    "test_inspect_tasks.py",
    "test_comparison.py",
    "test_answer.py",
    "test_card_command.py",
    "05_benchmark.ipynb",
    "test_evaluation.py",
    "06_ablations.ipynb",
    "09_from_simulation_to_real.ipynb",
    "test_mcp.py",
    "test_plots.py",
    "07_real_incidents.ipynb",
)


def pytest_collection_modifyitems(items):
    """The tests of long files first, longest first; all else as it was."""
    place = {name: at for at, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONG_FILES)))


def needs(package):
    """A mark for the tests of an optional package; where there is CI it must be installed. They
    import it themselves, as that takes seconds and only one process runs them.
    """
    there = find_spec(package) or os.environ.get("CI")
    return pytest.mark.skipif(not there, reason=f"needs {package}")


def lines(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def free_port():
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(log, sessions=SESSIONS):
    """A server on loopback: yields its address. `log`: where its output goes, and stays clean."""
    port = free_port()
    options = ["--port", str(port), "--sessions", str(sessions)]
    command = [sys.executable, "-m", "logtriage", "serve", *options]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdout=out, stderr=subprocess.STDOUT
        )
    address, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
    try:
        while True:
            try:
                requests.get(f"{address}/health", timeout=5).raise_for_status()
                break
            except (requests.ConnectionError, requests.Timeout):
                assert process.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        try:
            code = process.wait(20)
        finally:
            process.kill()
    assert code in (0, -signal.SIGTERM)
    assert log.read_text().splitlines() == [
        f"LogTriage at {address}/web (WebSocket /ws), {sessions} sessions; stop with Ctrl-C"
    ]


@contextmanager
def serving_here(app):
    """An application on a loopback port, in a thread of this process; yields its address."""
    import uvicorn

    from logtriage.server.app import MAX_MESSAGE

    config = uvicorn.Config(app, port=free_port(), log_level="critical", ws_max_size=MAX_MESSAGE)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        yield f"http://127.0.0.1:{config.port}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="session")
def url():
    """The address of a server in this process, the same for all tests that ask for it; the tests of
    the server itself have the real command.
    """
    from logtriage.server.app import make_app

    with serving_here(make_app(SESSIONS)) as address:
        yield address


@pytest.fixture(scope="module")
def open_tab():
    """Opens a tab of a real browser, Debian's `chromium`, which a file of tests shares; none of
    them may run an event loop of its own. At the end, nothing but debugging notes was written to
    the tab's console and nothing was asked of a host but that of `url`.
    """
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None and not os.environ.get("CI"):
        pytest.skip("no browser here: install chromium (Debian: apt-get install chromium)")
    assert program, "continuous integration must have a browser"
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)

        @contextmanager
        def open_tab(url, width=1240, height=860):
            messages, hosts = [], set()
            tab = browser.new_page(viewport={"width": width, "height": height})
            tab.on("console", lambda one: one.type == "debug" or messages.append(one.text))
            tab.on("pageerror", lambda error: messages.append(str(error)))
            tab.on("dialog", lambda dialog: messages.append(dialog.message))
            tab.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
            tab.on("websocket", lambda socket: hosts.add(urlsplit(socket.url).netloc))
            yield tab
            tab.close()
            assert not messages
            assert hosts <= {urlsplit(url).netloc, ""}  # data in an address has no host

        yield open_tab
        browser.close()


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory):
    """A base model that has learned nothing, made in seconds: for testing everything around a
    model.
    """
    from triagelab.train.base_model import build_base

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # built once: who comes second waits for the first
        folder = folder.parent
    sizes = {"drills": 16, "novices": 16}
    return build_base(folder / "tiny" / "base", **sizes, hidden=32, layers=1)


@pytest.fixture
def fake_hub(tmp_path, monkeypatch):
    """A Hub in a folder, where somebody is logged in."""
    from fake_hub import FakeHub

    from triagelab.train import publication

    fake = FakeHub(tmp_path / "hub")
    monkeypatch.setattr(publication, "HfApi", lambda: fake)
    monkeypatch.setattr(publication, "get_token", lambda: "hf_token")
    return fake
