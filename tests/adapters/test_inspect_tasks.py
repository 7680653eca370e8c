"""The tasks for Inspect, played by its own `eval` with a model that says what a test wants."""

import os

import pytest

from logtriage.bench.registry import make_policy
from logtriage.play.actions import Action
from logtriage.play.conversation import answers, opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.scoring import solved
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS

# In requirements-dev.txt; a machine with the package alone may lack it.
if not os.environ.get("CI"):
    pytest.importorskip("inspect_ai")

from inspect_ai import eval as evaluate
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall

BROKEN = "what could not be read"


def said(*calls, content=""):
    """A model's message with calls of (name, arguments); `BROKEN` are no arguments."""
    made = [
        ToolCall(f"call_{number}", name, {}, parse_error="Error parsing {")
        if arguments is BROKEN
        else ToolCall(f"call_{number}", name, arguments)
        for number, (name, arguments) in enumerate(calls)
    ]
    return ChatMessageAssistant(content=content, tool_calls=made or None)


def does(action):
    function = tool_call(action)["function"]
    return said((function["name"], function["arguments"]))


def played(scripts, folder, split="test", options=None, **more):
    """The log of a run where the model says what `scripts` have for an opening, turn by turn."""

    def speak(read, tools, choice, config):
        turn = sum(message.role == "assistant" for message in read)
        output = ModelOutput.from_message(scripts[read[1].text][turn])
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


def value(score):
    return {**score._asdict(), "solved": float(solved(score))}


def opening(task, index, split="test"):
    return ToolSession(Episode.open(task, split, index)).opening


def test_scores_are_ours_to_the_bit_and_the_log_can_be_read(tmp_path):
    # A script that errs half of the time, on 21 incidents at once.
    scripts, expected = {}, {}
    for task in TASKS:
        for index in range(7):
            episode = Episode.open(task, "test", index)
            make_policy("novice", index).play([episode])
            scripts[opening(task, index)] = [does(step.action) for step in episode.history]
            expected[f"{task}/test/{index}"] = value(episode.score)
    log = played(scripts, tmp_path, options={"episodes": 7})
    assert scores(log) == expected and len({str(one) for one in expected.values()}) > 10

    asked = next(event for event in log.samples[0].events if event.event == "model")
    shown = [
        (tool.name, tool.description, list(tool.parameters.properties)) for tool in asked.tools
    ]
    schemas = [schema["function"] for schema in tool_schemas()]
    assert shown == [
        (own["name"], own["description"], list(own["parameters"]["properties"])) for own in schemas
    ]

    total, severity = (
        next(score for score in log.results.scores if score.name == name)
        for name in ("total", "severity")
    )
    mean = sum(one["total"] for one in expected.values()) / 21
    assert total.metrics["mean"].value == pytest.approx(mean) and "stderr" in severity.metrics
    names = {metric.rpartition("/")[2] for metric in total.metrics}
    assert {f"{kind}_of_{task}" for kind in ("mean", "stderr") for task in TASKS} < names

    assert scores(read_eval_log(log.location)) == expected  # the file that `inspect view` shows


MALFORMED = [("rm", {}), ("escalate", BROKEN), ("escalate", {}), ("resolve", {"now": 1})]


WRONG = [  # an agent's messages, its steps, and how its incident ends
    ([said(*MALFORMED), does(Action("ignore"))], 5, "ignore"),
    ([said(*MALFORMED * 3)], 8, "timeout"),
    ([does(Action("classify_severity", ("P2",))), said(content="I give up.")], 1, "timeout"),
    ([said(content='<tool_call>\n{"name": "resol'), does(Action("resolve"))], 2, "resolve"),
    ([said(("resolve", {}), ("resolve", {}))], 1, "resolve"),
]


def test_what_goes_wrong_costs_what_it_costs_elsewhere(tmp_path):
    scripts, expected, conversations = {}, {}, []
    for index, (messages, *end) in enumerate(WRONG):
        session = ToolSession(Episode.open("single_crash", "test", index))
        conversation = opening_messages(session.opening)
        for message in messages:
            calls = [
                {"function": {"name": one.function, "arguments": one.parse_error or one.arguments}}
                for one in message.tool_calls or ()
            ]
            own = {"content": message.text, "tool_calls": calls}
            conversation += [own, *answers(session, own)]
        session.episode.abandon()
        record = session.episode.record
        assert [record.steps, record.closed_by] == end
        scripts[session.opening] = messages
        expected[f"single_crash/test/{index}"] = value(session.episode.score)
        conversations.append([message["content"] for message in conversation])
    options = {"task": "single_crash", "episodes": len(WRONG)}
    log = played(scripts, tmp_path, options=options)
    assert scores(log) == expected
    assert [[message.text for message in one.messages] for one in log.samples] == conversations


def test_a_limit_scores_what_was_done_and_the_truth_is_nowhere_before(tmp_path):
    script = [does(Action("request_more_logs", ("all",)))] * 8
    log = played(
        {opening("single_crash", 3): script},
        tmp_path,
        options={"task": "single_crash", "episodes": 1, "first": 3},
        message_limit=6,
    )
    (sample,) = log.samples
    scored = sample.scores["triage_score"]
    assert sample.limit.type == "message" and scored.value["total"] == 0.0
    root = sample_incident("single_crash", "test", 3).root
    assert scored.answer == "nobody" and scored.explanation == f"root cause: {root}; timeout"
    assert sample.metadata == {"task": "single_crash", "split": "test", "index": 3}
    assert sample.target == ""


def test_each_split_is_a_task_and_names_are_checked(tmp_path):
    for split in ("train", "unseen_topology"):
        script = {opening("single_crash", 0, split): [said(content="no")]}
        log = played(script, tmp_path, split, {"task": "single_crash", "episodes": 1})
        assert list(scores(log)) == [f"single_crash/{split}/0"]
    with pytest.raises(ValueError, match="unknown task 'crash'; choose one of single_crash"):
        played({}, tmp_path, options={"task": "crash"})


def test_another_solver_is_refused(tmp_path):
    from inspect_ai.solver import generate

    script = {opening("single_crash", 0): [said(content="no")]}
    options = {"task": "single_crash", "episodes": 1}
    log = played(script, tmp_path, options=options, solver=generate())
    assert log.status == "error" and "leave out --solver" in log.error.message
