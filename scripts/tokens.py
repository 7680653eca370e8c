"""Count what an episode costs in Qwen2.5's tokens: `make tokens`. A test holds the table fresh.

The tokenizer's vocabulary is a file of the package `dashscope`, and TRL has Qwen2.5's chat
template, so no model hub is asked. Text is counted as a model reads it: rendered by that template,
tools and all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import tiktoken
from tables import write_tables
from tiktoken.load import load_tiktoken_bpe
from transformers.utils.chat_template_utils import render_jinja_template

from logtriage.play.actions import Action
from logtriage.play.conversation import Message, opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.prompts import render
from logtriage.play.tools import tool_schemas
from logtriage.policies.llm.loading import short_template
from logtriage.policies.scripted import TracePolicy
from logtriage.train.drills import transcript
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "tokens" / "tokens.csv"
INCIDENTS = 100  # a task, of `train`
# Turns of the manner compared with: a call each, and the whole conversation sent every time.
REFERENCE_TURNS = 15
REFERENCE = f"reference: {REFERENCE_TURNS} turns read anew"
BY_TASK = ("packed: read anew each turn", REFERENCE)  # counted for each task as well
CALLS = 5  # of a message that says all there is to say

# How Qwen2.5 splits text before merging, and its special tokens in the order of their ids: both of
# `tokenizer.json` of Qwen/Qwen2.5-3B-Instruct. The merges are those of Qwen's first tokenizer.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"),
    *("<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
)
TURN = "<|im_start|>"  # opens a message; a special token, so what it parts is tokenized apart
ANSWER = f"{TURN}assistant\n"


def vocabulary_file() -> str:
    """Path of Qwen's merges and single bytes, a line each with its rank."""
    path = next(file for file in files("dashscope") or () if file.name == "qwen.tiktoken").locate()
    return str(path)


@cache
def tokenizer() -> tiktoken.Encoding:
    """Qwen2.5's byte pair encoding."""
    ranks = load_tiktoken_bpe(vocabulary_file())
    special = {text: len(ranks) + place for place, text in enumerate(SPECIAL)}
    return tiktoken.Encoding(
        "qwen2.5", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens=special
    )


@cache
def _count_part(text: str) -> int:
    return len(tokenizer().encode(text, allowed_special="all"))


def count(text: str) -> int:
    """Tokens of a text, in which special tokens are what they look like."""
    first, *others = text.split(TURN)
    return _count_part(first) + sum(_count_part(TURN + part) for part in others)


@cache
def template(short: bool) -> str:
    """TRL's template for Qwen2.5, or the one with tools said short."""
    spec = find_spec("trl")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    text = (folder / "chat_templates" / "qwen2_5.jinja").read_text()
    return short_template(text) if short else text


def rendered(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]] | None = None,
    answering: bool = False,
    short: bool = False,
) -> str:
    """Messages as a model reads them; `answering` opens its next message."""
    ((text,), _) = render_jinja_template(
        [list(messages)],
        tools=list(tools) if tools is not None else None,
        chat_template=template(short),
        add_generation_prompt=answering,
    )
    return text


def prompt_tokens(messages: Sequence[Message], short: bool = False) -> int:
    """Tokens that a model reads before it answers these messages."""
    return count(rendered(messages, tool_schemas(), answering=True, short=short))


def written(message: Message) -> int:
    """Tokens that a model writes to say a message, its end included."""
    return count(rendered([message]).split(ANSWER)[-1].rstrip("\n"))


def opening(episode: Episode) -> list[Message]:
    """What an agent reads first."""
    return opening_messages(render(episode.opening, episode.incident.topology))


def one_by_one(episode: Episode) -> list[Message]:
    """An episode of `trace` as `transcript` writes it down, but one call a turn."""
    policy, messages = TracePolicy(), opening(episode)
    policy.begin(episode.incident.topology, episode.opening)
    while not episode.done:
        action = policy.act()
        observation = episode.act(action)
        policy.see(observation)
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [tool_call(action)]},
            {"role": "tool", "name": action[0], "content": render(observation)},
        ]
    return messages[:-1]  # nobody reads the last answer


def processed(messages: Sequence[Message], short: bool) -> tuple[int, int]:
    """Tokens that a model reads and writes in an episode: when every turn reads the whole
    conversation anew, the sum over the turns; when keys and values are kept, each once.
    """
    anew = kept = 0
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            kept = prompt_tokens(messages[:place], short) + written(message)
            anew += kept
    return anew, kept


