"""The embedded model's tokenizer: byte-level BPE, made from text of the `train` split.

Prompts are what training costs, so what never varies is one token. The general base reads unknown
words in parts, and services by their path names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..play.actions import ACTION_ARGUMENTS
from ..play.observation import SYSTEM_PROMPT, TABLE_HEADER, call_graph_line
from ..play.tools import tool_schemas
from ..policies.llm.loading import with_tool_calls
from ..policies.llm.path_names import KIND_WORDS
from ..world.call_graph import TEAMS
from ..world.faults import REMEDIES
from ..world.tasks import SEVERITIES
from ..world.topology import DEFAULT_TOPOLOGY
from .drills import DRILL_PROMPT, drill, novice_episode

VOCABULARY = 1400  # tokens, before the fixed pieces
# Likewise, of the general base, whose unknown words must fall into parts that were trained: of the
# tokens that it reads 0.3 % are rare with 1,400, 1.1 % with 2,000.
GENERAL_VOCABULARY = 1400
TOKENIZER_EXAMPLES = 400  # drills, and as many junior episodes, that the tokenizer is trained on


def build_tokenizer(texts: Iterator[str], general: bool = False) -> Any:
    """Byte-level BPE on simulator text, digits one by one, service names and fixed phrases whole.
    Phrases may span spaces, since a log template is one unit of meaning.

    `general` is for call graphs and wording that were never seen: see `PATH_PIECES`.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    # Pieces that no token crosses: a line start with its level, a hyphenated name, a single digit.
    pieces = r"\n[A-Z]* ?|[a-z]+(?:-[a-z]+)+|[0-9]"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATH_PIECES if general else pieces), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=GENERAL_VOCABULARY if general else VOCABULARY,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    with_tool_calls(fast)
    fixed = _fixed_pieces(fast, general)
    fast.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in fixed])
    return fast


# Pieces that no token crosses, where services have path names: such a name is a kind and numbers.
KIND = "|".join(KIND_WORDS.values())
PATH_PIECES = "|".join(
    [
        "step [0-9]+ of [0-9]+",
        rf"[ \n]?(?<![a-z0-9-])(?:{KIND})(?=(?:-[0-9]+)*(?![a-z0-9-]))",
        r"(?<=[a-z0-9])-[0-9]+",
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


def _fixed_pieces(tokenizer: Any, general: bool) -> list[str]:
    """Text that never varies: system prompt, tool schemas, call graph (where it does not vary),
    headers, and what surrounds the values in a call.
    """
    prompt = tokenizer.apply_chat_template(
        [{"role": "system", "content": SYSTEM_PROMPT}], tools=tool_schemas(), tokenize=False
    )
    # head, SYSTEM_PROMPT, text about tools, <tools>, a line a schema, </tools>, how to call
    _head, rest = prompt.split(SYSTEM_PROMPT)
    before, schemas = rest.split("<tools>\n", 1)
    schemas, after = schemas.split("\n</tools>")
    pieces = [
        SYSTEM_PROMPT,
        DRILL_PROMPT,
        before + "<tools>\n",
        *schemas.split("\n"),
        "\n</tools>" + after.removesuffix("<|im_end|>\n"),
        *(("\ncalls: ", "\nalerts: ") if general else [call_graph_line(DEFAULT_TOPOLOGY)]),
        f"\n{TABLE_HEADER}\n",
        "assistant\n",
        "user\n",
        "user\n<tool_response>\n",
        "\n</tool_response>",
    ]
    # A call without arguments is one piece; of the others, all but the values.
    for name, arguments in ACTION_ARGUMENTS.items():
        start = f'<tool_call>\n{{"name": "{name}", "arguments": {{'
        if arguments:
            pieces.append(f'{start}"{arguments[0]}": "')
            pieces += [f'", "{argument}": "' for argument in arguments[1:]]
        else:
            pieces.append(start + "}}\n</tool_call>")
    return [*pieces, '"}}\n</tool_call>']


def tokenizer_texts(count: int, general: bool = False) -> Iterator[str]:
    """What the tokenizer is trained on: drills, novices' episodes, and the values of calls."""
    values = [*DEFAULT_TOPOLOGY.names, *REMEDIES, *TEAMS, *SEVERITIES]
    for index in range(count):
        yield from values
        for messages in (drill(index, general), novice_episode(index, general)):
            yield from (message["content"] for message in messages[1:])
