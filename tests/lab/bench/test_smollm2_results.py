"""SmolLM2's published stages: the adapters are what was played, and a score can be played again."""

import json

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from logtriage.play.actions import Action
from logtriage.play.episode import Episode, final_score
from logtriage.recorded import recorded_actions
from triagelab.bench import smollm2_stages
from triagelab.bench.rollouts import Result
from triagelab.bench.smollm2_results import stage_facts
from triagelab.bench.smollm2_stages import ADAPTER, AVERAGED, FOLDER, SEEDS, STAGES, WATCHED, WAYS
from triagelab.bench.verify import MATCH, verify
from triagelab.language_models.loading import weights_digest


def test_adapters_are_those_that_were_played():
    rows = pd.read_parquet(FOLDER / "episodes.parquet")
    published = [name for name in STAGES if (FOLDER / name).is_dir()]
    assert published
    for name in published:
        played = rows[rows["policy"].isin([f"{STAGES[name]}, {way}" for way in WAYS])]
        assert set(played["weights"]) == {weights_digest(FOLDER / name)}
        record = json.loads((FOLDER / name / "adapter_config.json").read_text())
        assert record["base_model_name_or_path"] == "smollm2"
    assert "Apache" in (FOLDER / "NOTICE").read_text()


def test_a_published_score_can_be_played_again():
    checks = verify(FOLDER / "example.jsonl")
    assert checks and {check.verdict for check in checks} == {MATCH}


@pytest.mark.parametrize("name", WATCHED)
def test_what_is_recorded_for_the_page_has_the_published_scores(name):
    rows = pd.read_parquet(FOLDER / "episodes.parquet")
    own = rows["policy"] == smollm2_stages.policy_of(WATCHED[name])
    rows = rows[own & (rows["split"] == "test")]
    assert len(rows) == 300
    for task, index, score in rows[["task", "index", "score"]].itertuples(index=False):
        episode = Episode.open(task, "test", index)
        for action in recorded_actions(task, "test", index)[name]:
            episode.act(Action.from_text(action))
        assert final_score(episode).total == pytest.approx(score)


def test_stages_are_published_in_16_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(smollm2_stages, "FOLDER", tmp_path / "results")
    for stage in (*smollm2_stages.PUBLISHED, "expert/more"):
        run = tmp_path / "runs" / stage
        run.mkdir(parents=True)
        save_file({"lora": torch.ones(2)}, run / ADAPTER)
        for file in ("adapter_config.json", "base.json", "state.pt"):
            (run / file).write_text("{}")
    smollm2_stages.publish_adapters(tmp_path / "runs")
    folders = sorted((tmp_path / "results" / "expert").iterdir())
    # and no control
    assert [folder.name for folder in folders] == ["averaged", "base", "on-policy"]
    for target in folders:
        assert load_file(target / ADAPTER)["lora"].dtype == torch.float16
        files = sorted(path.name for path in target.iterdir())
        assert files == ["adapter_config.json", ADAPTER, "base.json"]


def test_the_gain_of_all_seeds_is_the_mean_of_theirs_and_less_certain():
    facts = stage_facts()
    each = [facts[f"smollm2.gain.{seed}"] for seed in range(1, len(SEEDS) + 1)]
    together = facts["smollm2.gain"]
    assert together.mean == pytest.approx(sum(gain.mean for gain in each) / len(each))
    assert together.high - together.low > max(gain.high - gain.low for gain in each)


def test_seeds_are_averaged_when_all_are_there(tmp_path):
    smollm2_stages.average_seeds(tmp_path)
    assert not (tmp_path / AVERAGED).exists()
    for number, seed in enumerate(SEEDS):
        (tmp_path / seed).mkdir(parents=True)
        save_file({"lora": torch.full((2,), float(number))}, tmp_path / seed / ADAPTER)
        (tmp_path / seed / "adapter_config.json").write_text("{}")
    smollm2_stages.average_seeds(tmp_path)
    averaged = load_file(tmp_path / AVERAGED / ADAPTER)["lora"]
    assert averaged.tolist() == pytest.approx([(len(SEEDS) - 1) / 2] * 2)


def test_refused_calls_are_counted():
    episode = Episode.open("single_crash", "train", 0)
    episode.act(Action("classify_severity", ("P9",)))
    episode.act(Action("ignore"))
    counted = smollm2_stages.describe_calls(Result({}, episode, ()))
    assert counted == {"calls": 2, "malformed": 1, "actions": "? ignore"}
