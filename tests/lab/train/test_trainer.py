"""What TRL is handed, and the private parts of TRL that this relies on."""

import inspect
import math
import runpy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from lab_helpers import lines
from transformers import TrainerControl, TrainerState
from trl import GRPOConfig, GRPOTrainer

from logtriage.play.tools import TriageTools
from triagelab.bench.published import read, seeds_of
from triagelab.train import trainer
from triagelab.train.loop import KeptTrainer
from triagelab.train.settings import make_config
from triagelab.train.trainer import IncidentTrainer, MetricsLog, check_settings, grpo_settings

HOOKS = {  # private methods of TRL that these override
    IncidentTrainer: {
        "_get_tool_suffix_ids": "self tool_messages",
        "_prepare_inputs": "self generation_batch",
    },
    KeptTrainer: {
        "_generate": "self prompts",
        "_generate_and_score_completions": "self inputs",
        "_compute_loss": "self model inputs",
        "_get_per_token_logps_and_entropies": "self model args batch_size compute_aux_loss kwargs",
    },
}


def test_trl_has_the_private_parts_that_are_relied_on():
    # Overriding what is no longer called would train on, a turn longer an episode and slower, and
    # say nothing. A newer TRL that fails here has to be read again.
    theirs = vars(GRPOTrainer)
    for kind, hooks in HOOKS.items():
        own = {name for name in vars(kind) if name.startswith("_") and not name.startswith("__")}
        assert own - {"_component_advantages"} == set(hooks)
        for name, parameters in hooks.items():
            assert [*inspect.signature(theirs[name]).parameters] == parameters.split(), name
    source = inspect.getsource(GRPOTrainer)
    for part in (
        "suffix_ids = self._get_tool_suffix_ids(tool_messages)",
        "> self.max_completion_length",  # an answer that does not fit is dropped
        "del completions[idx_with_tool][completions_len_before[idx] :]",
        "if self._step % generate_every == 0 or self._buffered_inputs is None:",
        "inputs = self._buffered_inputs[self._step % self.args.steps_per_generation]",
        "self.reward_funcs.append(get_reward)",  # after the recorder, which counts calls for it
        "nansum(dim=1)",  # rewards are summed up
        "images,\n            tool_images,\n        ) = self._generate(prompts)",
        "per_token_logps, entropies, aux_loss = self._get_per_token_logps_and_entropies(",
        "if advantages.dim() == 1:",  # they may have a column a token
        '"advantages": advantages,',
    ):
        assert part in source, part


def test_a_step_is_one_update_and_no_trainer_changes_its_settings(tmp_path):
    config = make_config("novice", model="x", micro_batches=4)
    asked = grpo_settings(config, tmp_path)
    arguments = GRPOConfig(**asked)
    check_settings(arguments, asked)
    assert arguments.generation_batch_size == config.episodes == 64
    assert arguments.max_tool_calling_iterations == 15  # the longest task's steps

    class Changed(GRPOConfig):
        def __post_init__(self):
            super().__post_init__()
            self.scale_rewards = False  # Unsloth's word for "none"
            self.temperature = 0.9

    with pytest.raises(RuntimeError, match=r"changed: {'temperature': 0\.9}"):
        check_settings(Changed(**asked), asked)


