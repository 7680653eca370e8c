"""Players: policies and models by name, with the settings that make two results comparable.

A `Player` knows the settings that decide its episodes before anything is loaded. Results are kept
under a digest of these settings.
"""

import ast
import hashlib
import json
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import logtriage
from logtriage.play.conversation import NATIVE, Protocol
from logtriage.play.tools import tool_schemas
from logtriage.policies.policy import Policy
from logtriage.registry import Policies, check_model, known_policies, make_policy
from logtriage.world.tasks import BENCHMARK_VERSION

from ..language_models.endpoint import ANSWER_TOKENS, EndpointPolicy
from ..language_models.language_models import TURN_TOKENS
from ..language_models.loading import base_of, is_adapter, resolve_model, weights_digest

# Folders whose code decides a script's episodes.
DECIDES = (
    *(Path(logtriage.__file__).parent / name for name in ("world", "play", "policies")),
    *(Path(__file__).parents[1] / name for name in ("reference", "real", "realistic")),
)

POLICIES = known_policies()


class Player(NamedTuple):
    """A policy that is made when there is something to play."""

    name: str
    # What decides its episodes: code, or weights, precision, prompt and sampling.
    settings: dict[str, Any]
    # Makes the policy from the number of episodes already played, so that a script draws other
    # random numbers; `ValueError` if it cannot be made.
    make: Callable[[int], Policy]

    @property
    def key(self) -> str:
        """The key under which its results are kept."""
        return digest({"benchmark": BENCHMARK_VERSION, **self.settings})


def digest(settings: Any) -> str:
    """A short hash that identifies settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


@cache
def code_digest() -> str:
    """A digest of the code that decides what a scripted policy does, comments and layout aside."""
    hashed = hashlib.sha256()
    for path in chain.from_iterable(sorted(folder.rglob("*")) for folder in DECIDES):
        if path.suffix == ".py":
            hashed.update(ast.dump(ast.parse(path.read_bytes())).encode())
        elif path.suffix in (".txt", ".toml", ".gz", ".npz"):
            hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def scripted(name: str, known: Policies = POLICIES) -> Player:
    """A scripted policy by name; `ValueError` for an unknown name."""
    make_policy(name, 0, known)
    return Player(name, {"policy": name, "code": code_digest()}, known[name])


def named(name: str) -> Player:
    """A script by its name, else a language model by its name or folder."""
    return scripted(name) if name in POLICIES else in_memory(name, constrained=True)


def prompt_digest(protocol: Protocol) -> str:
    """A digest of what surrounds the text of an incident: system prompt and tools."""
    return digest([protocol.name, protocol.opening(""), tool_schemas()])


def in_memory(
    source: str | Path,
    name: str = "",
    load_in_4bit: bool = False,
    adapter: str | Path | None = None,
    protocol: Protocol = NATIVE,
    temperature: float = 0.0,
    seed: int = 0,
    turn_tokens: int = TURN_TOKENS,
    constrained: bool = False,
) -> Player:
    """A language model in memory, called `name` or else like its source, which may be the folder of
    an adapter. See `load_player` and `LanguageModelPolicy` for the options. Local weights are known
    by their digest, others by name.
    """
    check_model(str(source))
    name, source = name or str(source), resolve_model(source)
    if adapter is None and is_adapter(source):  # its base is known
        adapter = source
        base, in_4bit = base_of(adapter)
        source, load_in_4bit = resolve_model(base), load_in_4bit or in_4bit
    sampling: dict[str, Any] = {"temperature": temperature, "seed": seed}

    settings = {
        "weights": weights_digest(Path(source)) or str(source),
        "adapter": "" if adapter is None else weights_digest(Path(adapter)) or str(adapter),
        "precision": "4 bit" if load_in_4bit else "as saved",
        "prompt": prompt_digest(protocol),
        "turn tokens": turn_tokens,
        **sampling,
    }
    if constrained:  # no entry for False, as in published results
        settings["constrained"] = True

    def make(begun: int) -> Policy:
        from ..language_models.grammar import writes_as_qwen
        from ..language_models.language_models import LanguageModelPolicy
        from ..language_models.loading import load_player

        model, tokenizer, spoken = load_player(source, load_in_4bit, adapter, protocol)
        if spoken is not protocol:
            print(f"{name}: TRL does not know its chat template, so its tools are listed as text")
        options = {"turn_tokens": turn_tokens, "protocol": spoken, **sampling}
        checked = constrained and spoken is NATIVE and writes_as_qwen(tokenizer)
        if checked is not constrained:
            print(f"{name}: it calls in a way of its own, so what it writes is not constrained")
        return LanguageModelPolicy(model, tokenizer, name=name, constrained=checked, **options)

    return Player(name, settings, make)


def behind_endpoint(
    url: str,
    model: str,
    concurrency: int | None = None,
    protocol: Protocol = NATIVE,
    temperature: float = 0.0,
    seed: int = 0,
) -> Player:
    """A language model behind an OpenAI-compatible endpoint."""
    sampling: dict[str, Any] = {"temperature": temperature, "seed": seed}

    def make(begun: int) -> Policy:
        return EndpointPolicy(url, model, workers=concurrency, protocol=protocol, **sampling)

    settings = {
        "endpoint": url,
        "weights": model,
        "prompt": prompt_digest(protocol),
        "answer tokens": ANSWER_TOKENS,
        **sampling,
    }
    return Player(model, settings, make)
