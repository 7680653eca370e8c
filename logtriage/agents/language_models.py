"""Language models as policies: loaded from a folder, from a hub, in 4 bit, through Unsloth, or
behind an endpoint.

Whatever the model, it reads `prompts.render`, calls the tools of `tools.TriageTools`, and may make
several calls in one message (see `conversation`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from ..play.conversation import Message, answers, from_wire, opening_messages, to_wire
from ..play.episode import PlayableEpisode
from ..play.tools import ToolSession, tool_schemas
from .scripted import Policy

TURN_TOKENS = 64  # new tokens a turn; five calls of the mini model need 24, of Qwen about 180


class ConversationPolicy(Policy):
    """Plays episodes in lockstep by conversation.

    Subclasses say how messages become the next assistant message.

    Attributes:
        transcripts: the conversations of the last `play`, one a played episode.
    """

    def __init__(self, name: str, max_turns: int = 16) -> None:
        self.name, self.max_turns = name, max_turns
        self.transcripts: list[list[Message]] = []

    def reply(self, conversations: list[list[Message]], seats: list[int]) -> list[Message]:
        """Next assistant messages; `seats` are the stable numbers of the conversations within this
        `play`.
        """
        raise NotImplementedError

    def play(self, episodes: Iterable[PlayableEpisode]) -> None:
        """Play all episodes at once.

        One that ends a turn without a call, or runs out of turns, has walked away.
        """
        sessions = [ToolSession(episode) for episode in episodes]
        self.transcripts = [opening_messages(session.opening) for session in sessions]
        self.start(len(sessions))
        seats = list(range(len(sessions)))
        for _ in range(self.max_turns):
            if not seats:
                break
            replies = self.reply([self.transcripts[seat] for seat in seats], seats)
            for seat, message in zip(seats, replies, strict=True):
                self.transcripts[seat].append(message)
                self.transcripts[seat] += answers(sessions[seat], message)
            seats = [
                seat
                for seat in seats
                if self.transcripts[seat][-1]["role"] == "tool" and not sessions[seat].episode.done
            ]
        for session in sessions:
            session.episode.abandon()

    def start(self, count: int) -> None:
        """Called before the first reply of a `play` of `count` conversations."""


class LanguageModelPolicy(ConversationPolicy):
    """A causal language model held in memory.

    Args:
        model: a transformers causal model.
        tokenizer: its tokenizer, with a chat template that knows tools.
        name: shown in results.
        temperature: 0 for greedy, else the sampling temperature.
        turn_tokens: new tokens a turn.
        seed: of sampling; each `play` starts from it.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        temperature: float = 0.0,
        turn_tokens: int = TURN_TOKENS,
        seed: int = 0,
    ) -> None:
        super().__init__(name)
        self.model, self.tokenizer = model, tokenizer
        self.temperature, self.turn_tokens, self.seed = temperature, turn_tokens, seed
        self._schemas = tool_schemas()

    def start(self, count: int) -> None:
        import torch

        torch.manual_seed(self.seed)
        self._ids: list[list[int]] = [[] for _ in range(count)]

    def reply(self, conversations: list[list[Message]], seats: list[int]) -> list[Message]:
        import torch
        from trl.chat_template_utils import parse_response

        for conversation, seat in zip(conversations, seats, strict=True):
            self._ids[seat] = self._prompt_ids(conversation, self._ids[seat])
        batch = self.tokenizer.pad(
            {"input_ids": [self._ids[seat] for seat in seats]},
            padding_side="left",
            return_tensors="pt",
        ).to(self.model.device)
        sampling: dict[str, Any] = {"do_sample": False}
        if self.temperature:
            # the whole distribution, as in training
            sampling = {
                "do_sample": True,
                "temperature": self.temperature,
                "top_k": 0,
                "top_p": 1.0,
            }
        eos = self.tokenizer.eos_token_id
        with torch.inference_mode():
            out = self.model.generate(
                **batch,
                max_new_tokens=self.turn_tokens,
                **sampling,
                pad_token_id=self.tokenizer.pad_token_id,
                eos_token_id=eos,
            )
        messages = []
        for seat, row in zip(seats, out[:, batch["input_ids"].shape[1] :].tolist(), strict=True):
            ids = row[: row.index(eos) + 1] if eos in row else row  # the rest is padding
            messages.append(parse_response(self.tokenizer, ids, prefix=self._ids[seat]))
            self._ids[seat] = self._ids[seat] + ids
        return messages

    def _prompt_ids(self, conversation: list[Message], before: list[int]) -> list[int]:
        """Ids of the conversation up to the next turn: `before` is kept as it was generated, never
        re-tokenized.
        """

        def ids_of(messages: list[Message], add_generation_prompt: bool) -> list[int]:
            return self.tokenizer.apply_chat_template(
                messages,
                tools=self._schemas,
                return_dict=False,
                add_generation_prompt=add_generation_prompt,
            )

        if not before:
            return ids_of(conversation, True)
        last = max(i for i, message in enumerate(conversation) if message["role"] == "assistant")
        tool_messages = conversation[last + 1 :]
        # A minimal conversation, whose last turn ends as the real one does, is written with and
        # without the tools' answers: what follows the turn's end in the longer one is what the
        # template puts between that turn and the next.
        function = {"name": tool_messages[0]["name"], "arguments": {}}
        call = {"type": "function", "function": function}
        stem: list[Message] = [
            {"role": "user", "content": ""},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
        head = ids_of(stem, False)
        end = len(head) - 1 - head[::-1].index(self.tokenizer.eos_token_id)
        # A turn that was cut off at `turn_tokens` has no end of its own, and is given one.
        start = end + 1 if before[-1] == self.tokenizer.eos_token_id else end
        return before + ids_of(stem + tool_messages, True)[start:]


class EndpointPolicy(ConversationPolicy):
    """A model behind an OpenAI-compatible endpoint; conversations of one `play` run in parallel.

    Args:
        base_url: e.g. `http://localhost:8000/v1`.
        model: its name there.
        api_key: by default the environment variable `OPENAI_API_KEY`, or a placeholder, which local
            servers accept.
        workers: requests under way at once.
    """

    def __init__(
        self, base_url: str, model: str, api_key: str | None = None, workers: int = 8
    ) -> None:
        from openai import OpenAI

        super().__init__(model)
        self._client = OpenAI(
            base_url=base_url,
            api_key=api_key or os.environ.get("OPENAI_API_KEY", "none"),
            max_retries=0,
        )
        self._workers, self._schemas = workers, tool_schemas()

    def reply(self, conversations: list[list[Message]], seats: list[int]) -> list[Message]:
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._ask, conversations))

    def _ask(self, conversation: list[Message]) -> Message:
        from openai import APIConnectionError, InternalServerError, RateLimitError
        from tenacity import (
            Retrying,
            retry_if_exception_type,
            stop_after_attempt,
            wait_random_exponential,
        )

        passing = retry_if_exception_type((APIConnectionError, InternalServerError, RateLimitError))
        for attempt in Retrying(
            retry=passing,
            stop=stop_after_attempt(5),
            wait=wait_random_exponential(0.5, 20),
            reraise=True,
        ):
            with attempt:
                answer = self._client.chat.completions.create(
                    model=self.name,
                    messages=cast(Any, [to_wire(message) for message in conversation]),
                    tools=cast(Any, self._schemas),
                    temperature=0.0,
                )
        return from_wire(answer.choices[0].message)


