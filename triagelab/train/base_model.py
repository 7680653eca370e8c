"""The embedded base model. It is built in minutes on a CPU, so that a demonstration does not depend
on a download.

It is a Qwen2 decoder of about one million parameters, built from text of `train` only. First it
learns to *read* (see `sft_tasks`). Then it imitates a *novice on-call*, who knows the runbook but
blames the loudest service and is often wrong. Neither lesson shows it the right answer of an
incident: what GRPO adds is learned from reward. An *expert* base is a finished base taught by
`belief`. It imitates `belief`'s episodes first; then it plays itself, and learns what `belief`
would have done there (see `distillation`). The runbook in the reading tasks (what
a line proves, which remedy and team go with it) is true in the simulated world; results of this
model must say so.

The tokenizer is byte-level BPE. Reading prompts is what makes training expensive, so text that
never varies is a single token. Unknown words are read in parts. Services have path names.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from joblib import Parallel, delayed

from logtriage.play.actions import ACTION_ARGUMENTS
from logtriage.play.conversation import Message
from logtriage.play.observation import SYSTEM_PROMPT, TABLE_HEADER
from logtriage.play.tools import tool_schemas
from logtriage.world.call_graph import TEAMS
from logtriage.world.faults import REMEDIES
from logtriage.world.tasks import SEVERITIES

from ..bench.runs import environment_record, locked, write_text
from ..language_models.loading import load_language_model, weights_digest, with_tool_calls
from ..language_models.path_names import KIND_WORDS, NAMING
from .distillation import Lesson, own_examples
from .sft_tasks import (
    READING_PROMPT,
    AugmentedSession,
    NoisySession,
    expert_episode,
    novice_episode,
    sft_task,
)
from .supervised import BATCH, Example, batches, encode, train_on

DIGESTED = 40  # examples of each kind whose digest identifies a finished model
LEARNING_RATE, EXPERT_RATE = 0.02, 0.01  # peaks; see `supervised.train_on`
EXPERT_LESSONS = (
    Lesson("own", 16_000, NoisySession, temperature=1.0),
    Lesson("dialects", 8_000, AugmentedSession, temperature=1.0),
    # Where it is unsure, greedy play repeats itself, and sampling does not.
    Lesson("greedy", 6_000, AugmentedSession, temperature=0.0),
)

VOCABULARY = 3000  # tokens, before the fixed pieces
TOKENIZER_EXAMPLES = 400  # the tokenizer is trained on so many reading tasks and novice episodes
# No token crosses the border of a piece. A path name is a kind and steps, such as `-a2`.
KIND, STEP = "|".join(KIND_WORDS.values()), "-[a-z][0-9]+"
PIECES = "|".join(
    [
        "step [0-9]+ of [0-9]+",
        rf"[ \n]?(?<![a-z0-9-])(?:{KIND})(?=(?:{STEP})*(?![a-z0-9-]))",
        rf"(?<=[a-z0-9]){STEP}",
        r"\n[A-Z]* ?",  # a line start with its level
        f" ?(?:{'|'.join(remedy for remedy in REMEDIES if '-' in remedy)})(?![a-z0-9-])",
        # A figure of two digits: the digits, then its zeros with the unit.
        "(?<=[0-9])0*(?:ms |% |%)",
        r" ?(?:[0-9]\.[0-9](?![0-9])|[0-9]{1,2})",
        " ?(?:[A-Z][a-z]+|[A-Z]+|[a-z]+)",  # a word, or a part in CamelCase
        r" ?[^A-Za-z0-9\n ]+(?: (?=[0-9]))?",
        " ",
    ]
)

# Steps that are a token however rare: nearly all that call graphs of 30 services have.
STEPS = [f"-{level}{number}" for level in "abcdef" for number in range(1, 9)]

Log = list[dict[str, Any]]  # rows of losses
Made = tuple[Any, Any]  # a model and its tokenizer


# -- the tokenizer ---------------------------------------------------------------------------------


def build_tokenizer() -> Any:
    """Train BPE on `TOKENIZER_EXAMPLES` reading tasks and as many novice episodes, within `PIECES`.
    Fixed text is one token.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(
        _texts(),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    with_tool_calls(fast)
    fixed = _fixed_pieces(fast)
    fast.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in fixed])
    return fast


