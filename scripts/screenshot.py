"""Write docs/page.png, the README's picture of the page: `make screenshot`. Needs a browser."""

import tempfile
from pathlib import Path
from urllib.parse import urlencode

from conftest import serving
from playwright.sync_api import sync_playwright
from test_page import BROWSER, FLAGS, WHERE

PATH = Path(__file__).resolve().parents[1] / "docs" / "page.png"
DID = ["request_more_logs:all", "request_more_logs:auth-service", "request_more_logs:user-db"]

with (
    tempfile.TemporaryDirectory() as folder,
    serving(Path(folder) / "log") as (url, _),
    sync_playwright() as playwright,
):
    browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
    page = browser.new_page(viewport={"width": 1180, "height": 640})
    page.goto(f"{url}/web?{urlencode({**WHERE, 'did': DID}, doseq=True)}")
    page.screenshot(path=PATH)
    browser.close()
print(f"wrote {PATH.name}, {PATH.stat().st_size // 1000} kB")
