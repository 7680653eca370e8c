"""The tasks for Inspect, played by its own `eval` with a model that says what a test wants."""

import json

import pytest
from helpers import needs
from scripted_turns import WRONG, as_played_by, conversed, does, message_of, opening
from talking_server import said

from logtriage.catalogue import suite_places
from logtriage.play.actions import Action
from logtriage.play.tools import tool_schemas
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS

# In requirements-dev.txt; a machine with the package alone may lack it.
pytestmark = needs("inspect_ai")


def as_inspect_has_it(completion):
    """A completion's message, its arguments read as Inspect reads them, or not."""
    from inspect_ai.model import ChatMessageAssistant
    from inspect_ai.tool import ToolCall

    message, calls = message_of(completion), []
    for call in message["tool_calls"] or ():
        name, written = call["function"].values()
        try:
            calls.append(ToolCall(call["id"], name, json.loads(written)))
        except ValueError:
            calls.append(ToolCall(call["id"], name, {}, parse_error="Error parsing {"))
    return ChatMessageAssistant(content=message["content"] or "", tool_calls=calls or None)


def played(scripts, folder, split="test", options=None, **more):
    """The log of a run where the model says what `scripts` have for an opening, turn by turn."""
    from inspect_ai import eval as evaluate
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def speak(read, tools, choice, config):
        turn = sum(message.role == "assistant" for message in read)
        output = ModelOutput.from_message(as_inspect_has_it(scripts[read[1].text][turn]))
        output.usage = ModelUsage()  # otherwise its tokens are counted, for which a file is fetched
        return output

    model = get_model("mockllm/model", custom_outputs=speak)
    given = {"model": model, "task_args": options or {}, "log_dir": str(folder), **more}
    (log,) = evaluate(f"logtriage/{split}", display="none", log_format="json", **given)
    return log


def scores(log):
    """The values of every sample, by its id."""
    assert log.status == "success", log.error
    return {sample.id: sample.scores["triage_score"].value for sample in log.samples}


def test_scores_are_ours_to_the_bit_and_the_log_can_be_read(tmp_path):
    from inspect_ai.log import read_eval_log

    # A script that errs half of the time, on 24 incidents at once.
    scripts, expected = {}, {}
    for task in TASKS:
        for index in range(8):
            episode, scripts[opening(task, index)] = as_played_by("novice", task, index, index)
            expected[f"{task}/test/{index}"] = episode.score._asdict()
    log = played(scripts, tmp_path, options={"episodes": 8})
    assert scores(log) == expected and len({str(score) for score in expected.values()}) > 10

    asked = next(event for event in log.samples[0].events if event.event == "model")
    for tool, schema in zip(asked.tools, tool_schemas(), strict=True):
        own = schema["function"]
        assert (tool.name, tool.description) == (own["name"], own["description"])
        assert list(tool.parameters.properties) == list(own["parameters"]["properties"])

    total, severity = (
        next(score for score in log.results.scores if score.name == name)
        for name in ("total", "severity")
    )
    mean = sum(score["total"] for score in expected.values()) / 24
    assert total.metrics["mean"].value == pytest.approx(mean) and "stderr" in severity.metrics
    names = {metric.rpartition("/")[2] for metric in total.metrics}
    assert {f"{kind}_of_{task}" for kind in ("mean", "stderr") for task in TASKS} < names

    assert scores(read_eval_log(log.location)) == expected  # the file that `inspect view` shows


def test_what_goes_wrong_costs_what_it_costs_in_conversation(tmp_path):
    scripts = {opening("single_crash", at): said for at, (said, *_) in enumerate(WRONG)}
    options = {"task": "single_crash", "episodes": len(WRONG)}
    log = played(scripts, tmp_path, options=options)
    for index, (completions, steps, closed_by) in enumerate(WRONG):
        here = conversed(completions, "single_crash", index)
        record = here.episode.record
        assert (record.steps, record.closed_by) == (steps, closed_by)
        assert scores(log)[f"single_crash/test/{index}"] == here.episode.score._asdict()
        texts = [message.text for message in log.samples[index].messages]
        assert texts == [message["content"] for message in here.messages]


def test_a_limit_scores_what_was_done_and_the_truth_is_nowhere_before(tmp_path):
    script = [does(Action("request_more_logs", ("all",)))] * 8
    options = {"task": "single_crash", "episodes": 1, "first": 3}
    log = played({opening("single_crash", 3): script}, tmp_path, options=options, message_limit=6)
    (sample,) = log.samples
    scored = sample.scores["triage_score"]
    assert sample.limit.type == "message" and scored.value["total"] == 0.0
    root = sample_incident("single_crash", "test", 3).root
    assert scored.answer == "nobody" and scored.explanation == f"root cause: {root}; timeout"
    assert sample.metadata == {"task": "single_crash", "split": "test", "index": 3}
    assert sample.target == ""


def test_each_split_and_suite_is_a_task_and_names_are_checked(tmp_path):
    for split in ("train", "unseen_topology"):
        script = {opening("single_crash", 0, split): [said(content="no")]}
        log = played(script, tmp_path, split, {"task": "single_crash", "episodes": 1})
        assert list(scores(log)) == [f"single_crash/{split}/0"]
    with pytest.raises(ValueError, match="unknown task 'crash'; choose one of single_crash"):
        played({}, tmp_path, options={"task": "crash"})
    places = suite_places("lite")
    scripts = {opening(task, index): [said(content="no")] for task, index in places}
    log = played(scripts, tmp_path, "lite")
    assert {*scores(log)} == {f"{task}/test/{index}" for task, index in places}


def test_another_solver_is_refused(tmp_path):
    from inspect_ai.solver import generate

    script = {opening("single_crash", 0): [said(content="no")]}
    options = {"task": "single_crash", "episodes": 1}
    log = played(script, tmp_path, options=options, solver=generate())
    assert log.status == "error" and "leave out --solver" in log.error.message