def reference(messages: Sequence[Message]) -> float:
    """Tokens of `REFERENCE_TURNS` turns with whole schemas, each of which reads everything anew:
    turn t reads the prompt and t - 1 calls with their answers, and writes a call.

    A call and an answer are as long as the mean of these messages', which are one call a turn.
    """
    calls = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    prompts = [prompt_tokens(messages[:place]) for place in calls]
    call = sum(written(messages[place]) for place in calls) / len(calls)
    exchange = (prompts[-1] - prompts[0]) / (len(calls) - 1)
    turns = REFERENCE_TURNS
    return turns * (prompts[0] + call) + exchange * turns * (turns - 1) / 2


def schema_stages() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(what is left out, the tools as they are printed then), each on top of the one before."""
    schemas = tool_schemas()
    yield "whole", schemas
    functions = [
        {key: value for key, value in schema["function"].items() if key != "return"}
        for schema in schemas
    ]
    yield "`return`", [{"type": "function", "function": one} for one in functions]
    yield "wrapper", functions
    for one in functions:
        one["parameters"] = {k: v for k, v in one["parameters"].items() if k != "required"}
    yield "`required`", functions
    short = []
    for one in functions:
        properties = one["parameters"]["properties"]
        texts = {name: value["description"] for name, value in properties.items()}
        short.append({**one, "arguments": texts})
        del short[-1]["parameters"]
    yield "types", short
    bare = [{"name": one["name"], "arguments": one["arguments"]} for one in short]
    yield "descriptions of tools", bare


def fixed_counts() -> Iterator[tuple[str, int]]:
    """(what, tokens) of all that is the same in every episode."""
    system = opening_messages("")[:1]
    bare, tools = count(rendered(system)), count(rendered(system, tool_schemas()))
    sizes = {
        name: sum(count("\n" + json.dumps(schema)) for schema in schemas)
        for name, schemas in schema_stages()
    }
    yield "system prompt", bare
    yield "how to call a tool", tools - bare - sizes["whole"]
    for name, size in sizes.items():
        yield f"seven schemas, {name}", size
    yield "system prompt with tools", tools
    yield "system prompt with short tools", count(rendered(system, tool_schemas(), short=True))


def episode_counts(task: str, split: str, index: int) -> Iterator[tuple[str, float]]:
    """(what, tokens) of one incident, and how many turns its episodes take."""
    first = opening(Episode.open(task, split, index))
    yield "opening", count(rendered(first)) - count(rendered(first[:1]))
    yield "prompt", prompt_tokens(first)
    yield "prompt with short tools", prompt_tokens(first, short=True)
    topology = Episode.open(task, split, index).incident.topology
    for service in (*topology.names, "all"):
        told = render(Episode.open(task, split, index).act(Action("request_more_logs", (service,))))
        yield "logs of all" if service == "all" else "logs of one service", count(told)

    single = one_by_one(Episode.open(task, split, index))
    for message in single:
        if message["role"] == "assistant":
            yield "a call", written(message)
    packed = transcript(TracePolicy(), Episode.open(task, split, index))
    if len(packed[-1]["tool_calls"]) == CALLS:
        yield "five calls in one message", written(packed[-1])
    for name, messages in (("packed", packed), ("one call a turn", single)):
        turns = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
        yield f"{name}: turns", len(turns)
        yield f"{name}: written", sum(written(messages[place]) for place in turns)
        anew, kept = processed(messages, short=False)
        yield f"{name}: read anew each turn", anew
        yield f"{name}: kept", kept
        short, short_kept = processed(messages, short=True)
        yield f"{name}, short tools: read anew each turn", short
        yield f"{name}, short tools: kept", short_kept
    yield REFERENCE, reference(single)


def counts(incidents: int) -> pd.DataFrame:
    """A row for each thing that was counted: what, how many were, and the mean, the least and the
    most tokens. `incidents` of `train` a task.
    """
    found: dict[str, list[float]] = {what: [tokens] for what, tokens in fixed_counts()}
    for task in TASKS:
        for index in range(incidents):
            for what, tokens in episode_counts(task, "train", index):
                found.setdefault(what, []).append(tokens)
                if what in BY_TASK:
                    found.setdefault(f"{what}, {task}", []).append(tokens)
            other = opening(Episode.open(task, "unseen_topology", index))
            found.setdefault("prompt, unseen_topology", []).append(prompt_tokens(other))
    rows = [
        (what, len(all_of), round(sum(all_of) / len(all_of), 1), min(all_of), max(all_of))
        for what, all_of in found.items()
    ]
    frame = pd.DataFrame(rows, columns=["what", "count", "mean", "least", "most"])
    return frame.round(1)


def main() -> None:
    """Count, and write the table of docs/t4.md."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    counts(INCIDENTS).to_csv(RESULTS, index=False)
    write_tables()


if __name__ == "__main__":
    main()
