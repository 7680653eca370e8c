"""What each call of an episode was worth, measured by forks: the truth for estimators of credit.

The world is a pure function of incident and actions, so an episode can be played again up to any
call, and from there by the same policy as often as one likes. The mean reward of such forks
estimates the value of the state before the call, and the difference of two neighbouring values is
the call's advantage:

    value_before[k] = mean reward of forks from the state before call k
    value_after[k]  = value_before[k + 1], and for the last call the episode's own reward
    advantage[k]    = value_after[k] - value_before[k]

A model writes several calls in one turn, so the state after a call is what it has written up to the
call's end, in the middle of a turn. What it does from there to the end of its next call belongs to
that next call: to end the turn, and to read answers. The last call answers for how the episode
ended. So the advantages of an episode add up to its reward less the value of the opening.
The episode itself is none of its forks: their errors know nothing of its luck, of which estimators
are made.

    frame = fork_incidents(policy, "base.jsonl", incidents, 16, call_advantages, CREDITS)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from ..bench.runs import write_text
from ..play.conversation import unreadable
from ..play.episode import Episode
from ..play.tools import ToolSession
from ..policies.llm.language_models import Conversation, LanguageModelPolicy, Turns
from ..world.incidents import Incident, sample_incident
from .credit import calls_made
from .drills import FORKED_INDEX
from .loop import CALL_END
from .settings import TrainingConfig

# Episodes that are written at once: keys and values of more take longer to move than they spare.
TOGETHER = 384
State = tuple[tuple[int, ...], ...]  # `Turns` that can be a key

# Of a credit and the sessions of one group: for each episode the advantage of each of its calls.
Estimate = Callable[[str, Sequence[ToolSession]], list[list[float]]]


def forked_incidents(config: TrainingConfig, count: int) -> list[Incident]:
    """`count` incidents of `train` that nothing is learned from, the run's tasks in turn."""
    tasks = [task for task, share in config.shares.items() if share]
    return [
        sample_incident(tasks[number % len(tasks)], "train", FORKED_INDEX + number)
        for number in range(count)
    ]


def fork_incidents(
    policy: LanguageModelPolicy,
    path: str | Path,
    incidents: Sequence[Incident],
    forks: int,
    estimate: Estimate,
    credits: Sequence[str],
    group: int = 8,
    progress: bool = True,
) -> pd.DataFrame:
    """Play each incident by a group of episodes, and fork all of them at every call.

    Args:
        policy: samples as training does: its temperature is above 0.
        path: a JSONL file with a line an incident. Incidents that it holds are not played again, so
            it is for one policy.
        incidents: of `train`; an incident's index seeds what is sampled on it.
        forks: of each state; at least 2, or there is no standard error.
        estimate: what gives calls their advantages, `credit.call_advantages`.
        credits: names that it is asked for, a column `credit_<name>` each.
        group: episodes of an incident.
        progress: whether to show a bar.

    Returns:
        A row a call: `task`, `index`, `episode` (0 to group - 1), `call` (from 0), `calls` (of the
        episode), `action` (empty for a call that was no valid action), `arguments` (JSON), `reward`
        of the episode, `value_before`, `value_after`, the standard errors of both (`error_before`,
        `error_after`; 0 for the reward itself), `forks`, and the credits. An episode without a
        call has no row.

    Raises:
        ValueError: for fewer than 2 forks, or a file that was made with other forks, group or
            credits.
    """
    if forks < 2:
        raise ValueError(f"forks must be >= 2, got {forks}; one has no standard error")
    path = Path(path)
    settings = {"forks": forks, "group": group, "credits": list(credits)}
    finished = _finished(path, settings)
    for incident in tqdm(incidents, policy.name, disable=not progress):
        key = incident.task.name, incident.index
        if key in finished:
            continue
        rows = fork_incident(policy, incident, forks, estimate, credits, group)
        finished[key] = rows
        line = {"task": key[0], "index": key[1], **settings, "rows": rows}
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
    asked = [(incident.task.name, incident.index) for incident in incidents]
    return pd.DataFrame([row for key in asked for row in finished[key]])