def _texts() -> Iterator[str]:
    """What the tokenizer is trained on: reading tasks, episodes of the novice, values of calls."""
    for index in range(TOKENIZER_EXAMPLES):
        yield from (*REMEDIES, *TEAMS, *SEVERITIES)
        for messages in (sft_task(index), novice_episode(index)):
            yield from (message["content"] for message in messages[1:])


def _fixed_pieces(tokenizer: Any) -> list[str]:
    """Text that never varies: prompts, tool schemas, headers, calls without their values, and the
    steps of path names.
    """
    prompt = tokenizer.apply_chat_template(
        [{"role": "system", "content": SYSTEM_PROMPT}], tools=tool_schemas(), tokenize=False
    )
    # It holds: head, SYSTEM_PROMPT, about tools, <tools>, a schema a line, </tools>, how to call.
    before, schemas = prompt.split(SYSTEM_PROMPT)[1].split("<tools>\n", 1)
    schemas, after = schemas.split("\n</tools>")
    pieces = [
        SYSTEM_PROMPT,
        READING_PROMPT,
        before + "<tools>\n",
        *schemas.split("\n"),
        "\n</tools>" + after.removesuffix("<|im_end|>\n"),
        "\ncalls: ",
        "\nalerts: ",
        f"\n{TABLE_HEADER}\n",
        "assistant\n",
        "user\n",
        "user\n<tool_response>\n",
        "\n</tool_response>",
    ]
    # A call without arguments is one piece; other calls are split around their values.
    for name, arguments in ACTION_ARGUMENTS.items():
        start = f'<tool_call>\n{{"name": "{name}", "arguments": {{'
        if arguments:
            pieces.append(f'{start}"{arguments[0]}": "')
            pieces += [f'", "{argument}": "' for argument in arguments[1:]]
        else:
            pieces.append(start + "}}\n</tool_call>")
    return [*pieces, '"}}\n</tool_call>', *STEPS]


# -- the model -------------------------------------------------------------------------------------


