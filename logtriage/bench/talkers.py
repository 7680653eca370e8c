"""The language models that a command line names, and what of it makes their rows comparable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..play.conversation import check_protocol
from ..policies.policy import Policy
from .runs import weights_digest


@dataclass(frozen=True)
class Talkers:
    """Models in memory and one behind an endpoint, and how they are asked.

    Attributes:
        models: folders or hub names.
        adapter: to put on the one model.
        load_in_4bit: whether models are loaded so.
        turn_tokens: new tokens a turn, of models in memory.
        endpoint, endpoint_model: base URL and name there; empty for none.
        concurrency: conversations with the endpoint at once.
        tools: name of a protocol.
        temperature, seed: of sampling.

    Raises:
        ValueError: for what does not go together.
    """

    models: tuple[str, ...] = ()
    adapter: Path | None = None
    load_in_4bit: bool = False
    turn_tokens: int = 256
    endpoint: str = ""
    endpoint_model: str = ""
    concurrency: int = 8
    tools: str = "native"
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_protocol(self.tools)
        if bool(self.endpoint) != bool(self.endpoint_model):
            raise ValueError("--endpoint and --endpoint-model go together; give both")
        if self.adapter is not None and len(self.models) != 1:
            raise ValueError("--adapter goes on one --model; name that one")

    def __bool__(self) -> bool:
        return bool(self.models or self.endpoint)

    @property
    def settings(self) -> dict[str, Any]:
        """What makes their rows comparable; weights are known by their digests, those of a hub by
        their names.
        """
        adapter = "" if self.adapter is None else weights_digest(self.adapter) or str(self.adapter)
        return {
            "models": {source: weights_digest(Path(source)) for source in self.models},
            "adapter": adapter,
            "in 4 bit": self.load_in_4bit,
            "turn tokens": self.turn_tokens if self.models else None,
            "endpoint": [self.endpoint, self.endpoint_model],
            "tools": self.tools,
            "temperature": self.temperature,
            "seed": self.seed,
        }

    def policies(self, say: Callable[[str], None]) -> Iterator[Policy]:
        """A policy each; `say` is told what is not as it was asked for.

        Raises:
            ValueError: when there is no such model, or it cannot be loaded so.
        """
        asked = check_protocol(self.tools)
        for source in self.models:
            from ..policies.llm.language_models import LanguageModelPolicy
            from ..policies.llm.loading import load_player

            model, tokenizer, protocol = load_player(source, self.load_in_4bit, self.adapter, asked)
            if protocol is not asked:
                say(f"{source}: TRL does not know its chat template, so tools are told as text")
            yield LanguageModelPolicy(
                model,
                tokenizer,
                name=source,
                temperature=self.temperature,
                turn_tokens=self.turn_tokens,
                seed=self.seed,
                protocol=protocol,
            )
        if self.endpoint:
            from ..policies.llm.endpoint import EndpointPolicy

            yield EndpointPolicy(
                self.endpoint,
                self.endpoint_model,
                workers=self.concurrency,
                temperature=self.temperature,
                seed=self.seed,
                protocol=asked,
            )


def digest_of(settings: dict[str, Any]) -> str:
    """A name for settings: the same command finds its file again."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
