"""The command line as a user meets it: what it prints and writes, how it answers mistakes."""

import gzip
import json
import re
import socket
from pathlib import Path

import pandas as pd
import pytest
from helpers import refusal, run
from shop_log import calm, trouble, written
from talking_server import RESOLVES, refused, talking
from typer.testing import CliRunner

from logtriage.__main__ import app
from logtriage.command_line import GROUPS
from logtriage.play.scoring import PARTS
from logtriage.world.tasks import SPLITS, TASKS
from triagelab.bench import audit
from triagelab.bench.registry import POLICIES
from triagelab.bench.rollouts import COLUMNS


def test_evaluate_prints_a_table_and_writes_a_row_an_episode(tmp_path):
    path, policies = tmp_path / "out.json", ("loudest", "trace")
    asked = ("--policy", "loudest", "--policy", "trace", "--task", "all", "--episodes", 4)
    result = run("evaluate", *asked, "--json", path)
    assert result.exit_code == 0, result.output
    rows = pd.DataFrame(json.loads(path.read_text()))
    assert tuple(rows.columns) == COLUMNS
    coordinates = rows[["policy", "task", "split", "index"]].itertuples(index=False, name=None)
    assert list(coordinates) == [
        (policy, task, "test", i) for policy in policies for task in TASKS for i in range(4)
    ]

    said, header, *lines = result.stdout.split("\n\n")[0].splitlines()
    assert said.startswith("test, incidents 0 to 3 of each task")
    assert header.split() == ["policy", "task", "score", *PARTS, "steps"]
    rows_of = [[policy, task] for policy in policies for task in TASKS]
    assert [line.split()[:2] for line in lines] == rows_of  # in order of appearance
    means = rows.groupby(["policy", "task"])[["score", *PARTS, "steps"]].mean()
    for line in lines:
        policy, task, score, _low, _high, *others = line.split()
        expected = means.loc[(policy, task)]
        parts = [f"{expected[part]:.2f}" for part in PARTS]
        assert [score, *others] == [f"{expected['score']:.3f}", *parts, f"{expected['steps']:.1f}"]


def test_evaluate_audits_on_demand(tmp_path):
    path = tmp_path / "out.json"
    asked = ("evaluate", "--policy", "loudest", "--task", "silent_degradation", "--episodes", 6)
    plain, result = run(*asked), run(*asked, "--audit", "--json", path)
    assert result.stdout.startswith(plain.stdout)  # the scores first, and they are the same
    rows = json.loads(path.read_text())
    assert all(tuple(row) == (*COLUMNS, *audit.COLUMNS) for row in rows) and len(rows) == 6
    line = result.stdout.removeprefix(plain.stdout).splitlines()[2]
    shares = [sum(row["verdict"] == name for row in rows) / 6 for name in audit.VERDICTS]
    means = [*shares, sum(row["questions"] for row in rows) / 6]
    assert line.split() == ["loudest", "silent_degradation", *(f"{mean:.3f}" for mean in means)]


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
        for _ in range(2):  # an outage is no result, the second time either
            result = run(*asked)
            assert result.exit_code == 1 and "the same command again plays them" in result.stderr
            assert "toy: 4 of 4 episodes have no score" in result.stdout
            assert "  4 x " in result.stdout and "413" in result.stdout
        broken[0] = False
        assert run(*asked).exit_code == 0
    with talking(lambda *_: refused(401)) as (url, _):
        assert run(*asked[:-2], "--endpoint", url).exit_code == 1


def test_nothing_is_lost_when_a_table_cannot_be_made(tmp_path, monkeypatch):
    # The rows are written before anything is computed from them.
    path = tmp_path / "out.json"
    monkeypatch.setattr("triagelab.bench.evaluation.report", lambda *arguments: 1 / 0)
    asked = ("--policy", "loudest", "--task", "single_crash", "--episodes", 2)
    run("evaluate", *asked, "--json", path)
    assert len(json.loads(path.read_text())) == 2


