"""Help for notebook 03: from which base a run starts, and how a conversation reads."""

from pathlib import Path
from typing import Any

from logtriage.play.conversation import Message

from ..language_models.loading import resolve_model
from .base_model import build_base, build_expert


def base_for(preset: str, track: Path, base: str = "auto", **options: Any) -> str:
    """Name or folder of the base that the preset `novice` or `expert` starts from.

    Args:
        track: the folder of the track's runs; an expert is made in its `base/`.
        base: `built` is the one in `base/` of the novice's track, built by `options` if it is not
            there yet; `auto` is that one if it is there, else the package's; else it is a folder.
    """
    built = (track.parent / "novice" if preset == "expert" else track) / "base"
    if base == "auto" and not (built / "base.json").exists():
        name, start = "base", resolve_model("base")
    else:
        name = str(built if base in ("auto", "built") else base)
        start = build_base(name, **options)
    return str(build_expert(track / "base", start)) if preset == "expert" else name


def conversation_text(messages: list[Message]) -> str:
    """A conversation as plain text, without the system prompt."""
    lines = []
    for message in messages:
        if message["role"] == "system":
            continue
        for call in message.get("tool_calls") or ():
            function = call["function"]
            values = ", ".join(map(str, function["arguments"].values()))
            lines.append(f">>> {function['name']}({values})")
        if message["content"]:
            indent = "    " if message["role"] != "assistant" else ">>> "
            lines += [indent + line for line in message["content"].splitlines()]
    return "\n".join(lines)
