"""The practical ceiling: a policy that knows the simulator, though not the draw, and plays for
expected score.

It holds a `Posterior` over every hypothesis. Before each step it weighs the best set of answers it
could give now against asking one more service (`Lookahead`). It looks one question ahead and never
asks all services at once, so what it earns is a lower bound of the ceiling.
"""

from __future__ import annotations

from ..play.actions import Action
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..policies.scripted import Policy
from ..world.call_graph import CallGraph
from ..world.tasks import TASKS, Task, check_task
from ..world.topology import DEFAULT_TOPOLOGY, simulated
from .lookahead import Lookahead
from .outcomes import answer_actions
from .posterior import Posterior
from .prior import Prior, cached_prior

WORTHWHILE = 1e-3  # gain in score below which a question is not worth its noise


def check_enumerable(task: str | Task) -> Task:
    """The task, when there is a prior for it; `ValueError` for one of two faults."""
    settings = check_task(task)
    if settings.faults > 1:
        raise ValueError(
            f"belief enumerates single faults; play {settings.name} with another policy, and "
            "without an audit"
        )
    return settings


def _graph_comes_again(task: Task, split: str) -> bool:
    """Whether incidents share a call graph, whose prior is then worth keeping."""
    return split != "unseen_topology" and not task.services


def prior_of(graph: CallGraph, task: Task | None, split: str) -> Prior:
    """The prior of an incident's call graph, task and split; kept where the graph comes again.

    Raises:
        ValueError: for an incident that was not simulated.
    """
    topology = simulated(graph)
    assert task is not None  # a simulated incident has settings
    make_prior = cached_prior if _graph_comes_again(task, split) else Prior
    return make_prior(topology, task, split)


class BeliefPolicy(Policy):
    """Exact enumeration, Bayes, and one step of lookahead.

    Knows the generator of the split, not the incident.
    """

    name = "belief"

    def __init__(self) -> None:
        self._task: Task | None = TASKS["cascading_failure"]
        self._split = "train"

    def prepare(self, task: str | Task, split: str) -> None:
        settings = check_enumerable(task)
        if _graph_comes_again(settings, split):
            cached_prior(DEFAULT_TOPOLOGY, settings, split)

    def _open(self, episode: BaseEpisode) -> None:
        self._task, self._split = episode.incident.task, episode.incident.split
        super()._open(episode)

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self.belief, self.topology = (
            Posterior(prior_of(topology, self._task, self._split)),
            topology,
        )
        self._queue: list[Action] = []
        self._asked: str | None = None
        self.see(observation)

    def see(self, observation: Observation) -> None:
        self._step = observation.step
        if not self._queue:
            self.belief.see(observation, self._asked)

    def act(self) -> Action:
        if not self._queue:
            lookahead = Lookahead(self.belief, self._step)
            question = self._question(lookahead)
            if question is not None:
                self._asked = question
                return Action("request_more_logs", (question,))
            self._queue = self._answers(lookahead)
        return self._queue.pop(0)

    def _question(self, lookahead: Lookahead) -> str | None:
        """The service worth asking, by what its answer is expected to be worth; None when answering
        is better.
        """
        gains = lookahead.gains()
        best = max(gains, key=gains.__getitem__, default=None)
        return best if best is not None and gains[best] > WORTHWHILE else None

    def _answers(self, lookahead: Lookahead) -> list[Action]:
        best, roots = lookahead.best_answers(), self.belief.roots()
        # The last of the roots is "none", so blame NONE would read it, too.
        confidence = roots[-1] if best.ignore else roots[best.blame]
        return answer_actions(best, self.topology, float(min(1.0, confidence)))