def new_model(tokenizer: Any, hidden: int, layers: int) -> Any:
    """A new decoder of Qwen2's architecture, with tied embeddings."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=3 * hidden,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
        # The wide initialisation is decisive: with the default of 0.02 it hardly learns to read.
        initializer_range=0.6 / math.sqrt(hidden),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        use_cache=True,
    )
    return Qwen2ForCausalLM(config)


def build_base(
    folder: str | Path,
    seed: int = 0,
    hidden: int = 128,
    layers: int = 4,
    drills: int = 20_000,
    novices: int = 10_000,
) -> Path:
    """Build the base model and save it with its tokenizer and `base.json` (settings, losses,
    machine, seconds). A finished folder is returned as it is; `ValueError` if it holds another
    base.

    Args:
        seed: of initialisation and batch order.
        hidden, layers: the model's width (dimensions per token) and depth.
        drills, novices: how many reading tasks and episodes to learn from, each read once.
    """
    import torch

    settings = {
        "seed": seed,
        "drills": drills,
        "novices": novices,
        "learning_rate": LEARNING_RATE,
        "hidden": hidden,
        "layers": layers,
        "examples": _digest(
            messages for i in range(DIGESTED) for messages in (sft_task(i), novice_episode(i))
        ),
    }

    def make(log: Log) -> Made:
        torch.manual_seed(seed)
        tokenizer = build_tokenizer()
        model = new_model(tokenizer, hidden, layers)
        model.config.path_names = NAMING
        reading = _conversations(sft_task, drills, tokenizer)
        triage = _conversations(novice_episode, novices, tokenizer, tool_schemas())
        _imitate(model, reading, seed, LEARNING_RATE, "drills", log)
        _imitate(model, triage, seed, LEARNING_RATE, "novice", log)
        return model, tokenizer

    return _finished(Path(folder), settings, make)


def build_expert(
    folder: str | Path,
    base: str | Path,
    seed: int = 0,
    imitated: int = 1500,
    lessons: Sequence[Lesson] = EXPERT_LESSONS,
) -> Path:
    """Teach the model in `base` what `belief` would do, and save it in `folder`. A finished folder
    is returned as it is. `ValueError` if its settings differ, or if `base` holds no model.

    Args:
        imitated: how many of the expert's own episodes it imitates first.
        lessons: what it then plays itself, corrected by the expert (see `distillation`).
    """
    base = Path(base)
    weights = weights_digest(base)
    if not weights:
        raise ValueError(f"{base} holds no model; build one first, with `build-base`")
    settings = {
        "base": weights,
        "seed": seed,
        "shown": imitated,
        **{lesson.name: lesson.episodes for lesson in lessons},
        "learning_rate": EXPERT_RATE,
        "examples": _digest(expert_episode(i) for i in range(DIGESTED)),
    }

    def make(log: Log) -> Made:
        model, tokenizer = load_language_model(base)
        model.float()  # a GPU loads it in half precision, which is too coarse for training
        examples = _conversations(expert_episode, imitated, tokenizer, tool_schemas())
        _imitate(model, examples, seed, EXPERT_RATE, "expert", log)
        first = imitated
        for lesson in lessons:
            together = own_examples(model, tokenizer, lesson, first, seed)
            steps = math.ceil(lesson.episodes / BATCH)
            train_on(model, together, steps, seed, EXPERT_RATE, lesson.name, log)
            first += lesson.episodes
        return model, tokenizer

    return _finished(Path(folder), settings, make)


def _conversations(
    make: Callable[[int], list[Message]], count: int, tokenizer: Any, tools: Any = None
) -> list[Example]:
    """The first `count` conversations of a kind, made on all cores, in tokens."""
    made = Parallel(n_jobs=-1)(delayed(make)(i) for i in range(count))
    return [encode(tokenizer, conversation, tools) for conversation in made]


def _imitate(
    model: Any, examples: list[Example], seed: int, rate: float, label: str, log: Log
) -> None:
    together = batches(examples, Random(f"batches/{seed}/{label}"))
    train_on(model, together, len(together), seed, rate, label, log)


def _finished(folder: Path, settings: dict[str, Any], make: Callable[[Log], Made]) -> Path:
    """Fill the folder with what `make` returns, unless it is finished; a second process waits."""
    if base_record(folder, settings):  # no lock is needed: the folder may be read-only
        return folder
    with locked(folder, wait=True):
        if base_record(folder, settings):
            return folder
        began, cpu_began = time.perf_counter(), time.process_time()
        log: Log = []
        model, tokenizer = make(log)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        record = {
            "settings": settings,
            "log": log,
            "parameters": sum(p.numel() for p in model.parameters()),
            "machine": environment_record()["machine"],
            "seconds": round(time.perf_counter() - began, 1),
            "cpu_seconds": round(time.process_time() - cpu_began, 1),
        }
        # Written last, as the sign that the folder is finished.
        write_text(folder / "base.json", json.dumps(record, indent=1))
    return folder


def base_record(folder: Path, settings: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The `base.json` of a folder, None if it has none; `ValueError` for one of other settings."""
    if not (folder / "base.json").exists():
        return None
    record: dict[str, Any] = json.loads((folder / "base.json").read_text())
    existing = record["settings"]
    if settings is not None and existing != settings:
        raise ValueError(
            f"{folder} holds a base built with {existing}, not {settings}; choose another folder"
        )
    return record


def _digest(conversations: Iterable[list[Message]]) -> str:
    """Digest of the examples: a model that learned from others is another model."""
    return hashlib.sha256(json.dumps(list(conversations)).encode()).hexdigest()[:16]
