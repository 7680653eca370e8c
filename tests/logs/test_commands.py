"""The next command, which somebody may paste into a shell."""

import shlex

import pytest
import samples

from logtriage.logs.commands import next_command
from logtriage.logs.formats import recognise

AT = 1795316645


def command(name, service="web", file="x.log", start=AT, line=None, died=False):
    sample = samples.written(name).encode().splitlines()[:50]
    return next_command(service, recognise(sample), file, start, line, died)


def test_it_fits_the_way_the_log_was_got():
    assert command("kubernetes") == "kubectl logs deploy/web --since-time=2026-11-22T03:03:05Z"
    assert command("kubernetes", died=True).endswith("--previous --tail=200")
    assert command("compose") == "docker compose logs --since 2026-11-22T03:03:05Z web"
    assert command("journald") == "journalctl -u web --since '2026-11-22 03:03:05 UTC'"
    assert command("json", line=100) == "sed -n '90,110p' x.log"
    assert command("text", line=3) == "sed -n '1,13p' x.log"
    assert command("syslog") == "grep -n -F -- web x.log"
    assert command("text", file="-") == ""


@pytest.mark.parametrize("name", ["$(reboot)", "a;b", "-rf", "a b", "`x`", "", "a\nb", "x'y"])
def test_a_name_that_a_shell_would_read_is_not_put_in_one(name):
    assert command("kubernetes", service=name) == ""


@pytest.mark.parametrize("file", ["a b.log", "$(reboot).log", "-x.log", "'; reboot; '.log"])
def test_a_file_is_one_word_and_no_option(file):
    words = shlex.split(command("text", file=file))
    assert words[-1].endswith(file) and not words[-1].startswith("-")


def test_a_file_name_that_a_terminal_cannot_show_is_in_no_command():
    assert command("text", file="a\x1b[2J.log") == command("text", file="a\nb.log", line=3) == ""
