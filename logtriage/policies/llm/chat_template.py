"""A shorter chat template for Qwen2.5: the same tools, without what costs tokens and says nothing.

A model reads its tools at every turn that begins with an empty cache, so what they cost is paid
many times over. TRL's template prints each schema as `transformers` makes it, with a `return` that
is a text for every tool of ours, and that Qwen's own schemas do not have. Here it is left out:

    {"type": "function", "function": {"name": "escalate", "description": ..., "parameters": ...}}

Everything else is TRL's, byte for byte. More could go (docs/t4.md has what each piece costs), but
what is left is the form that Qwen2.5 was trained on, and what another form would do to its calls
has not been measured.
"""

from __future__ import annotations

from typing import Any

WHOLE_SCHEMA = "{{- tool | tojson }}"  # how TRL's template prints a tool
SHORT_TOOL = """\
{%- set whole = tool.function %}
        {%- set function = {
            "name": whole.name, "description": whole.description, "parameters": whole.parameters
        } %}
        {{- {"type": tool.type, "function": function} | tojson }}"""


def short_template(template: str) -> str:
    """A chat template that prints tools without `return`, and all else as `template`.

    Raises:
        ValueError: when `template` does not print a tool's whole schema in exactly one place.
    """
    count = template.count(WHOLE_SCHEMA)
    if count != 1:
        raise ValueError(
            f"a chat template to be shortened must hold {WHOLE_SCHEMA!r} once, found {count}; "
            "begin with TRL's `qwen2_5_chat_template`"
        )
    return template.replace(WHOLE_SCHEMA, SHORT_TOOL)


def with_short_tools(tokenizer: Any) -> Any:
    """A tokenizer that can parse tool calls (see `loading.with_tool_calls`), with the tools said
    short.

    TRL knows a template by its text, and gives a tokenizer the means to parse calls for templates
    it knows; so those must be in place before, and they stay.

    Raises:
        ValueError: when the tokenizer cannot parse calls yet, or its template is not TRL's.
    """
    ways = ("response_template", "response_schema")  # of transformers from 5.13 on, and before
    if not any(vars(tokenizer).get(way) for way in ways):
        raise ValueError(
            "the tokenizer cannot parse tool calls, and a shorter template would keep TRL from "
            "knowing it; call with_tool_calls first"
        )
    tokenizer.chat_template = short_template(tokenizer.chat_template)
    return tokenizer
