"""The command `triage`, as far as it needs no model."""

import json

from shop_log import ROWS, written
from typer.testing import CliRunner

from logreader.command import app


def triage(tmp_path, *options):
    log = tmp_path / "shop.log"
    log.write_text(written(ROWS))
    return CliRunner().invoke(app, [str(log), *options])


def test_a_policy_that_cannot_be_asked_does_not_cost_the_answer_of_the_log(tmp_path):
    answered = triage(tmp_path, "--policy", "oracle")
    assert answered.exit_code == 1 and "cart-db, since 2026-11-22 03:50:00" in answered.output


def test_services_named_by_hand_are_who_speaks(tmp_path):
    named = triage(tmp_path, "--services", "cart-db, cart", "--json")
    answer = json.loads(named.output)
    assert named.exit_code == 0 and answer["root"] == "cart-db" and answer["version"] == 4
