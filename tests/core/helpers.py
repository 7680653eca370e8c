"""What several tests of the small module share: servers, a browser, the command line."""

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

import pytest
import requests
from hypothesis import settings
from typer.testing import CliRunner

from logtriage.__main__ import app
from logtriage.world.call_graph import Service
from logtriage.world.topology import Topology

settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")

ROOT = Path(__file__).parents[2]  # of the checkout, or of what was taken from it
SESSIONS = 80  # room on the test server
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# A custom call graph.
SHOP = Topology(
    (
        Service("web", "edge", ("storefront", "accounts")),
        Service("storefront", "app", ("catalog", "basket")),
        Service("accounts", "app", ("account-db",), handles_logins=True, session_cache=True),
        Service("catalog", "app", ("catalog-db",)),
        Service("basket", "app", ("basket-db",), ("orders",)),
        Service("catalog-db", "database"),
        Service("basket-db", "database"),
        Service("account-db", "database"),
        Service("orders", "queue"),
    )
)


def run(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refusal(*arguments):
    """The one line by which a mistake is answered, before any work is done."""
    result = run(*arguments)
    status = 1 if arguments[0] == "triage" else 2
    assert result.exit_code == status and result.stdout == "", result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


def needs(package):
    """A mark for the tests of an optional package; where there is CI it must be installed. They
    import it themselves, as that takes seconds and only one process runs them.
    """
    there = find_spec(package) or os.environ.get("CI")
    return pytest.mark.skipif(not there, reason=f"needs {package}")


def free_port():
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def first_answer(address, process, **asked):
    """What the server answers that is just starting in that process."""
    until = time.monotonic() + 60
    while True:
        try:
            return requests.get(address, timeout=20, **asked)
        except (requests.ConnectionError, requests.Timeout):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.1)


@contextmanager
def serving(log, sessions=SESSIONS):
    """A server on loopback: yields its address. `log`: where its output goes, and stays clean."""
    port = free_port()
    options = ["--port", str(port), "--sessions", str(sessions)]
    command = [sys.executable, "-m", "logtriage", "serve", *options]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        first_answer(f"{address}/health", process).raise_for_status()
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
            tab.on("console", lambda line: line.type == "debug" or messages.append(line.text))
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
