"""Write docs/page.png, the README's picture of the page. Needs a browser."""

import tempfile
from pathlib import Path
from urllib.parse import urlencode

from browser import open_tab
from conftest import serving
from test_page import WHERE

PATH = Path(__file__).resolve().parents[1] / "docs" / "page.png"
DID = ["request_more_logs:all", "request_more_logs:auth-service", "request_more_logs:user-db"]

with (
    tempfile.TemporaryDirectory() as folder,
    serving(Path(folder) / "log") as url,
    open_tab(url, 1180, 684) as tab,
):
    tab.goto(f"{url}/web?{urlencode({**WHERE, 'did': DID}, doseq=True)}")
    tab.screenshot(path=PATH)
print(f"wrote {PATH.name}, {PATH.stat().st_size // 1000} kB")
