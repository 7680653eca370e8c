"""`TriageEnvironment`: the OpenEnv interface of an episode."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from . import REPOSITORY, __version__
from .catalogue import draw_episode, open_incident
from .models import TriageAction, TriageObservation, TriageState
from .openenv_base import Environment, EnvironmentMetadata, Rubric
from .play.actions import Action, action_values, quoted
from .play.episode import BaseEpisode
from .play.observation import Observation, render
from .play.scoring import PARTS, Score
from .world.call_graph import CallGraph
from .world.tasks import TASKS, check_index, check_split, splits_on
from .world.topology import Topology

NUMBERED = 1_000  # incidents of each task and split in the task API
MAX_EPISODE_ID = 255  # characters, as in OpenEnv's own reset request

# Opens incidents that are not simulated, one at a time: more threads would only slow the server.
OPENING = ThreadPoolExecutor(max_workers=1, thread_name_prefix="opening")


class ScorePart(Rubric):
    """One named number of the score; `value` is set by the parent."""

    value = 0.0

    def forward(self, action: TriageAction, observation: TriageObservation) -> float:
        return self.value


class TriageRubric(Rubric):
    """The score as OpenEnv's tree, `rubric.root_cause.last_score`; the environment sets `score`."""

    def __init__(self) -> None:
        super().__init__()
        self.score: Score | None = None  # until the end, and the reward is 0
        for name in (*PARTS, "cost", "gate"):  # what the total follows from
            setattr(self, name, ScorePart())

    def forward(self, action: TriageAction, observation: TriageObservation) -> float:
        if self.score is None:
            return 0.0
        for name, part in self.named_children():
            part.value = getattr(self.score, name)
            part(action, observation)
        return self.score.total

    def reset(self) -> None:
        self.score = None


