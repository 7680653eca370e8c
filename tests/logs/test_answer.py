"""What a log says by itself, or that it does not say it."""

from pathlib import Path

import pytest
import samples
from simulated import fared

from logtriage.logs.answer import answer_of, guessed_kind
from logtriage.logs.log import read_log, read_text
from logtriage.real.cases import load_source

EXAMPLE = Path(__file__).parents[2] / "examples" / "inventory-pool.ndjson"


@pytest.mark.parametrize("name", samples.WRITTEN)
def test_the_root_below_those_who_shout_is_found_in_every_format(name):
    answer = answer_of(read_text(samples.written(name)))
    assert (answer.root, answer.sure, answer.team) == ("basket-db", "likely", "dba")
    assert answer.began.endswith(("03:52:00", "03:52:01", "03:52:02", "03:52:03"))
    assert answer.evidence[0].service == "basket-db" and answer.evidence[0].usual == 0.0
    assert "too many clients" in answer.evidence[0].line
    assert answer.next and answer.read[0].startswith("log: ")


@pytest.mark.parametrize("name", samples.LOGHUB)
def test_samples_of_known_programs_are_answered(name):
    answer = answer_of(read_text(samples.loghub(name)))
    assert answer.sure in ("likely", "possible") and "03:5" in answer.began
    assert answer.team == ("security" if name == "openssh" else "unknown")
    assert answer.text().count("\n") < 40


def test_of_a_quiet_log_nothing_is_known():
    quiet = "\n".join(samples.written("json").splitlines()[:600])
    answer = answer_of(read_text(quiet))
    assert answer.sure == "not enough evidence" and not answer.root and not answer.severity
    assert "unlike the rest" in answer.why and not answer.next
    assert answer.text().startswith("not enough evidence: no stretch of the log")


def test_without_times_nothing_is_known():
    answer = answer_of(read_text("ERROR basket-db is down\nINFO web-app fine"))
    assert answer.sure == "not enough evidence" and "no line has a time" in answer.why
    assert answer.evidence[0].usual is None and answer.evidence[0].service == "basket-db"


def test_the_first_line_says_who_how_sure_and_since_when_then_evidence_then_what_next():
    answer = answer_of(read_log([EXAMPLE]))
    rows = answer.text().splitlines()
    assert rows[0] == "inventoryservice (likely), since 2026-06-20 13:50:00"
    heads = [row.split(":")[0] for row in rows if not row.startswith(" ")]
    assert heads[1:] == ["evidence", "next", "suspects", "severity", "team", f"read {EXAMPLE}"]
    plain = list(answer.as_json())
    assert plain[:4] == ["root", "sure", "began", "ended"]
    assert plain.index("evidence") < plain.index("next") < plain.index("suspects")


def test_where_two_are_in_trouble_alike_it_says_since_when_and_what_to_look_at_next():
    lines = [f"03:{i:02}:00 {name} INFO fine" for i in range(50) for name in "ab"]
    lines += [f"03:{i}:0{n} {name} ERROR stuck" for i in (50, 51) for n in (1, 2) for name in "ab"]
    answer = answer_of(read_text("\n".join(lines), ["a", "b"]))
    assert not answer.root and answer.began == "03:50:01" and answer.next.startswith("sed -n ")
    assert answer.text().splitlines()[0] == (
        "not enough evidence: a and b are about equally in trouble, since 03:50:01"
    )


def test_logs_of_real_incidents_without_the_time_before_say_too_little(tmp_path):
    # At most five lines a service are on record, none of them from before.
    for case in load_source("nezha-trainticket").cases[:4]:
        paths = []
        for service, lines in case.logs.items():
            paths.append(tmp_path / f"{service}.log")
            paths[-1].write_text("\n".join(lines) + "\n")
        log = read_log(paths)
        assert set(log.tally.services) == {name for name, lines in case.logs.items() if lines}
        assert log.tally.records == sum(map(len, case.logs.values()))
        answer = answer_of(log)
        assert answer.sure == "not enough evidence" and answer.evidence


def test_an_example_is_a_line_of_the_service_itself():
    lines = [f"03:00:{i:02} {name} ERROR no answer in {i} ms" for i in (1, 2) for name in "ab"]
    found = answer_of(read_text("\n".join(lines), ["a", "b"])).evidence
    assert [(one.service, one.number) for one in found] == [("a", 1), ("b", 2)]


def test_severity_is_of_requests_where_there_are_any():
    def access(failed):
        rows = [
            f'10.0.0.1 - - [22/Nov/2026:03:{i // 60:02}:{i % 60:02} +0000] "GET /x HTTP/1.1" '
            f"{503 if i >= 1800 and 37 * i % 100 < failed else 200} 5"
            for i in range(2400)
        ]
        return answer_of(read_text("\n".join(rows)))

    assert [access(failed).severity for failed in (40, 3)] == ["P1", "P2"]
    assert "40.0% of 600 requests" in access(40).severity_why


def test_kinds_are_guessed_from_whole_words():
    assert guessed_kind("basket-db") == guessed_kind("postgresql-0") == "database"
    assert guessed_kind("api-gateway") == "edge" and guessed_kind("order-queue") == "queue"
    assert guessed_kind("cart-service") == "app" and guessed_kind("dbt-runner") == "unknown"


@pytest.mark.parametrize("with_graph", [False, True])
def test_on_simulated_logs_likely_is_nearly_always_right(with_graph):
    # What `likely` promises; docs/logs.md has the counts of more.
    counts = fared("train", 6, with_graph)
    wrong = counts["likely", "wrong"] + counts["likely", "false alarm"]
    assert counts["likely", "right"] >= 10 and wrong <= 1
