"""What an episode of training is paid, where that is not its score: other rules, and a reward that
was stored.

`stored` is a mistake made on purpose, for comparison: every completion of an incident is paid what
the starting model once got on it, before training. All of a group are then paid alike, and nothing
is learned.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..bench.runs import write_text
from ..play.episode import OpenEpisode
from ..play.tools import ToolSession, TriageTools
from ..policies.llm.language_models import LanguageModelPolicy
from .choice import incident_rows
from .credit import reward_paid
from .settings import TrainingConfig

Pay = Callable[[ToolSession], float]


class PaidTools(TriageTools):
    """The tools of an agent that is paid something else than its score.

    Args:
        open_episode: see `TriageTools`.
        pay: what a played session is paid; it may still be open.
    """

    def __init__(self, open_episode: OpenEpisode, pay: Pay) -> None:
        super().__init__(open_episode)
        self._pay = pay

    def get_reward(self) -> float:
        return self._pay(self._open_session())


def tools_of(
    config: TrainingConfig, model: Any, tokenizer: Any, folder: Path, open_episode: OpenEpisode
) -> Callable[[], TriageTools]:
    """Makes the tools of a run's episodes, as `config.reward` has them paid.

    Args:
        config: the run's.
        model, tokenizer: as they are before training.
        folder: the run's; `stored.json` is kept there.
        open_episode: makes the episodes.
    """
    if config.reward == "score":
        return partial(TriageTools, open_episode)
    if config.reward == "stored":
        stored = stored_rewards(config, model, tokenizer, folder / "stored.json", open_episode)
        return partial(PaidTools, open_episode, lambda session: stored[_name_of(session)])
    return partial(PaidTools, open_episode, lambda session: reward_paid(session, config.reward))


def stored_rewards(
    config: TrainingConfig, model: Any, tokenizer: Any, path: Path, open_episode: OpenEpisode
) -> dict[str, float]:
    """What the model gets on each incident of a run, played once, as `task/index` to its reward.

    Read from `path` where that is there, else played and written there: a run that goes on has
    another model.
    """
    if not path.exists():
        policy = LanguageModelPolicy(
            model,
            tokenizer,
            name="stored",
            temperature=config.temperature,
            turn_tokens=config.turn_tokens,
            completion_tokens=config.completion_tokens,
        )
        rows = incident_rows(config)
        found: dict[str, float] = {}
        model.eval()
        torch.manual_seed(config.seed)
        for start in range(0, len(rows), config.episodes):
            some = rows[start : start + config.episodes]
            sessions = [
                ToolSession(open_episode(row["task"], row["split"], row["index"])) for row in some
            ]
            policy.converse(sessions)
            found |= {_name_of(session): session.reward() for session in sessions}
        write_text(path, json.dumps(found, indent=1))
    stored: dict[str, float] = json.loads(path.read_text())
    return stored


def _name_of(session: ToolSession) -> str:
    incident = session.episode.incident
    return f"{incident.task_name}/{incident.index}"
