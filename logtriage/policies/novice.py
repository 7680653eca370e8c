"""The novice on call, which the base model imitates before it is rewarded for anything.

It sees what an agent sees, never the right answer, and knows the runbook (`faults.FAULTS`).
"""

from random import Random

from ..play.actions import Action
from ..play.observation import Observation
from ..world.call_graph import CallGraph
from ..world.tasks import PAR_STEPS
from .scripted import ReadingPolicy

# The novice's habits, set by judgement. It asks often enough that its imitator meets the logs of
# every service and all seven actions, is patient often enough that reward can pick up patience, and
# is wrong often enough to leave reward much to teach.
ANSWER_STEPS = PAR_STEPS[1]
MOST_ASKED = 12  # its patience: 1 to this many questions, uniformly, if there are steps for it
MAKES_SURE = 0.5  # chance to ask a service again whose lines hint at a fault but prove none
STOPS_ASKING = 0.8  # chance, whenever the service asked last has shown its fault
DISMISSES = 0.5  # chance, if the opening had no alert and the service asked last showed no fault
BLAMES_LOUDEST = 0.5  # chance; otherwise it blames the service asked last
# One draw in [0, 1) decides which service it asks next. Below ASKS_LOUDEST, the first time only, it
# asks the loudest; else, below FOLLOWS_REPORT, one that the last one reports errors from; else any.
ASKS_LOUDEST, FOLLOWS_REPORT = 0.35, 0.65


class NovicePolicy(ReadingPolicy):
    """Asks at random until a service shows a fault or its patience ends. It blames the loudest half
    of the time, and often dismisses an incident that showed nothing. All draws use one stream.
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
                return self._ask(self._whom_to_ask())
        if self._quiet and not informed and random() < DISMISSES:
            return [Action("classify_severity", (self.severity(),)), Action("ignore")]
        return self.answer(self._loudest if random() < BLAMES_LOUDEST else self._asked[-1])

    def _ask(self, service: str) -> list[Action]:
        self._asked.append(service)
        return [Action("request_more_logs", (service,))]

    def _whom_to_ask(self) -> str:
        """A service not asked yet; once all were asked, the one that looks slowest."""
        drawn = self._random.random()
        source = self._asked[-1] if self._asked else self._loudest
        if not self._asked and drawn < ASKS_LOUDEST:
            return self._loudest
        unasked = [name for name in self.topology.names if name not in self._asked]
        if not unasked:
            return self.slowest()
        lines = self.readings[source]
        reported = [one.subject for one in lines if one.kind == "callee" and one.subject in unasked]
        if reported and drawn < FOLLOWS_REPORT:
            return self._random.choice(reported)
        return self._random.choice(unasked)