def test_notebook_3_writes_out_the_settings_that_every_run_has(tmp_path):
    path = Path(__file__).parents[3] / "notebooks" / "03_grpo_training.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    (source,) = (cell.source for cell in cells if "GRPOTrainer(" in cell.source)
    example = source.partition("\n\n\nasked =")[0]
    assert len(example.splitlines()) <= 30 and "GRPOConfig(" in example and "get_reward" in example
    config = make_config("novice", model="x")
    names = {"config": config, "TriageTools": TriageTools, "partial": partial}
    (tmp_path / "example.py").write_text(example)
    names = runpy.run_path(tmp_path / "example.py", names)
    asked = grpo_settings(config, tmp_path)
    made = names["make_trainer"](dict, dict(asked), (), {})
    assert made["args"].to_dict() == GRPOConfig(**asked).to_dict()
    assert isinstance(made["environment_factory"](), TriageTools)


def test_what_notebook_3_says_of_its_curve_holds_of_the_published_seeds():
    falls = []
    for run in seeds_of("novice"):
        tasks = read(run / "episodes.parquet").groupby(["step", "task"])["score"].mean().unstack()
        level = tasks.rolling(15, min_periods=1, center=True).mean().mean(axis=1)
        falls.append(level.iloc[-1] < level.max())
        held_out = read(run / "checkpoints.parquet").groupby("step")["score"].mean()
        assert held_out.loc[80] > held_out.loc[40]
    assert sorted(falls) == [False, True, True, True, True]


def answer(content):
    return {"role": "tool", "name": "resolve", "content": content}


def test_an_answer_that_closes_the_incident_does_not_fit():
    trainer = IncidentTrainer.__new__(IncidentTrainer)
    trainer.max_completion_length = 8
    trainer._tokenizer = SimpleNamespace(pad_token_id=0)
    closing = [answer("step 3 of 8\nclosed by resolve\nIncident closed."), answer("{'error': 'x'}")]
    assert len(trainer._get_tool_suffix_ids(closing)) > trainer.max_completion_length


def test_calls_that_reached_no_session_are_counted_once():
    ended = [
        answer("{'error': 'Tool rm not found.'}"),
        # The session has counted these itself.
        answer("{'error': 'Incident closed.'}"),
        answer("step 3 of 8\nerror: unknown team 'ceo'"),
        {"role": "assistant", "content": "<tool_call>{"},
    ]
    assert trainer.unreachable_calls(ended) == 2
    assert trainer.unreachable_calls([{"role": "assistant", "content": "I give up."}]) == 0


def test_a_step_is_not_begun_that_would_not_end_in_time(tmp_path, monkeypatch):
    clock, stopped = [0.0], []
    monkeypatch.setattr(trainer.time, "perf_counter", lambda: clock[0])
    log = MetricsLog(tmp_path, 9, False, None, 100.0)
    log.on_train_begin(None, TrainerState(), TrainerControl())
    # As long as the longest of them: it is the third that was slow.
    for step, seconds in enumerate((10, 10, 30, 10, 15), 1):
        clock[0] += seconds
        control = TrainerControl()
        log.on_step_end(None, TrainerState(global_step=step), control)
        stopped.append(control.should_training_stop and control.should_save)
    assert stopped == [False, False, False, False, True]


def test_processor_time_adds_up_over_attempts(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "seconds": 50.0, "cpu_seconds": 40.0}\n')
    for step in (2, 3):  # each an attempt of its own
        log, state = MetricsLog(tmp_path, 3, False, None, math.inf), TrainerState(global_step=step)
        log.on_train_begin(None, state, None)
        sum(range(3_000_000))
        log.on_log(None, state, None, {"reward": 0.0})
        log.bar.close()
    cpu = [row["cpu_seconds"] for row in lines(tmp_path / "metrics.jsonl")]
    assert cpu[0] < cpu[1] < cpu[2] < 60.0


def test_training_ends_when_several_steps_in_a_row_teach_nothing(tmp_path, capsys):
    # In fp16 the loss may be finite while every step is skipped; in other precisions the first
    # such step is the last (`test_grpo`).
    log = MetricsLog(tmp_path, 99, False, None, math.inf)
    log.on_train_begin(None, TrainerState(), None)
    half = SimpleNamespace(fp16=True)
    norms = [math.nan] * 4 + [0.1] + [math.inf] * 5
    for step, norm in enumerate(norms[:-1], 1):
        logs = {"reward": 0.5, "loss": 0.1, "grad_norm": norm}
        log.on_log(half, TrainerState(global_step=step), None, logs)
    with pytest.raises(ValueError, match="of step 10 are not finite, in 5 steps in a row"):
        log.on_log(half, TrainerState(global_step=10), None, logs)
    assert capsys.readouterr().out.count("taught nothing") == 9
