"""The command line as a user meets it: what it prints and writes, how it answers mistakes."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from talking_server import RESOLVES, refused, talking
from typer.testing import CliRunner

from logtriage.__main__ import app
from logtriage.bench import audit
from logtriage.bench.registry import POLICIES
from logtriage.bench.rollouts import COLUMNS
from logtriage.play.scoring import PARTS
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import ALL_TASKS, SPLITS, TASKS

COMMANDS = (
    *("evaluate", "triage", "serve", "build-base", "train", "evaluate-run"),
    *("publish-model", "publish-dataset", "benchmark", "sweep", "sweep-status", "replay"),
)
REGISTERED = {
    command.name or command.callback.__name__: command.callback
    for command in app.registered_commands
}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refusal(*arguments):
    """The one line by which a mistake is answered, before any work is done."""
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == "", result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


def test_help_lists_every_command():
    result = run("--help")
    assert result.exit_code == 0 and set(COMMANDS) == set(REGISTERED)
    for command in COMMANDS:
        assert re.search(rf"^\W*{command}\s", result.stdout, re.MULTILINE), command


def test_evaluate_prints_a_table_and_writes_a_row_an_episode(tmp_path):
    path = tmp_path / "out.json"
    policies = ("--policy", "loudest", "--policy", "trace")
    result = run(
        "evaluate", *policies, "--task", "all", "--split", "test", "--episodes", 4, "--json", path
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(path.read_text())
    assert isinstance(rows, list) and all(tuple(row) == COLUMNS for row in rows)
    coordinates = [(row["policy"], row["task"], row["split"], row["index"]) for row in rows]
    assert coordinates == [
        (p, task, "test", i) for p in ("loudest", "trace") for task in TASKS for i in range(4)
    ]

    scores, strata = result.stdout.split("\n\n")
    said, header, *lines = scores.splitlines()
    *_, wrote = strata.splitlines()
    assert said.startswith("test, incidents 0 to 3 of each task") and str(path) in wrote
    assert header.split() == ["policy", "task", "score", *PARTS, "steps"]
    assert [tuple(line.split()[:2]) for line in lines] == [
        (p, task) for p in ("loudest", "trace") for task in TASKS
    ]
    means = pd.DataFrame(rows).groupby(["policy", "task"])[["score", *PARTS, "steps"]].mean()
    for line in lines:
        policy, task, score, _low, _high, *others = line.split()
        expected = means.loc[(policy, task)]
        assert [score, *others] == [
            f"{expected['score']:.3f}",
            *(f"{expected[part]:.2f}" for part in PARTS),
            f"{expected['steps']:.1f}",
        ]


def test_evaluate_tells_faults_from_false_alarms():
    # Nothing is dismissed by `loudest`, faults or alarms; `oracle` dismisses just what is none.
    result = run(
        *("evaluate", "--policy", "loudest", "--policy", "oracle", "--episodes", 20),
        *("--task", "silent_degradation", "--task", "cascading_failure"),
    )
    assert result.exit_code == 0, result.output
    header, *lines = result.stdout.split("\n\n")[1].splitlines()
    names = ("real faults detected", "false alarms dismissed", "real faults dismissed")
    assert header.split() == ["policy", "task", *" ".join(names).split()]
    incidents = [sample_incident("silent_degradation", "test", index) for index in range(20)]
    alarms = sum(incident.root is None for incident in incidents)
    cells = {tuple(line.split()[:2]): line.split()[2:] for line in lines}
    assert cells["oracle", "silent_degradation"] == [
        *("1.00", "of", f"{20 - alarms}", "1.00", "of", f"{alarms}", "0.00", "of", f"{20 - alarms}")
    ]
    assert cells["loudest", "silent_degradation"][3:6] == ["0.00", "of", f"{alarms}"]
    assert cells["oracle", "cascading_failure"][3] == "-"  # it has no false alarms


def test_evaluate_audits_on_demand(tmp_path):
    path = tmp_path / "out.json"
    asked = ("--policy", "loudest", "--task", "silent_degradation", "--episodes", 6)
    plain = run("evaluate", *asked)
    result = run("evaluate", *asked, "--audit", "--json", path)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(plain.stdout)  # the scores first, and they are the same
    rows = json.loads(path.read_text())
    assert all(tuple(row) == (*COLUMNS, *audit.COLUMNS) for row in rows) and len(rows) == 6
    said, header, line, _wrote = result.stdout.removeprefix(plain.stdout).splitlines()
    assert said.startswith("audit: ") and header.split()[2:7] == list(audit.VERDICTS)
    shares = [sum(row["verdict"] == name for row in rows) / 6 for name in audit.VERDICTS]
    assert line.split()[:7] == ["loudest", "silent_degradation", *(f"{s:.3f}" for s in shares)]


def test_evaluate_audits_single_faults_only():
    told = refusal("evaluate", "--task", "double_fault", "--episodes", 2, "--audit")
    assert "play double_fault with another policy, and without an audit" in told


def test_the_same_command_again_goes_on_where_it_was_left(tmp_path):
    path = tmp_path / "out.jsonl"
    asked = ("evaluate", "--policy", "loudest", "--task", "single_crash", "--trajectories", path)
    assert "there is no file" in refusal(*asked, "--resume") and not path.exists()
    assert run(*asked, "--episodes", 3).exit_code == 0
    result = run(*asked, "--episodes", 5)
    assert result.exit_code == 0 and str(path) in result.stdout
    assert len(path.read_text().splitlines()) == 1 + 5
    again = run(*asked, "--episodes", 5, "--resume")  # shows the results
    assert again.stdout == result.stdout and len(path.read_text().splitlines()) == 6
    assert "another split ('test', not 'train')" in refusal(*asked, "--split", "train")


def test_evaluate_plays_an_endpoint_and_says_what_it_could_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("evaluate", "--endpoint-model", "toy", "--task", "single_crash", "--episodes", 4)
    with talking(lambda *_: RESOLVES) as (url, talk):
        result = run(*asked, "--endpoint", url)
        assert result.exit_code == 0, result.output
        assert "toy: 400 prompt and 40 completion tokens, 110 per episode" in result.stdout
        (kept,) = Path("runs/evaluations").glob("*.jsonl")  # by default: it costs money
        assert len(kept.read_text().splitlines()) == 5
        assert run(*asked, "--endpoint", url).exit_code == 0 and len(talk.requests) == 4
        result = run(*asked, "--endpoint", url, "--attempts", 2)
        assert len(talk.requests) == 8 and "attempts are equal" in result.stdout


def test_evaluate_does_not_hide_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    broken = [True]
    asked = ("evaluate", "--endpoint-model", "toy", "--task", "single_crash", "--episodes", 4)
    with talking(lambda *_: refused(413, "too long") if broken[0] else RESOLVES) as (url, _):
        asked = (*asked, "--endpoint", url)
        for again in ((), ("--resume",)):  # an outage is no result, the second time either
            result = run(*asked, *again)
            assert result.exit_code == 1 and "--retry-errors" in result.stderr
            assert "toy: 4 of 4 episodes have no score" in result.stdout
            assert "  4 x " in result.stdout and "413" in result.stdout
        broken[0] = False
        assert run(*asked, "--retry-errors").exit_code == 0
    with talking(lambda *_: refused(401)) as (url, _):
        assert run(*asked[:-2], "--endpoint", url).exit_code == 1


def test_nothing_is_lost_when_a_table_cannot_be_made(tmp_path, monkeypatch):
    # The rows are written before anything is computed from them.
    path = tmp_path / "out.json"
    monkeypatch.setattr("logtriage.bench.evaluation.report", lambda *arguments: 1 / 0)
    run(
        "evaluate", "--policy", "loudest", "--task", "single_crash", "--episodes", 2, "--json", path
    )
    assert len(json.loads(path.read_text())) == 2


def test_evaluate_plays_a_model_through_text_too(tiny_base, tmp_path, monkeypatch):
    import torch

    monkeypatch.chdir(tmp_path)
    asked = ("evaluate", "--model", tiny_base, "--task", "single_crash", "--episodes", 2)
    result = run(*asked, "--tools", "text")
    assert result.exit_code == 0, result.output
    assert "per episode" in result.stdout
    if not torch.cuda.is_available():
        assert "needs an NVIDIA GPU" in refusal(*asked, "--load-in-4bit", "--trajectories", "c")


def test_evaluate_refuses_what_does_not_go_together(tmp_path):
    for wrong, told in (
        (("--adapter", tmp_path), "--adapter goes on one --model"),
        (("--retry-errors",), "name it by --trajectories"),
        (("--tools", "json"), "choose native or text"),
        (("--endpoint", "http://127.0.0.1:1"), "give both"),
        (("--trajectories", tmp_path), "it is a folder"),
    ):
        assert told in refusal("evaluate", "--policy", "loudest", "--episodes", 2, *wrong)


@pytest.mark.parametrize(
    "option, bad, valid",
    [
        ("--policy", "guess", POLICIES),
        ("--task", "casc", [*ALL_TASKS, "or all"]),
        ("--split", "dev", SPLITS),
    ],
)
def test_evaluate_answers_unknown_names_with_the_valid_ones(option, bad, valid):
    told = refusal("evaluate", option, bad)
    assert f"'{bad}'" in told and ", ".join(valid) in told


def test_evaluate_does_not_play_what_it_could_not_write(tmp_path):
    path = tmp_path / "missing" / "out.json"
    told = refusal("evaluate", "--policy", "loudest", "--episodes", 2, "--json", path)
    assert f"folder {path.parent} does not exist" in told and not path.parent.exists()


@pytest.mark.parametrize("folder", ["{}/nowhere", "runs/nowhere"])
def test_evaluate_answers_a_model_that_is_not_there(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = folder.format(tmp_path)
    assert folder in refusal("evaluate", "--model", folder, "--episodes", 2)


@pytest.mark.parametrize(
    "preset, command",
    [
        ("novice", "`build-base`"),
        ("expert", "`build-base --expert`"),
        ("general", "`build-base --general`"),
    ],
)
def test_train_asks_for_a_model_and_says_how_to_get_one(preset, command, tmp_path):
    told = refusal("train", tmp_path / "run", "--preset", preset)
    assert command in told and "--model" in told and not (tmp_path / "run").exists()


def test_a_base_to_teach_must_be_there(tmp_path):
    told = refusal("build-base", tmp_path / "expert", "--expert", tmp_path / "nowhere")
    assert "nowhere" in told and not (tmp_path / "expert").exists()


def test_train_answers_an_unknown_preset_with_the_valid_ones(tmp_path):
    assert "novice, expert, general, recommended, l4, a100, t4_starter, model_card" in refusal(
        "train", tmp_path / "run", "--preset", "large"
    )


def test_train_answers_a_model_that_is_not_there_and_leaves_nothing(tmp_path):
    assert str(tmp_path / "nowhere") in refusal(
        "train", tmp_path / "run", "--preset", "novice", "--model", tmp_path / "nowhere"
    )
    assert not (tmp_path / "run" / "config.json").exists()


SHOP_LOG = "".join(
    f"2026-11-22 03:{second // 60:02}:{second % 60:02} {text}\n"
    for second in range(0, 3600, 5)
    for text in ("INFO [main] web-app: ok", "ERROR [main] web-app: call to cart-db failed")[
        : 1 + (second >= 3300)
    ]
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "shop.log"
    path.write_text(SHOP_LOG)
    return path


def test_triage_answers_by_itself_and_calls_nobody(log, monkeypatch):
    import socket

    def refuse(*arguments):
        raise AssertionError("no model or server was named")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    told = run("triage", log)
    assert told.exit_code == 0, told.output
    assert (
        "root cause: cart-db (possible: " in told.stdout
        and "began: 2026-11-22 03:55:00" in told.stdout
    )
    piped = CliRunner().invoke(app, ["triage", "-"], input=SHOP_LOG)
    assert "root cause: cart-db" in piped.stdout


def test_triage_can_print_json(log):
    told = json.loads(run("triage", log, "--json").stdout)
    assert told["root"] == "cart-db" and told["team"] == "dba" and "asked" not in told
    assert told["evidence"][0]["line"] == "ERROR [main] web-app: call to cart-db failed"
    asked = json.loads(run("triage", log, "--json", "--policy", "loudest").stdout)["asked"]
    assert asked["name"] == "loudest" and asked["root_cause"] == "web-app"


def test_triage_reads_a_call_graph_of_any_names_and_metrics(log, tmp_path):
    graph, metrics = tmp_path / "graph.yaml", tmp_path / "m.csv"
    graph.write_text("services: [{name: web-app, kind: edge, calls: [cart-db]}, {name: cart-db}]")
    rows = [f"{1795316400 + 60 * i},cart-db,cpu_pct,{9 if i < 55 else 99}" for i in range(60)]
    metrics.write_text("\n".join(["time,service,metric,value", *rows]))
    told = run("triage", log, "--graph", graph, "--metrics", metrics)
    assert "cart-db cpu_pct 99% usual 9 (9-9)" in told.stdout, told.output
    metrics.write_text("when,who\n")
    assert f"{metrics}, line 1: no column" in refusal("triage", log, "--metrics", metrics)
    graph.write_text("services: [{name: web-app, calls: [gone]}]")
    assert f"{graph}: web-app calls unknown" in refusal("triage", log, "--graph", graph)


def test_triage_asks_a_model_of_the_same_lines(tiny_base, tmp_path):
    path = tmp_path / "incident.log"
    path.write_text("ERROR user-db is down\n")
    told = run("triage", path, "--model", tiny_base)
    assert told.exit_code == 0 and "not enough evidence" in told.stdout
    assert f"{tiny_base} says, of the same lines:" in told.stdout and " s each" in told.stdout


def test_triage_asks_a_server_and_answers_without_it_too(log):
    with talking(lambda *_: RESOLVES) as (url, talk):
        told = run("triage", log, "--endpoint", url, "--endpoint-model", "toy")
        assert told.exit_code == 0 and "toy says, of the same lines:" in told.stdout, told.output
        assert "ERROR web-app [main] web-app: call to cart-db failed" in talk.openings()[0]
    with talking(lambda *_: refused(401, "who are you?")) as (url, _):
        told = run("triage", log, "--endpoint", url, "--endpoint-model", "toy")
        assert told.exit_code == 2 and "root cause: cart-db" in told.stdout
        assert told.stderr.startswith("error: toy did not answer: ") and "401" in told.stderr


def test_triage_refuses_what_it_cannot_read_or_ask(log, tmp_path):
    gone = tmp_path / "gone.log"
    assert f"cannot read {gone}: No such file" in refusal("triage", gone)
    assert "leave out the rest" in refusal("triage", log, "--policy", "trace", "--model", "x")
    assert "--endpoint-model go together" in refusal("triage", log, "--endpoint", "http://x")
    assert "unknown policy 'tarce'" in refusal("triage", log, "--policy", "tarce")
    assert "cannot be simulated" in refusal("triage", log, "--policy", "belief")
    gone.write_bytes(b"\x1f\x8b\x08")
    assert "gzip -dc" in refusal("triage", gone)


def test_triage_of_nothing_says_so(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(b"\x00\xff" * 50)
    told = run("triage", path)
    assert told.exit_code == 0 and told.stdout.startswith("not enough evidence: ")
    path.write_text("")
    assert "no line could be read" in run("triage", path).stdout
    assert "paste some log lines" in refusal("triage", path, "--policy", "trace")
