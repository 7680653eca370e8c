"""The embedded model's tokenizer: byte-level BPE, made from text of the `train` split.

Prompts are what training costs, so what never varies is one token. Unknown words are read in parts,
and services by their path names.
"""

from collections.abc import Iterator
from typing import Any

from ..play.actions import ACTION_ARGUMENTS
from ..play.observation import SYSTEM_PROMPT, TABLE_HEADER
from ..play.tools import tool_schemas
from ..policies.llm.loading import with_tool_calls
from ..policies.llm.path_names import KIND_WORDS
from ..world.call_graph import TEAMS
from ..world.faults import REMEDIES
from ..world.tasks import SEVERITIES
from .drills import DRILL_PROMPT, drill, novice_episode

VOCABULARY = 3000  # tokens, before the fixed pieces
TOKENIZER_EXAMPLES = 400  # drills, and as many novice episodes, that the tokenizer is trained on


def build_tokenizer(texts: Iterator[str]) -> Any:
    """Byte-level BPE on simulator text: words whole or in parts (`PIECES`), fixed phrases whole."""
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
        texts,
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


# Pieces that no token crosses. A path name is a kind and numbers.
KIND = "|".join(KIND_WORDS.values())
PIECES = "|".join(
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


def _fixed_pieces(tokenizer: Any) -> list[str]:
    """Text that never varies: system prompt, tool schemas, headers, and of a call all but the
    values.
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
        "\ncalls: ",
        "\nalerts: ",
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


def tokenizer_texts(count: int) -> Iterator[str]:
    """What the tokenizer is trained on: drills, novices' episodes, and the values of calls."""
    values = [*REMEDIES, *TEAMS, *SEVERITIES]
    for index in range(count):
        yield from values
        for messages in (drill(index), novice_episode(index)):
            yield from (message["content"] for message in messages[1:])
