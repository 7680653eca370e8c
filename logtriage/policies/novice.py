"""The novice on call, whom base models imitate. It never sees the answer, and knows the runbook."""

from collections import Counter
from random import Random

from ..play.actions import Action
from ..play.observation import Observation
from ..world.call_graph import CallGraph
from ..world.tasks import PAR_STEPS
from .scripted import REAL_SLOWDOWN, ReadingPolicy

# The novice's habits, set by judgement. It asks often enough that its imitator meets the logs of
# every service and all seven actions, is patient often enough that reward can pick up patience, and
# is wrong often enough to leave reward much to teach. Where nothing shows, it goes down a list:
# an imitator of random questions asks the same service again and again in greedy play.
ANSWER_STEPS = PAR_STEPS[1]
MOST_ASKED = 12  # its patience: 1 to this many questions, uniformly, if there are steps for it
STARTS_AT_ENTRY = 0.5  # chance to ask the entry service first
FOLLOWS = 0.75  # chance to ask where lines show a fault or report errors, else down its list
MAKES_SURE = 0.8  # chance to ask a service again whose lines hint at a fault but prove none
STOPS_ASKING = 0.8  # chance, whenever the service asked last has shown its fault
DISMISSES = 0.5  # chance, if the opening had no alert and the service asked last showed no fault
BLAMES_LOUDEST = 0.5  # chance; otherwise it blames the service asked last


class NovicePolicy(ReadingPolicy):
    """Asks until a service shows a fault or its patience ends. It blames the loudest half of the
    time, and often dismisses an incident that showed nothing. All draws use one stream.
    """

    name = "novice"

    def __init__(self, random: Random) -> None:
        self._random = random

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        super().begin(topology, observation)
        self._loudest = self.loudest()
        self._quiet = not observation.alerts
        most = observation.max_steps - ANSWER_STEPS  # more would leave no steps for the answers
        self._patience = min(self._random.randint(1, MOST_ASKED), most)
        self._asked: list[str] = []

    def decide(self) -> list[Action]:
        # Each draw comes after `and`, so that it is made only if it decides something: one draw
        # more or less changes everything that the stream yields later.
        random = self._random.random
        informed = bool(self._asked) and self.fault_at(self._asked[-1]) is not None
        if len(self._asked) < self._patience:
            if informed and not self.proven(self._asked[-1]) and random() < MAKES_SURE:
                return self._ask(self._asked[-1])
            if not (informed and random() < STOPS_ASKING):
                return self._ask(self._next_to_ask())
        if self._quiet and not informed and random() < DISMISSES:
            return [Action("classify_severity", (self.severity(),)), Action("ignore")]
        return self.answer(self._loudest if random() < BLAMES_LOUDEST else self._asked[-1])

    def _ask(self, service: str) -> list[Action]:
        self._asked.append(service)
        return [Action("request_more_logs", (service,))]

    def _next_to_ask(self) -> str:
        """One of the services that were asked least often."""
        if not self._asked and self._random.random() < STARTS_AT_ENTRY:
            return self.entries[0]
        asked = Counter(self._asked)
        least = min(asked[name] for name in self.topology.names)
        left = [name for name in self.topology.names if asked[name] == least]
        source = self._asked[-1] if self._asked else self._loudest
        faulty = [name for name in left if self.fault_at(name) is not None]
        reported = [name for name in self.subjects(source, "callee") if name in left]
        if (faulty or reported) and self._random.random() < FOLLOWS:
            return (faulty or reported)[0]
        return min(left, key=self._place)

    def _place(self, service: str) -> tuple[bool, bool]:
        """Its place in the list: those without metrics, then those that look slow, then others."""
        return bool(self.slowdowns[service]), self.slowdown(service) <= REAL_SLOWDOWN