def _finished(path: Path, settings: dict[str, Any]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Task and index to the rows that the file holds of them; a line that was cut off in writing is
    dropped from it.
    """
    if not path.exists():
        return {}
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        write_text(path, whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    for line in lines:
        found = {key: line[key] for key in settings}
        if found != settings:
            raise ValueError(f"{path} was made with {found}, not {settings}; choose another folder")
    return {(line["task"], line["index"]): line["rows"] for line in lines}


def fork_incident(
    policy: LanguageModelPolicy,
    incident: Incident,
    forks: int,
    estimate: Estimate,
    credits: Sequence[str],
    group: int = 8,
) -> list[dict[str, Any]]:
    """The rows of one incident; arguments and columns are those of `fork_incidents`."""
    torch.manual_seed(incident.index)
    sessions = [ToolSession(Episode(incident)) for _ in range(group)]
    conversations = policy.converse(sessions)
    rewards = [session.reward() for session in sessions]
    given = {credit: estimate(credit, sessions) for credit in credits}
    states = [states_before_calls(one, policy.tokenizer) for one in conversations]
    different = list(dict.fromkeys(state for each in states for state in each))
    values = dict(zip(different, fork(policy, incident, different, forks), strict=True))
    rows = []
    for episode, (session, before) in enumerate(zip(sessions, states, strict=True)):
        known = [_mean_and_error(values[state]) for state in before]
        known.append((rewards[episode], 0.0))
        written = _arguments_of(conversations[episode])
        made = [one.action.type if one and one.action else "" for one in calls_made(session)]
        for call, (arguments, action) in enumerate(zip(written, made, strict=True)):
            rows.append(
                {
                    "task": incident.task.name,
                    "index": incident.index,
                    "episode": episode,
                    "call": call,
                    "calls": len(before),
                    "action": action,
                    "arguments": json.dumps(arguments),
                    "reward": rewards[episode],
                    "value_before": known[call][0],
                    "value_after": known[call + 1][0],
                    "error_before": known[call][1],
                    "error_after": known[call + 1][1],
                    "forks": forks,
                    **{f"credit_{name}": each[episode][call] for name, each in given.items()},
                }
            )
    return rows


def fork(
    policy: LanguageModelPolicy, incident: Incident, states: Sequence[Turns], forks: int
) -> np.ndarray:
    """Rewards of `forks` episodes that go on from each state: an array (states, forks)."""
    rewards = np.zeros((len(states), forks))
    # States of like length are read and written together, which spares padding.
    order = sorted(range(len(states)), key=lambda number: sum(map(len, states[number])))
    together = max(1, TOGETHER // forks)
    for start in range(0, len(order), together):
        chunk = order[start : start + together]
        sessions = [ToolSession(Episode(incident)) for _ in chunk for _ in range(forks)]
        policy.converse(sessions, [states[number] for number in chunk for _ in range(forks)])
        rewards[chunk] = np.reshape([session.reward() for session in sessions], (-1, forks))
    return rewards


def states_before_calls(conversation: Conversation, tokenizer: Any) -> list[State]:
    """For each call of a conversation the turns before it, which `converse` can go on from: up to
    the end of the call before it, and for the first the opening alone.

    Equal states mean the same, since answers follow from turns.

    Raises:
        ValueError: when a call that was made has no end among the ids.
    """
    turns = [tuple(turn) for turn in conversation.written()]
    messages = [one for one in conversation.messages if one["role"] == "assistant"]
    states: list[State] = [((),)]
    for number, (turn, message) in enumerate(zip(turns, messages, strict=True)):
        calls = len(message.get("tool_calls") or ())
        ends = _ends_of_calls(turn, tokenizer)
        if len(ends) < calls:
            raise ValueError(
                f"turn {number + 1} made {calls} calls and ended {len(ends)}; its tokenizer's calls"
                f" must end in {CALL_END}"
            )
        for end in ends[:calls]:
            # A turn that was cut off right there has been answered: what follows is the next one.
            cut = end == len(turn)
            states.append((*turns[: number + cut], () if cut else turn[:end]))
        if unreadable(message):  # what could not be read is answered, and costs a step
            states.append((*turns[: number + 1], ()))
    return states[:-1]


def _ends_of_calls(turn: Sequence[int], tokenizer: Any) -> list[int]:
    """How many ids of a turn there are up to the end of each of its calls."""
    ends, text = [], ""
    for place, token in enumerate(turn, start=1):
        text += tokenizer.decode([token])
        if CALL_END in text:
            ends.append(place)
            text = ""
    return ends


def _arguments_of(conversation: Conversation) -> list[Any]:
    """The arguments of each call of a conversation, as they were written; None for what could not
    be read.
    """
    written = []
    for message in conversation.messages:
        if message["role"] == "assistant":
            written += [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
            written += [None] * unreadable(message)
    return written


def _mean_and_error(rewards: np.ndarray) -> tuple[float, float]:
    """The mean, and its standard error."""
    return float(rewards.mean()), float(rewards.std(ddof=1) / np.sqrt(len(rewards)))
