"""A shorter chat template for Qwen2.5: the same tools, said in fewer tokens.

A model reads its tools at every turn that begins with an empty cache, so what they cost is paid
many times over. TRL's template prints each JSON schema whole. All our arguments are required texts,
and all answers are texts, so most of a schema is scaffold: types, `required`, `return`. Here a tool
is its name, what it does, and what each argument may be, in the form in which it is called:

    {"name": "escalate", "description": "Page a team.", "arguments": {"team": "sre, ... security."}}

The message format and everything after the tools is TRL's, byte for byte. What the change does to
the answers of a model that has seen whole schemas in its own training has not been measured.
"""

from __future__ import annotations

from typing import Any

WHOLE_SCHEMA = "{{- tool | tojson }}"  # how TRL's template prints a tool
# A tool's name and texts are JSON strings by `tojson`, as in the whole schema.
SHORT_TOOL = """\
{{- '{"name": ' ~ tool.function.name | tojson }}
        {{- ', "description": ' ~ tool.function.description | tojson ~ ', "arguments": {' }}
        {%- for name, argument in tool.function.parameters.properties.items() %}
            {{- name | tojson ~ ': ' ~ argument.description | tojson }}
            {%- if not loop.last %}
                {{- ', ' }}
            {%- endif %}
        {%- endfor %}
        {{- '}}' }}"""


def short_template(template: str) -> str:
    """A chat template that prints tools as `SHORT_TOOL` does, and all else as `template`.

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
    """The tokenizer of `language_models.with_tool_calls`, with the tools said short.

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
