"""Count what an episode costs in Qwen2.5's tokens: a test holds the table fresh.

The tokenizer's vocabulary is a file of the package `dashscope`, and TRL has Qwen2.5's chat
template, so no model hub is asked. Text is counted as a model reads it: rendered by that template,
tools and all. Importing this imports neither transformers nor TRL, which must come after Unsloth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from logtriage.bench.registry import make_policy
from logtriage.play.actions import Action
from logtriage.play.conversation import Message, opening_messages
from logtriage.play.episode import Episode
from logtriage.play.prompts import render
from logtriage.play.tools import tool_schemas
from logtriage.policies.llm.loading import short_template
from logtriage.policies.scripted import TracePolicy
from logtriage.train.conversations import one_call_per_turn
from logtriage.train.drills import transcript
from logtriage.world.tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "tokens" / "tokens.csv"
INCIDENTS = 100  # a task, of `train`
CALLS = 5  # of a message that says all there is to say

# Qwen2.5's special tokens in the order of their ids, as in `tokenizer.json` of
# Qwen/Qwen2.5-3B-Instruct. The merges are those of Qwen's first tokenizer.
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"),
    *("<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
)
ANSWER = "<|im_start|>assistant\n"


@cache
def tokenizer() -> Any:
    """Qwen2.5's tokenizer with TRL's template, from Qwen's file of merges and single bytes."""
    from transformers import AddedToken, Qwen2Tokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter

    path = next(file for file in files("dashscope") or () if file.name == "qwen.tiktoken").locate()
    vocabulary, merges = TikTokenConverter().extract_vocab_merges_from_model(str(path))
    qwen = Qwen2Tokenizer(vocabulary, merges, additional_special_tokens=[])
    # As in Qwen's own, what opens and closes a call is no special token: decoding keeps it.
    first_plain = SPECIAL.index("<tool_call>")
    qwen.add_tokens(
        [
            AddedToken(text, special=place < first_plain, normalized=False)
            for place, text in enumerate(SPECIAL)
        ]
    )
    qwen.eos_token, qwen.pad_token = "<|im_end|>", "<|endoftext|>"
    spec = find_spec("trl")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    qwen.chat_template = (folder / "chat_templates" / "qwen2_5.jinja").read_text()
    return qwen


@cache
def count(text: str) -> int:
    """Tokens of a text, in which special tokens are what they look like."""
    return len(tokenizer().encode(text, add_special_tokens=False))


def rendered(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]] | None = None,
    answering: bool = False,
    short: bool = False,
) -> str:
    """Messages as a model reads them; `answering` opens its next message."""
    template = tokenizer().chat_template
    text: str = tokenizer().apply_chat_template(
        list(messages),
        tools=tools,
        chat_template=short_template(template) if short else template,
        add_generation_prompt=answering,
        tokenize=False,
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
    make_policy("trace").play([episode])
    return one_call_per_turn(episode)[:-1]  # nobody reads the last answer


def processed(messages: Sequence[Message], short: bool) -> tuple[int, int]:
    """Tokens that a model reads and writes in an episode: when every turn reads the whole
    conversation again, summed over the turns; when keys and values are kept, each once.
    """
    anew = kept = 0
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            kept = prompt_tokens(messages[:place], short) + written(message)
            anew += kept
    return anew, kept


def fixed_counts() -> Iterator[tuple[str, int]]:
    """(what, tokens) of all that is the same in every episode."""
    system = opening_messages("")[:1]
    yield "system prompt", count(rendered(system))
    yield "system prompt with tools", count(rendered(system, tool_schemas()))
    yield "system prompt with short tools", count(rendered(system, tool_schemas(), short=True))


def episode_counts(task: str, index: int) -> Iterator[tuple[str, float]]:
    """(what, tokens) of an incident of `train`, and how many turns its episodes take."""
    episode = Episode.open(task, "train", index)
    first = opening(episode)
    yield "opening", count(rendered(first)) - count(rendered(first[:1]))
    yield "prompt", prompt_tokens(first)
    yield "prompt with short tools", prompt_tokens(first, short=True)
    other = Episode.open(task, "unseen_topology", index)
    yield "prompt, unseen_topology", prompt_tokens(opening(other))
    for service in (*episode.incident.topology.names, "all"):
        logs = render(
            Episode.open(task, "train", index).act(Action("request_more_logs", (service,)))
        )
        yield "logs of all" if service == "all" else "logs of one service", count(logs)
    for message in one_by_one(Episode.open(task, "train", index)):
        if message["role"] == "assistant":
            yield "a call", written(message)
    packed = transcript(TracePolicy(), Episode.open(task, "train", index))
    turns = [message for message in packed if message["role"] == "assistant"]
    if len(turns[-1]["tool_calls"]) == CALLS:
        yield "five calls in one message", written(turns[-1])
    yield "packed: turns", len(turns)
    yield "packed: written", sum(map(written, turns))
    for name, short in (("packed", False), ("packed, short tools", True)):
        anew, kept = processed(packed, short)
        yield f"{name}: read anew each turn", anew
        yield f"{name}: kept", kept


def counts(incidents: int) -> pd.DataFrame:
    """One row for each thing: how many were counted, and the mean, the least and the most tokens,
    over `incidents` of `train` for each task.
    """
    found: list[tuple[str, float]] = [*fixed_counts()]
    for task in TASKS:
        for index in range(incidents):
            found += episode_counts(task, index)
    tokens = pd.DataFrame(found, columns=["what", "tokens"]).groupby("what", sort=False)["tokens"]
    table = tokens.agg(count="count", mean="mean", least="min", most="max")
    return table.round(1).reset_index()


def main() -> None:
    """Count, and write the table of docs/t4.md."""
    from tables import write_tables

    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    counts(INCIDENTS).to_csv(RESULTS, index=False)
    write_tables()


if __name__ == "__main__":
    main()