class TriageEnvironment(Environment[TriageAction, TriageObservation, TriageState]):
    """Incidents in a microservice cluster, to be traced, fixed, and handed to the right team.

    The reward is 0 until the end, and then the score in [0, 1]. In the task API the three tasks
    take turns: `reset(split=s, index=n)` opens `get_task(s, n)`. A custom call graph has no split
    unseen_topology, which draws call graphs of its own. For an example see `client.LogtriageEnv`.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True
    # The server makes all environments in one thread, instead of keeping a thread for each.
    REQUIRES_SINGLE_THREAD_EXECUTOR = True

    def __init__(self, topology: Topology | None = None) -> None:
        self._triage_rubric = TriageRubric()
        super().__init__(rubric=self._triage_rubric)
        self._topology = topology
        self._episode: BaseEpisode | None = None
        self._episode_id: str | None = None
        self._next_number = 0

    def reset(
        self,
        /,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        task: str | None = None,
        split: str = "train",
        index: int | None = None,
        **kwargs: Any,
    ) -> TriageObservation:
        """Open an incident; a bad argument raises `ValueError`, and what was open stays open.

        With `task`, `index` is the incident's own; without, it is the index for `get_task`. If
        `index` is left out, `seed` takes its place; if both are, indices count up from 0. Where the
        package is installed that adds them, the task `real` plays recorded incidents, whose splits
        are their sources, and `production` realistic ones, which are drawn.
        """
        if kwargs:
            takes = "reset takes seed, episode_id, task, split, index"
            raise ValueError(f"unknown argument {quoted(next(iter(kwargs)))}; {takes}")
        named = episode_id is None or isinstance(episode_id, str)
        if not named or len(episode_id or "") > MAX_EPISODE_ID:
            rule = f"text of at most {MAX_EPISODE_ID} characters"
            raise ValueError(f"episode_id must be {rule}, got {quoted(episode_id)}")
        given = (index, seed, self._next_number)
        number: Any = next(value for value in given if value is not None)
        if isinstance(number, float) and number.is_integer():  # JSON has one kind of number
            number = int(number)
        own = {"task": task, "split": split, "index": number}
        spec = _task_spec(split, number) if task is None else own
        episode = open_incident(**spec, topology=self._topology)
        self._next_number = number + 1
        self._reset_rubric()
        self._episode, self._episode_id = episode, episode_id
        return self._observe(episode.opening, episode.incident.topology)

    def step(
        self, /, action: TriageAction, timeout_s: float | None = None, **kwargs: Any
    ) -> TriageObservation:
        """Take one action; `ValueError` before `reset`, and after the incident is closed."""
        if self._episode is None:
            raise ValueError("no incident is open; call reset first")
        taken = Action.parse(action.action_type, action.value, action.confidence)
        answer = self._observe(self._episode.act(taken))
        if self._episode.score is not None:  # before the end the reward is 0
            self._triage_rubric.score = self._episode.score
            answer.reward = self._apply_rubric(action, answer)
        return answer

    # A step takes microseconds, and a simulated incident opens in under a millisecond: running them
    # on the server's event loop costs less than switching to a thread and back. Other incidents are
    # read or drawn for so long that every session would wait.

    async def reset_async(self, /, *args: Any, **kwargs: Any) -> TriageObservation:
        if kwargs.get("task") in (None, *TASKS):
            return self.reset(*args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(
            OPENING, partial(self.reset, *args, **kwargs)
        )

    async def step_async(self, /, *args: Any, **kwargs: Any) -> TriageObservation:
        return self.step(*args, **kwargs)

    @property
    def state(self) -> TriageState:
        """The state of the episode, without anything of the truth before the end."""
        if self._episode is None:
            return TriageState()
        incident, record = self._episode.incident, self._episode.record
        return TriageState(
            episode_id=self._episode_id,
            step_count=record.steps,
            task=incident.task_name,
            split=incident.split,
            index=incident.index,
            max_steps=self._episode.max_steps,
            done=self._episode.done,
            closed_by=record.closed_by or "",
            confidence=record.confidence,
            score=self._episode.score._asdict() if self._episode.score else {},
        )

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(
            name="logtriage",
            description="Incidents in a microservice cluster: read the logs, trace the trouble to"
            " the service where it began, fix it, page the right team.",
            version=__version__,
            author="The LogTriage authors",
            readme_content=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
            documentation_url=f"https://github.com/{REPOSITORY}",
        )

    # The task API of OpenEnv. A task spec holds the arguments with which `reset` opens it.

    def list_splits(self) -> list[dict[str, str]]:
        return [
            {"name": name, "type": "train" if name == "train" else "test"}
            for name in splits_on(self._topology)
        ]

    def num_tasks(self, split: str) -> int:
        check_split(split, self._topology)
        return NUMBERED * len(TASKS)

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """`task`, `split` and the incident's own `index`; `IndexError` beyond `num_tasks`."""
        if not 0 <= index < self.num_tasks(split):
            raise IndexError(f"task index must be 0 to {self.num_tasks(split) - 1}, got {index}")
        return _task_spec(split, index)

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        return [_task_spec(split, number) for number in range(self.num_tasks(split))[start:stop]]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return self.get_task_range(split)

    # The page at /web, OpenEnv's and ours.

    def render_web(
        self, observation: dict[str, Any], links: Mapping[str, str] | None = None, marked: str = ""
    ) -> str | None:
        """Draw all that was shown, and once done the score, as HTML: `catalogue.draw_episode`."""
        return None if self._episode is None else draw_episode(self._episode, links, marked)

    def web_actions(self, observation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Every valid action as (label, the dict that `step` receives)."""
        if self._episode is None or self._episode.done:
            return []
        offered = []
        for kind, values in action_values(self._episode.incident.topology).items():
            for value in values:
                label = f"{kind.replace('_', ' ')} {value.replace(':', ' ')}".strip()
                offered.append((label, {"action_type": kind, "value": value}))
        return offered

    def _observe(
        self, observation: Observation, topology: CallGraph | None = None
    ) -> TriageObservation:
        """An observation as OpenEnv's type, with the call graph in the opening."""
        fields = observation._asdict()
        return TriageObservation(
            reward=0.0,
            text=render(observation, topology),
            services=topology.services if topology else None,
            logs=fields.pop("lines"),
            **fields,
        )


def _task_spec(split: str, number: int) -> dict[str, Any]:
    """The coordinates of the incident that the task API numbers so: the tasks take turns."""
    check_index(number)
    task = [*TASKS][number % len(TASKS)]
    return {"task": task, "split": split, "index": number // len(TASKS)}
