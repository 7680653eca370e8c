"""The embedded model's tokenizer: byte-level BPE, made from text of the `train` split.

Prompts are what training costs, so what never varies is one token. The general base spells names
and words out instead, which costs twice the tokens and reads what was never seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..play.actions import ACTION_ARGUMENTS
from ..play.observation import SYSTEM_PROMPT, TABLE_HEADER, call_graph_line
from ..play.tools import tool_schemas
from ..policies.llm.loading import with_tool_calls
from ..world.call_graph import TEAMS
from ..world.faults import REMEDIES
from ..world.tasks import SEVERITIES
from ..world.topology import DEFAULT_TOPOLOGY
from .drills import DRILL_PROMPT, drill, novice_episode

VOCABULARY = 1400  # tokens, before the fixed pieces
# Likewise, when names and words are spelled: few, so that unknown words fall into parts that were
# trained. Chosen on `train`: of the tokens of its varied wording 5 % are rare with 800, 31 % with
# 2,000.
SPELLED_VOCABULARY = 800
LONGEST_SUFFIX = 16  # letters of a suffix that are spelled; what follows is read as a word
TOKENIZER_EXAMPLES = 400  # drills, and as many junior episodes, that the tokenizer is trained on


def build_tokenizer(texts: Iterator[str], spelled: bool = False) -> Any:
    """Byte-level BPE on simulator text, digits one by one, service names and fixed phrases whole.
    Phrases may span spaces, since a log template is one unit of meaning.

    `spelled` is for names and wording that were never seen: no token crosses the border of a word,
    and a name is spelled in pairs of letters, the same way wherever it stands, but for the suffixes
    of the default call graph.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    # Pieces that no token crosses: a line start with its level, a hyphenated name, a single digit.
    pieces = r"\n[A-Z]* ?|[a-z]+(?:-[a-z]+)+|[0-9]"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_spelled_pieces() if spelled else pieces), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=SPELLED_VOCABULARY if spelled else VOCABULARY,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    with_tool_calls(fast)
    fixed = _fixed_pieces(fast, spelled)
    fast.add_tokens([AddedToken(piece, normalized=False, special=False) for piece in fixed])
    return fast


def _spelled_pieces() -> str:
    """The pieces that no token of a spelled tokenizer crosses, as a regular expression. Pairs of
    letters are counted from the start of each word of a name.
    """
    suffixes = {name.rpartition("-")[2] for name in DEFAULT_TOPOLOGY.names}
    remedies = [remedy for remedy in REMEDIES if "-" in remedy]
    # What stands before a pair of an unknown suffix: a lookbehind has alternatives of fixed length.
    before = "|".join(["-", *(f"-[a-z]{{{pairs}}}" for pairs in range(2, LONGEST_SUFFIX, 2))])
    in_name = "[a-z0-9]*-[a-z0-9]"  # what follows a letter of any word of a name but the last
    return "|".join(
        [
            r"\n[A-Z]* ?",  # a line start with its level
            f"(?:{'|'.join(remedies)})(?![a-z0-9-])",  # these look like names, and are none
            f"[a-z]{{1,2}}(?={in_name})",
            f"-(?:{'|'.join(sorted(suffixes))})(?![a-z0-9-])",
            "-(?=[a-z0-9])",
            f"(?<={before})[a-z]{{1,2}}",
            "[0-9]",
            "ms (?=[0-9])",  # between two figures of the metrics table
            f" ?(?:[A-Z][a-z]+|[A-Z]+|[a-z]+(?!{in_name}))",  # a word, or a part in CamelCase
            r"[^A-Za-z0-9\n]+",
        ]
    )


def _fixed_pieces(tokenizer: Any, spelled: bool) -> list[str]:
    """Text that never varies: system prompt, tool schemas, call graph (not when names are spelled),
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
        *(("step ", "\ncalls: ", "\nalerts: ") if spelled else [call_graph_line(DEFAULT_TOPOLOGY)]),
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
