"""The command `triage`, as far as it needs no model."""

import json

from shop_log import ROWS, written
from typer.testing import CliRunner

from logreader.command import app


def test_services_named_by_hand_are_who_speaks(tmp_path):
    log = tmp_path / "shop.log"
    log.write_text(written(ROWS))
    named = CliRunner().invoke(app, [str(log), "--services", "cart-db, cart", "--json"])
    answer = json.loads(named.output)
    assert named.exit_code == 0 and answer["root"] == "cart-db" and answer["version"] == 4
