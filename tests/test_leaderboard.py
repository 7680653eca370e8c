"""The leaderboard is what its entries say, and those are what their actions earn."""

import gzip
import json
import re

import leaderboard
import pytest
from helpers import refusal, run
from leaderboard import entries, entry_tables, plain, table_row

from logtriage.server.comparison import RECORDED
from logtriage.world.tasks import BENCHMARK_VERSION
from triagelab.bench.leaderboard import as_text, check_entry, read_entry
from triagelab.bench.score_tables import pass_at

RESULTS = leaderboard.ENTRIES.parent
FILES = sorted(leaderboard.ENTRIES.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_entries_are_what_their_actions_earn(path):
    entry = read_entry(path)
    assert entry.benchmark == BENCHMARK_VERSION and not list(check_entry(entry, every=40))
    assert as_text(entry) == path.read_text()


def test_an_entry_is_made_of_what_was_confirmed(tmp_path, monkeypatch):
    path, entry = tmp_path / "out.jsonl", tmp_path / "entry.json"
    played = ("evaluate", "--policy", "loudest", "--episodes", 10, "--trajectories", path)
    assert run(*played).exit_code == 0
    few = run("replay", path, "--entry", entry)
    assert few.exit_code == 2 and "570 are missing" in few.stderr and not entry.exists()
    monkeypatch.setattr("triagelab.bench.leaderboard.FEWEST", 10)
    made = run("replay", path, "--entry", entry, "--name", "loud", "--about", "asks | once")
    assert made.exit_code == 0 and "30 MATCH" in made.stdout, made.output
    loud, known = read_entry(entry), read_entry(leaderboard.ENTRIES / "loudest.json")
    assert loud.episodes == [one for one in known.episodes if one[1] < 10]
    assert loud.name == "loud" and "asks \\| once" in entry_tables([loud, *entries()])

    told, forged = json.loads(entry.read_text()), tmp_path / "forged.json"

    def read(episodes, **fields):
        forged.write_text(json.dumps({**told, "episodes": episodes, **fields}))
        return read_entry(forged)

    rows = told["episodes"]
    for episode in (
        [*rows[7][:3], 1.0, *rows[7][4:]],
        [*rows[7][:4], 1 - rows[7][4], rows[7][5]],
        [*rows[7][:5], "resolve"],
        [*rows[7][:5], f"{rows[7][5]}, resolve"],
        [*rows[7][:3], None, 1, ""],  # an error that was solved
    ):
        (said,) = check_entry(read([*rows[:7], episode, *rows[8:]]))
        assert "single_crash 7" in said
    (said,) = check_entry(read(rows, grounded=0.9))
    assert "grounded is" in said and not list(check_entry(read_entry(entry)))
    for episodes, message in (
        (rows[:-1], "each with as many attempts and once"),
        ([*rows, rows[0]], "each with as many attempts and once"),
        ([["single_crash", 3, 10**9, 1.0, 1, ""], *rows[1:]], "are missing"),
        ([["single_crash", 10**9, 0, 1.0, 1, ""], *rows[1:]], "are missing"),
        ([], "30 are missing"),
    ):
        with pytest.raises(ValueError, match=message):
            read(episodes)
    for text in ("[]", "{}", "no"):
        forged.write_text(text)
        with pytest.raises(ValueError, match="is no entry"):
            read_entry(forged)

    # A changed line is told, and no entry is made of the file.
    lines = path.read_text().splitlines(keepends=True)
    lines[5] = lines[5].replace('"score": ', '"score": 0.123, "was": ')
    path.write_text("".join(lines))
    found = run("replay", path)
    assert found.exit_code == 1 and "29 MATCH, 1 FORGED" in found.stdout
    assert len(re.findall(r"loudest +[a-z_]+ 0\.\d+ \[", found.stdout)) == 3  # mean scores
    assert "FORGED loudest single_crash 4 0: score is" in found.stdout
    kept = entry.read_bytes()
    found = run("replay", path, "--entry", entry)
    assert found.exit_code == 2 and "are FORGED" in found.stderr and entry.read_bytes() == kept


def test_production_has_a_table_of_its_own(tmp_path, monkeypatch):
    path, entry = tmp_path / "out.jsonl", tmp_path / "entry.json"
    played = ("evaluate", "--policy", "traversal", "--task", "production", "--split", "test")
    assert run(*played, "--episodes", 3, "--trajectories", path).exit_code == 0
    few = run("replay", path, "--entry", entry)
    assert few.exit_code == 2 and "197 are missing" in few.stderr
    monkeypatch.setattr("triagelab.bench.leaderboard.FEWEST", 3)
    assert run("replay", path, "--entry", entry, "--name", "walks").exit_code == 0
    own, known = read_entry(entry), read_entry(leaderboard.ENTRIES / "traversal.json")
    assert own.episodes == known.episodes[:3] and own.grounded is None
    assert not list(check_entry(own))
    first, second = entry_tables([own, *entries()]).split("### Production")
    assert "| walks |" in second and "| walks |" not in first
    told = json.loads(entry.read_text())
    forged = [*told["episodes"][0][:3], 0.5, 0, ""]
    entry.write_text(json.dumps({**told, "episodes": [forged, *told["episodes"][1:]]}))
    (said,) = check_entry(read_entry(entry))
    assert "production 0" in said and "score" in said
    entry.write_text(json.dumps({**told, "grounded": 0.9}))
    with pytest.raises(ValueError, match="grounded is a share"):
        read_entry(entry)
    entry.write_text(json.dumps({**told, "episodes": [*told["episodes"], *known_main()[:1]]}))
    with pytest.raises(ValueError, match="1 too many"):
        read_entry(entry)


def known_main():
    return json.loads((leaderboard.ENTRIES / "constant.json").read_text())["episodes"]


def test_the_ceiling_is_of_one_file_and_a_name_of_one_entry(tmp_path, monkeypatch):
    # Else whoever calls himself so would be what all others are measured by.
    monkeypatch.setattr(leaderboard, "ENTRIES", tmp_path)
    text = (FILES[0].parent / "constant.json").read_text()
    (tmp_path / "one.json").write_text(text)
    assert len(entries()) == 1
    for name, told in (
        ("constant", "an entry constant already"),
        ("Con stant", "an entry constant already, and Con stant reads like it"),
        ("belief", r"the entry of belief is belief\.json"),
    ):
        changed = text.replace('"name": "constant"', f'"name": "{name}"')
        (tmp_path / "two.json").write_text(changed)
        with pytest.raises(ValueError, match=told):
            entries()
    (tmp_path / "two.json").unlink()
    walks = (FILES[0].parent / "traversal.json").read_text()
    (tmp_path / "two.json").write_text(walks.replace('"traversal"', '"constant"', 1))
    assert len(entries()) == 2  # a name of each table
    (tmp_path / "two.json").write_text(walks.replace('"traversal"', '"ceiling"', 1))
    with pytest.raises(ValueError, match=r"the entry of ceiling is ceiling\.json"):
        entries()


@pytest.mark.parametrize(
    "field, value",
    [
        ("tokens", -5),
        ("grounded", None),
        ("grounded", 1.5),
        ("name", "b\u0435lief"),
        ("name", "a  b"),
    ],
)
def test_an_entry_claims_nothing_impossible(field, value, tmp_path):
    # A negative price, a share that nobody judged, a name with a Cyrillic letter.
    told = json.loads((leaderboard.ENTRIES / "constant.json").read_text())
    (tmp_path / "entry.json").write_text(json.dumps({**told, field: value}))
    with pytest.raises(ValueError, match=f"is no entry: {field}"):
        read_entry(tmp_path / "entry.json")


def test_attempts_and_errors_stand_in_the_row():
    belief = read_entry(leaderboard.ENTRIES / "belief.json")
    first = [(*one[:2], 0, *one[3:]) for one in belief.episodes]
    second = [(*one[:2], 1, None, 0, "") for one in belief.episodes]  # all errors
    twice = belief.model_copy(update={"episodes": [*first, *second]})
    row, once = table_row(twice, belief), table_row(belief, belief)
    assert row["errors"] == 600 and row["attempts"] == 2
    assert once["share of `belief`"] == 1.0 and row["share of `belief`"] == 0.5
    solved = sum(one[4] for one in belief.episodes) / 600
    assert once["solved"] == f"{solved:.2f}"
    assert row["solved"] == f"{solved / 2:.2f}; of 2 one {solved:.2f}, all 0.00"
    assert pass_at(1, 2, 1) == 0.5


def test_replay_refuses_what_it_cannot_read(tmp_path):
    assert "No such file" in refusal("replay", tmp_path / "gone.jsonl")
    shop = leaderboard.RESULTS.parent / "examples" / "shop.yaml"
    path = tmp_path / "shop.jsonl"
    played = ("--policy", "trace", "--task", "single_crash", "--episodes", 3, "--topology", shop)
    assert run("evaluate", *played, "--trajectories", path).exit_code == 0
    assert "another call graph" in refusal("replay", path)
    assert "3 MATCH" in run("replay", path, "--topology", shop).stdout


def test_what_somebody_wrote_stays_in_its_cell():
    told = plain("a | b\n<script> [link](http://x)")
    assert told == "a \\| b \\<script\\> [link](http://x)"


def test_what_is_recorded_is_what_the_entries_hold():
    kept = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert kept == leaderboard.recorded(), "run `make results`"
    assert RECORDED.stat().st_size < 60_000


@pytest.mark.parametrize("name, policy", [("base model", "base"), ("trained agent", "trained")])
def test_agents_are_those_of_the_published_run(name, policy):
    # After another training both entries are made anew, as the leaderboard says.
    run = RESULTS / "novice" / "seed-1"
    entry = read_entry(leaderboard.ENTRIES / f"{leaderboard.SHOWN[name]}.json")
    (player,) = entry.settings["policies"].values()
    weights = json.loads((run / "transcripts.json").read_text())["weights"]
    assert player["weights"] == weights[policy], f"make the entry of the {name} anew"
