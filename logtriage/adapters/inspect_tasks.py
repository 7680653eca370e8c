"""Incidents for Inspect (`inspect_ai`), for any provider that it knows: one task per split, and one
per suite of few incidents.

    inspect eval logtriage/lite --model anthropic/MODEL
    inspect eval logtriage/unseen_faults --model openai/MODEL -T task=cascading_failure

The conversation is that of `ConversationPolicy`: the same prompt, tools, answers and costs.
"""

from collections.abc import Iterable
from itertools import product
from types import SimpleNamespace

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    get_model,
)
from inspect_ai.scorer import Metric, Score, Scorer, Target, grouped, mean, metric, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolInfo
from inspect_ai.util import registry_info

from ..catalogue import SUITES, suite_places
from ..play.conversation import Message, answers, from_wire, opening_messages
from ..play.episode import Episode, closing_report, incident_id
from ..play.tools import ToolSession, tool_schemas
from ..world.tasks import BENCHMARK_VERSION, SPLITS, check_tasks

TOOLS = [ToolInfo.model_validate(schema["function"]) for schema in tool_schemas()]


@solver
def triage() -> Solver:
    """Lets the model call tools until the incident is closed or it walks away, by calling none."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        episode = Episode.open(**state.metadata)
        session = ToolSession(episode)
        try:
            while not episode.done:
                state.output = await get_model().generate(state.messages, TOOLS)
                message = state.output.message
                answered = answers(session, _from_inspect(message))
                state.messages += [message, *map(_to_inspect, answered)]
                if not answered:
                    break
        finally:  # also if Inspect's limit of messages, tokens or time is reached
            episode.abandon()
            state.store.set("end", closing_report(episode))
        return state

    return solve


@metric
def mean_of() -> Metric:
    """The mean over the incidents of each task."""
    return grouped(mean(), "task", all=False)


@metric
def stderr_of() -> Metric:
    """The standard error of that mean."""
    return grouped(stderr(), "task", all=False)


OF_EACH_TASK = [mean_of(), stderr_of()]


@scorer({"*": [mean(), stderr()], "total": OF_EACH_TASK, "solved": OF_EACH_TASK})
def triage_score() -> Scorer:
    """Total, whether the incident was solved, and the parts, cost and gate of the score."""

    async def score(state: TaskState, target: Target) -> Score:
        end = state.store.get("end")
        if end is None:
            raise ValueError("only the solver `triage` plays incidents; leave out --solver")
        return Score(
            value=end["score"],
            answer=", ".join(end["blamed"]) or "nobody",
            explanation=f"root cause: {end['root_cause'] or 'a false alarm'}; {end['closed_by']}",
            metadata=end,
        )

    return score


def _from_inspect(message: ChatMessageAssistant) -> Message:
    """Convert a message for `answers`; arguments that cannot be read become a text (one step)."""
    calls = []
    for call in message.tool_calls or ():
        arguments = call.parse_error or call.arguments
        function = SimpleNamespace(name=call.function, arguments=arguments)
        calls.append(SimpleNamespace(id=call.id, function=function))
    return from_wire(SimpleNamespace(content=message.text, tool_calls=calls))


def _to_inspect(message: Message) -> ChatMessage:
    """Convert an answer to a tool's message, or to a user's if the call could not be read."""
    content, called = message["content"], message.get("tool_call_id")
    if called is None:
        return ChatMessageUser(content=content)
    return ChatMessageTool(content=content, tool_call_id=called, function=message["name"])


def _task(name: str, split: str, places: Iterable[tuple[str, int]]) -> Task:
    """The task of the incidents at these places of a split, each a task's name and an index."""
    samples = []
    for of_task, index in places:  # of each its opening, and nothing of its truth
        episode = Episode.open(of_task, split, index)
        opening = opening_messages(ToolSession(episode).opening)
        where = {"task": of_task, "split": split, "index": index}
        samples.append(Sample(input=opening, id=incident_id(episode), metadata=where))
    return Task(
        samples, solver=triage(), scorer=triage_score(), name=name, version=BENCHMARK_VERSION
    )


def _called(name: str) -> str:
    """What Inspect calls a task: it puts the package's name first only if pip installed it."""
    named = registry_info(triage).name.startswith("logtriage/")
    return name if named else f"logtriage/{name}"


def _register_split(split: str) -> None:
    """Offer a split as the task `logtriage/SPLIT`; `-T` sets its options."""

    @task(name=_called(split))
    def of_split(task: str | list[str] = "all", episodes: int = 200, first: int = 0) -> Task:
        names = check_tasks([task] if isinstance(task, str) else task)
        # Sorted by index, with tasks in turn, so that `--limit` leaves some of each.
        order = product(range(first, first + episodes), names)
        return _task(split, split, ((name, index) for index, name in order))


def _register_suite(suite: str) -> None:
    """Offer a suite as the task `logtriage/SUITE`."""

    @task(name=_called(suite))
    def of_suite() -> Task:
        return _task(suite, "test", suite_places(suite))


for name in SPLITS:
    _register_split(name)
for name in SUITES:
    _register_suite(name)
