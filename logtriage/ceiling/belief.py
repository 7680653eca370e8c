"""The practical ceiling: a policy that knows the simulator, though not the draw.

Before each step it weighs the best answers that it could give now against asking one more service
(`Lookahead`). It looks one question ahead and never asks all services at once, so its score is a
lower bound of the ceiling.
"""

from ..play.actions import Action
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..policies.scripted import Policy
from ..world.call_graph import CallGraph
from ..world.tasks import Task, check_task
from ..world.topology import DEFAULT_TOPOLOGY, simulated
from .lookahead import Lookahead, answer_actions
from .posterior import Posterior
from .prior import Prior, cached_prior

WORTHWHILE = 1e-3  # gain in score below which a question is not worth its noise


def prior_of(graph: CallGraph, task: Task | None, split: str) -> Prior:
    """The prior of an incident, kept where others share its graph; `ValueError` for a real one."""
    topology = simulated(graph)
    assert task is not None  # a simulated incident has settings
    make_prior = Prior if split == "unseen_topology" else cached_prior
    return make_prior(topology, task, split)


class BeliefPolicy(Policy):
    """Exact enumeration, Bayes, and one step of lookahead; knows the generator of the split."""

    name = "belief"

    def prepare(self, task: str | Task, split: str) -> None:
        if split != "unseen_topology":
            cached_prior(DEFAULT_TOPOLOGY, check_task(task), split)

    def open(self, episode: BaseEpisode) -> None:
        incident = episode.incident
        self._belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
        super().open(episode)

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._topology = topology
        self.queue: list[Action] = []
        self._asked: str | None = None
        self.see(observation)

    def see(self, observation: Observation) -> None:
        self._step = observation.step
        if not self.queue:
            self._belief.see(observation, self._asked)

    def act(self) -> Action:
        if not self.queue:
            lookahead = Lookahead(self._belief, self._step)
            gains = lookahead.gains()
            question = max(gains, key=gains.__getitem__, default="")
            if question and gains[question] > WORTHWHILE:
                self._asked = question
                return Action("request_more_logs", (question,))
            best, roots = lookahead.best_answers(), self._belief.roots()
            # The last of the roots is "none", which `blame` NONE, -1, reads, too.
            confidence = roots[-1] if best.ignore else roots[best.blame]
            self.queue = answer_actions(best, self._topology, float(min(1.0, confidence)))
        return self.queue.pop(0)
