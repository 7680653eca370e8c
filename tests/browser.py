"""A real browser for tests: Debian's `chromium`, driven by Playwright, which brings none."""

import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def need_browser():
    """Skip the test where there is no browser; in continuous integration, which has one, fail."""
    if BROWSER is None and not os.environ.get("CI"):
        pytest.skip("no browser here: install chromium (Debian: apt-get install chromium)")
    assert BROWSER, "continuous integration must have a browser"


@contextmanager
def open_tab(url, width=1240, height=860):
    """An empty tab; at the end, nothing but debugging notes was written to its console and nothing
    was asked of a host but that of `url`.
    """
    need_browser()
    messages, hosts = [], set()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.on("console", lambda one: one.type == "debug" or messages.append(one.text))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        tab.on("dialog", lambda dialog: messages.append(dialog.message))
        tab.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        tab.on("websocket", lambda socket: hosts.add(urlsplit(socket.url).netloc))
        yield tab
        browser.close()
    assert not messages
    assert hosts <= {urlsplit(url).netloc, ""}  # data in an address has no host
