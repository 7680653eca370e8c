"""A model of Qwen2.5's shape that has learned nothing, and what it is made to say: for `gpu`.

No hub is asked: weights are random, and the tokenizer is made from Qwen's vocabulary as in
`tokens`, so prompts and answers of tools have the tokens that Qwen2.5 reads. Importing this imports
neither transformers nor TRL, which must come after Unsloth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from logtriage.play.actions import Action
from logtriage.play.conversation import tool_call
from logtriage.train.cost import Model
from logtriage.world.tasks import SEVERITIES


def qwen_tokenizer() -> Any:
    """Qwen2.5's tokenizer, from the vocabulary and special tokens of `tokens`."""
    from tokens import SPECIAL, vocabulary_file
    from transformers import AddedToken, Qwen2Tokenizer
    from transformers.convert_slow_tokenizer import TikTokenConverter

    vocabulary, merges = TikTokenConverter().extract_vocab_merges_from_model(vocabulary_file())
    tokenizer = Qwen2Tokenizer(vocabulary, merges, additional_special_tokens=[])
    # As in Qwen's own, what opens and closes a call is no special token: decoding keeps it.
    first_plain = SPECIAL.index("<tool_call>")
    tokenizer.add_tokens(
        [
            AddedToken(text, special=place < first_plain, normalized=False)
            for place, text in enumerate(SPECIAL)
        ]
    )
    tokenizer.eos_token, tokenizer.pad_token = "<|im_end|>", "<|endoftext|>"
    return tokenizer


def random_model(shape: Model, folder: Path) -> int:
    """Save a Qwen2 decoder of this shape with random weights and Qwen's tokenizer; returns how many
    weights it has. In fp16 as on the hub; without a GPU in fp32, in which a CPU computes.
    """
    from transformers import AutoModelForCausalLM, Qwen2Config

    gpu = torch.cuda.is_available()
    tokenizer = qwen_tokenizer()
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    with torch.device("cuda" if gpu else "cpu"):
        dtype = torch.float16 if gpu else torch.float32
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


class Script:
    """What a model that never calls a tool is made to say, in the place of its trainer's
    `_generate_single_turn`, which takes ids of conversations and returns ids of turns.

    Every turn is generated as ever, for its time and memory, and is as long as a turn may be: words
    without a meaning, and a call for the logs of `all`. The first also states a severity, each
    episode of a group another one: equal rewards would leave nothing to learn.

    Args:
        generate: the trainer's own.
        tokenizer: the model's.
        turn_tokens: of each turn.
    """

    def __init__(self, generate: Callable[..., Any], tokenizer: Any, turn_tokens: int) -> None:
        self.generate, self.tokenizer, self.turn_tokens = generate, tokenizer, turn_tokens
        self.opens = tokenizer.convert_tokens_to_ids("<|im_start|>")

    def __call__(self, prompt_ids: list[list[int]], *others: Any, **named: Any) -> Any:
        self.generate(prompt_ids, *others, **named)
        turns = []
        for place, ids in enumerate(prompt_ids):
            actions = [Action("request_more_logs", ("all",))]
            if ids.count(self.opens) == 3:  # system, user, and the turn to come
                actions.insert(
                    0, Action("classify_severity", (SEVERITIES[place % len(SEVERITIES)],))
                )
            turns.append(self.turn(actions))
        return turns, None

    def turn(self, actions: Sequence[Action]) -> list[int]:
        """Ids of a turn with these calls, its end included."""
        calls = [json.dumps(tool_call(action)["function"]) for action in actions]
        text = "".join(f"\n<tool_call>\n{call}\n</tool_call>" for call in calls)
        said = self.tokenizer.encode(text + self.tokenizer.eos_token, add_special_tokens=False)
        return words(self.tokenizer, self.turn_tokens - len(said)) + said


def words(tokenizer: Any, count: int) -> list[int]:
    """Ids of so many tokens of text that says nothing; none where the count is below 1."""
    return tokenizer.encode(" and", add_special_tokens=False)[-1:] * count


def follow_script(tokenizer: Any, turn_tokens: int) -> None:
    """Have every trainer of this process follow a `Script` from now on."""
    from logtriage.train.trainer import IncidentTrainer

    generate = IncidentTrainer._generate_single_turn

    def scripted(trainer: Any, *others: Any, **named: Any) -> Any:
        return Script(partial(generate, trainer), tokenizer, turn_tokens)(*others, **named)

    IncidentTrainer._generate_single_turn = scripted
