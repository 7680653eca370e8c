"""Slow libraries that others import if they can, and that nothing here uses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

GRADIO = "gradio"  # OpenEnv's own page, whose `create_web_interface_app` is then None
IRI_SYNTAX = "rfc3987_syntax"  # without it, jsonschema takes any string for an `iri`


@contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Let imports of these modules fail in this context; modules imported before stay."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: no such module
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