def load_language_model(
    source: str | Path, load_in_4bit: bool = False, adapter: str | Path | None = None
) -> tuple[Any, Any]:
    """Load (model, tokenizer) with plain transformers, from a folder or a hub.

    Args:
        source: a folder made by `mini.build_base` or by training, or a hub name such as
            `Qwen/Qwen2.5-3B-Instruct`.
        load_in_4bit: quantise to NF4 by bitsandbytes; needs an NVIDIA GPU.
        adapter: a LoRA adapter to put on top.

    Raises:
        ValueError: when 4 bit is asked for without a GPU, or there is no such model.
    """
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        BitsAndBytesConfig,
        PreTrainedTokenizerFast,
    )
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    gpu = torch.cuda.is_available()
    options: dict[str, Any] = {}
    if load_in_4bit:
        if not gpu:
            raise ValueError(
                "load_in_4bit=True needs an NVIDIA GPU, and none was found; leave it out on a CPU"
            )
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float16,
        )
    if gpu:
        options["device_map"] = "auto"
    half = gpu and not torch.cuda.is_bf16_supported(including_emulation=False)  # a T4
    # AutoTokenizer gives every Qwen2 model Qwen's own pre-tokenizer, whatever was saved; ours must
    # be loaded as saved.
    try:
        generic = get_tokenizer_config(str(source)).get("tokenizer_class") == "TokenizersBackend"
        kind = PreTrainedTokenizerFast if generic else AutoTokenizer
        tokenizer = kind.from_pretrained(str(source))
        model = AutoModelForCausalLM.from_pretrained(
            str(source), dtype=torch.float16 if half else "auto", **options
        )
    except OSError as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"cannot load {source}: no folder here holds it, and the hub answered: {reason}"
        ) from error
    if adapter is not None:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, str(adapter))
    return model.eval(), with_tool_calls(tokenizer, qwen="qwen2" in model.config.model_type)


def with_tool_calls(tokenizer: Any, qwen: bool = True) -> Any:
    """The tokenizer, able to parse tool calls; `qwen` puts TRL's own Qwen2.5 template in, which
    training relies on.
    """
    from trl.chat_template_utils import add_response_schema, qwen2_5_chat_template

    if qwen:
        tokenizer.chat_template = qwen2_5_chat_template
    return add_response_schema(tokenizer)
