"""LogTriage as a Gymnasium environment; needs the extra `gymnasium`.

import gymnasium, logtriage.adapters.gymnasium
from logtriage.play.actions import Action

env = gymnasium.make("LogTriage-v1", task="cascading_failure")
text, info = env.reset(seed=0)  # or options={"index": 7}
action = env.unwrapped.actions.index(Action("request_more_logs", ("all",)))
text, reward, terminated, truncated, info = env.step(action)
"""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.spaces import Discrete, Text

from ..play.actions import Action, action_values
from ..play.episode import BaseEpisode, Episode, OpenEpisode
from ..play.observation import render
from ..world.tasks import MAX_INDEX, check_split, check_task
from ..world.topology import DEFAULT_TOPOLOGY

MAX_TEXT = 4_000  # characters; the longest opening of the default call graph has a quarter of it


class TriageGym(gymnasium.Env[str, int]):
    """Incidents on the default call graph; `open_episode=remote.Server.open` plays on a server.

    Observations are what a language model reads, actions are numbers into `actions`, and the reward
    is 0, and at the end (`terminated`, the last step too) the score in [0, 1]. `info` has `task`,
    `split` and `index`, and once done the parts of the score.
    """

    def __init__(
        self,
        task: str = "cascading_failure",
        split: str = "train",
        open_episode: OpenEpisode = Episode.open,
    ) -> None:
        check_task(task)
        check_split(split)
        if split == "unseen_topology":
            raise ValueError("in unseen_topology actions differ by incident; choose another split")
        self.task, self.split, self._open_episode = task, split, open_episode
        self.actions = [
            Action.parse(kind, value)
            for kind, values in action_values(DEFAULT_TOPOLOGY).items()
            for value in values
        ]
        self.action_space: Discrete[Any] = Discrete(len(self.actions))
        self.observation_space = Text(MAX_TEXT, charset="".join(map(chr, range(32, 127))) + "\n")
        self._episode: BaseEpisode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Open the incident `options["index"]`, or one drawn by the environment's generator."""
        super().reset(seed=seed)
        index = (options or {}).get("index")
        if index is None:
            index = int(self.np_random.integers(MAX_INDEX, endpoint=True))
        self.close()
        episode = self._episode = self._open_episode(self.task, self.split, index)
        return render(episode.opening, episode.incident.topology), _info(episode)

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the action of that number; `ValueError` before `reset` and after the end."""
        episode = self._episode
        if episode is None:
            raise ValueError("no incident is open; call reset first")
        text = render(episode.act(self.actions[int(action)]))
        reward = 0.0 if episode.score is None else episode.score.total
        return text, reward, episode.done, False, _info(episode)

    def close(self) -> None:
        """Leave the incident: on a server, its session is free again."""
        if self._episode is not None:
            self._episode.leave()


def _info(episode: BaseEpisode) -> dict[str, Any]:
    incident = episode.incident
    where = {"task": incident.task_name, "split": incident.split, "index": incident.index}
    return where if episode.score is None else {**where, **episode.score._asdict()}


gymnasium.register("LogTriage-v1", entry_point=f"{__name__}:{TriageGym.__name__}")
