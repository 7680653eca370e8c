"""What an evaluation came to, as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pandas as pd

from ..logs.lines import visible
from .attempts import attempts_table
from .audit import audit_table
from .intervals import score_table
from .rollouts import scored
from .strata import detection_table

MOST_ERRORS = 5  # kinds of errors that are told


def told(
    frame: pd.DataFrame,
    attempts: int = 1,
    truth: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    audited: bool = False,
    table: Callable[[pd.DataFrame], pd.DataFrame] = score_table,
) -> Iterator[str]:
    """Scores, attempts, what was detected, errors, tokens and the audit, as far as there are any.

    Args:
        frame: of an `Evaluation`.
        attempts: at each incident.
        truth: adds what was true of each incident (see `strata.with_truth`); None where nobody
            knows.
        audited: whether the frame holds the audit.
        table: makes that of the scores.
    """
    played = scored(frame)
    if len(frame):
        yield table(frame).to_string(index=False)
    if len(played) and attempts > 1:
        yield "\n" + attempts_table(frame, attempts).to_string(index=False)
    if len(played) and truth is not None:
        yield "\n" + detection_table(truth(played)).to_string(index=False)
    yield from describe_errors(frame)
    yield from _describe_tokens(frame)
    if audited and len(played):
        yield "audit: what the exact posterior held of each answer when it was given"
        yield _audit_text(frame)


def describe_errors(frame: pd.DataFrame) -> list[str]:
    """A line a policy and kind of error: how many of its episodes have no score, and why."""
    lines = []
    for name, group in frame.groupby("policy", sort=False):
        kinds = Counter(error for error in group["error"] if error)
        if kinds:
            total = sum(kinds.values())
            called = visible(str(name))
            lines.append(f"{called}: {total} of {len(group)} episodes have no score, of errors:")
            lines += [
                f"  {count} x {visible(told)}" for told, count in kinds.most_common(MOST_ERRORS)
            ]
    return lines


def _describe_tokens(frame: pd.DataFrame) -> Iterator[str]:
    """A line a policy whose tokens somebody counted."""
    counted = frame[frame["prompt_tokens"].notna()]
    for name, group in counted.groupby("policy", sort=False):
        prompt, completion = group["prompt_tokens"].sum(), group["completion_tokens"].sum()
        each = (prompt + completion) / len(group)
        yield (
            f"{name}: {prompt:,.0f} prompt and {completion:,.0f} completion tokens,"
            f" {each:,.0f} an episode"
        )


def _audit_text(frame: pd.DataFrame) -> str:
    """The audit as text: a row a policy and task."""
    table = audit_table(frame)
    table["grounded_share_of_right"] = table["grounded_share_of_right"].map(
        lambda share: str(share) if share else "-"
    )
    return str(table.to_string(index=False, float_format="{:.3f}".format, na_rep="-"))