def test_evaluate_plays_a_model_and_says_how(tiny_base, tmp_path):
    import torch

    asked = ("evaluate", "--model", tiny_base, "--task", "single_crash", "--episodes", 2)
    settings = {}
    for how in ("--constrained", "--free"):
        result = run(*asked, how, "--trajectories", tmp_path / how)
        assert result.exit_code == 0, result.output
        header = json.loads((tmp_path / how).read_text().splitlines()[0])
        (settings[how],) = header["settings"]["policies"].values()
    assert settings["--constrained"] == {**settings["--free"], "constrained": True}
    assert "constrained" not in settings["--free"]  # as in what was published
    result = run(*asked, "--tools", "text", "--trajectories", tmp_path / "text")
    assert result.exit_code == 0 and "per episode" in result.stdout, result.output
    if not torch.cuda.is_available():
        assert "needs an NVIDIA GPU" in refusal(
            *asked, "--load-in-4bit", "--trajectories", tmp_path / "c"
        )


EXAMPLE = Path(__file__).parents[1] / "examples" / "inventory-pool.ndjson"
LOUDEST = ("evaluate", "--policy", "loudest", "--episodes", 2)
NOVICE = ("train", "{}/run", "--preset", "novice")


@pytest.mark.parametrize(
    "words, message",
    [
        ((*LOUDEST, "--adapter", "{}"), "--adapter goes on one --model"),
        ((*LOUDEST, "--tools", "json"), "unknown way to call tools 'json'; choose native or text"),
        ((*LOUDEST, "--endpoint", "http://127.0.0.1:1"), "give both"),
        ((*LOUDEST, "--trajectories", "{}"), "Is a directory"),
        ((*LOUDEST, "--json", "{}/gone/out.json"), "cannot write {}/gone/out.json"),
        (
            ("evaluate", "--run", "{}", "--first", 3, "--attempts", 2, "--audit", "--free"),
            "goes with --episodes, --concurrency and --hours; "
            "drop --constrained, --first, --attempts, --audit",
        ),
        (("evaluate", "--run", "{}", "--adapter", "{}", "--split", "test"), "--adapter, --split"),
        ((*LOUDEST, "--hours", 1), "name one by --run, or drop --hours"),
        (("evaluate", "--policy", "guess"), f"'guess'.*{', '.join(POLICIES)}"),
        (("evaluate", "--policy", "agent"), "agent is a model.* by --model agent"),
        (("evaluate", "--model", "trace"), "trace is a script.* by --policy trace"),
        (("evaluate", "--task", "casc"), f"'casc'.*{', '.join(TASKS)}, production, real, or all"),
        (("evaluate", "--split", "dev"), f"'dev'.*{', '.join(SPLITS)}"),
        (("evaluate", "--model", "{}/nowhere"), "{}/nowhere"),
        (NOVICE, "`build-base FOLDER`.*--model"),
        ((*NOVICE, "--model", "{}/nowhere"), "{}/nowhere"),
        (("train", "{}/run", "--preset", "expert"), "`build-base FOLDER --expert BASE`.*--model"),
        (("train", "{}/run", "--preset", "large"), "novice, expert, smollm2, recommended"),
        (("build-base", "{}/run", "--expert", "{}/nowhere"), "nowhere holds no model"),
        (("build-base", "{}/run", "--lessons", "expert"), "name its model by --model"),
        (("triage", EXAMPLE, "--model", "{}/nowhere"), "cannot load {}/nowhere: no such"),
    ],
)
def test_mistakes_are_answered_before_any_work(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refusal(*(str(word).replace("{}", str(tmp_path)) for word in words))
    assert re.search(message.replace("{}", str(tmp_path)), said)
    assert not [*tmp_path.rglob("*.json")]


def test_help_groups_the_commands_by_what_a_person_wants():
    said = run("--help").stdout
    places = [said.index(f" {word} ") for names in GROUPS.items() for word in (names[0], *names[1])]
    assert places == sorted(places) and "Commands" not in said


def test_train_alone_trains_the_embedded_model_where_there_is_no_gpu(tmp_path, monkeypatch):
    # Without --until 1 and a sixth of a step's episodes this would take eight minutes.
    monkeypatch.setattr("triagelab.bench.runs.find_gpu", lambda: None)
    monkeypatch.chdir(tmp_path)
    tiny = ("--set", "incidents=1", "--set", "group=2", "--set", "varied=false", "--until", 1)
    result = run("train", *tiny)
    assert result.exit_code == 0 and "the embedded base is trained" in result.stdout, result.output
    config = json.loads(Path("runs/novice/seed-0/config.json").read_text())["settings"]
    assert config["model"] == "base" and config["steps"] == 80


SHOP_LOG = written(
    calm(("web-app", "cart-db"), step=5) + trouble("web-app", "call to cart-db failed", start=3300)
)
FIRST = "cart-db, since 2026-11-22 03:55:00: possible, "


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "shop.log"
    path.write_text(SHOP_LOG)
    return path


def test_triage_answers_by_itself_and_calls_nobody(log, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("no model or server was named")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    result = run("triage", log)
    assert result.exit_code == 0 and FIRST in result.stdout, result.output
    piped = CliRunner().invoke(app, ["triage", "-"], input=SHOP_LOG)
    assert piped.exit_code == 0 and FIRST in piped.stdout
    # Of what was piped no file is there to look at.
    assert piped.stdout == result.stdout.replace(str(log), "-")


SERVER = ("--endpoint", "http://x", "--endpoint-model", "y")  # which is not asked
FIELDS = "root sure confidence began ended why chain evidence next suspects read others version"


def test_triage_can_print_json_and_takes_a_call_graph(log, tmp_path):
    answer = json.loads(run("triage", log, "--json").stdout)
    assert list(answer) == FIELDS.split()
    assert (answer["root"], answer["sure"]) == ("cart-db", "possible")
    assert answer["evidence"][0]["line"] == "ERROR web-app: call to cart-db failed"
    named = json.loads(run("triage", log, "--services", "cart-db, web-app", "--json").stdout)
    assert (named["root"], named["version"]) == ("cart-db", 5)
    graph = tmp_path / "graph.yaml"
    graph.write_text("services: [{name: web-app, kind: edge, calls: [cart-db]}, {name: cart-db}]")
    result = run("triage", log, "--graph", graph)
    assert result.exit_code == 0 and "\ncart-db, since " in result.stdout, result.output
    graph.write_text("services: [{name: web-app, calls: [gone]}]")
    assert f"{graph}: web-app calls unknown" in refusal("triage", log, "--graph", graph)


def test_triage_without_evidence_exits_with_3_and_asks_a_model_all_the_same(tiny_base, tmp_path):
    path = tmp_path / "incident.log"
    path.write_text("")
    assert run("triage", path).stdout.startswith("not enough evidence: no line could be read")
    result = run("triage", path, "--json")
    assert result.exit_code == 3 and json.loads(result.stdout)["root"] == ""
    path.write_text("ERROR user-db is down\n")
    result = run("triage", path, "--model", tiny_base)
    assert result.exit_code == 3 and "not enough evidence: " in result.stdout
    says = f"{tiny_base} says, of the same evidence, which makes its root not enough evidence:"
    assert says in result.stdout and " closed by: " in result.stdout


def test_triage_asks_a_server_and_answers_without_it_too(log):
    with talking(lambda *_: RESOLVES) as (url, talk):
        result = run("triage", log, "--endpoint", url, "--endpoint-model", "toy")
        assert result.exit_code == 0 and FIRST in result.stdout, result.output
        assert "toy says, of the same evidence, which" in result.stdout
        assert "ERROR web-app call to cart-db failed" in talk.openings()[0]
        both = run("triage", log, "--json", "--endpoint", url, "--endpoint-model", "toy")
        asked = json.loads(both.stdout)["asked"]
        assert (asked["name"], asked["sure"]) == ("toy", "not enough evidence")
    with talking(lambda *_: refused(401, "who are you?")) as (url, _):
        result = run("triage", log, "--endpoint", url, "--endpoint-model", "toy")
        assert result.exit_code == 1 and FIRST in result.stdout
        assert result.stderr.startswith("error: toy did not answer: ") and "401" in result.stderr


def test_triage_refuses_what_it_cannot_read_or_ask(log, tmp_path):
    gone, empty, packed = (tmp_path / name for name in ("gone.log", "empty.log", "cut.log.gz"))
    empty.write_text("")
    packed.write_bytes(gzip.compress(SHOP_LOG.encode())[:500])
    for words, message in (
        ((gone,), f"cannot read {gone}: No such file"),
        ((packed,), f"{packed} is no whole packed file"),
        ((log, *SERVER, "--model", "x"), "leave out the other"),
        ((log, "--endpoint", "http://x"), "--endpoint-model go together"),
        ((log, "--model", "trace"), "trace is a script, and no model"),
    ):
        assert message in refusal("triage", *words)
    both = run("triage", empty, *SERVER)
    assert both.exit_code == 1 and "give some log lines" in both.stderr
    assert "no line could be read" in both.stdout
