"""Scripted policies, from `random` to `oracle`.

`loudest`, `trace` and the novice read log lines by their text alone (`wording.read_line`) and know
the runbook (`faults.FAULTS`). Only `oracle` is given the answer of the incident that it plays.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from ..play.actions import ACTION_TYPES, Action, action_values
from ..play.episode import BaseEpisode
from ..play.observation import Observation
from ..world.call_graph import CallGraph
from ..world.faults import FAULTS, Fault, faults_at
from ..world.incidents import Incident
from ..world.wording import Reading, read_line
from .policy import Policy

ERROR_KINDS = ("proof", "hint", "callee", "own")  # kinds of lines that report an error
EDGE_ERRORS_P1 = 5.0  # per cent of user requests; the definition of P1
# What a careful reader of noisy metrics takes for real: per cent, and multiples of normal latency.
EDGE_ERRORS_P2, REAL_SLOWDOWN = 0.4, 1.25
# Of the scripts that read nothing, those that score best on `train`, on the default call graph:
# tests/core/policies/test_scripted.py searches for them.
BEST_SCRIPTS = {
    "single_crash": "classify_severity:P1 identify_root_cause:email-queue escalate:sre resolve",
    "cascading_failure": "classify_severity:P1 identify_root_cause:user-db escalate:dba resolve",
    "silent_degradation": "classify_severity:P3 ignore",
}


def answers(
    severity: str,
    blamed: str | None,
    fix: tuple[str, str] | None,
    team: str | None,
    confidence: float | None = None,
) -> list[Action]:
    """The actions that give these answers (`fix`: remedy and service) and close the incident."""
    actions = [Action("classify_severity", (severity,))]
    if blamed:
        actions.append(Action("identify_root_cause", (blamed,), confidence))
    if fix:
        actions.append(Action("remediate", fix))
    if team:
        actions.append(Action("escalate", (team,)))
    return [*actions, Action("resolve")]


class RandomPolicy(Policy):
    """Uniform over the seven action types, then over the values of that type."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(f"policy/random/{seed}")

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._values = action_values(topology)

    def act(self) -> Action:
        action_type = self._random.choice(ACTION_TYPES)
        return Action.parse(action_type, self._random.choice(self._values[action_type]))


class ConstantPolicy(Policy):
    """The same script on every incident."""

    name = "constant"

    def __init__(self, script: Sequence[Action] = ()) -> None:
        self.script = tuple(script)

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._rest = iter(self.script)

    def act(self) -> Action:
        return next(self._rest, Action("resolve"))


class BestConstantPolicy(ConstantPolicy):
    """Plays a task's script of `BEST_SCRIPTS`; of a task without one, it resolves at once."""

    def open(self, episode: BaseEpisode) -> None:
        incident = episode.incident
        task = self.simulated_task(incident.task or incident.task_name)
        self.script = tuple(map(Action.from_text, BEST_SCRIPTS.get(task.name, "").split()))
        super().open(episode)


class OraclePolicy(ConstantPolicy):
    """Is given the answer, and so marks the top of the scale."""

    name = "oracle"

    def open(self, episode: BaseEpisode) -> None:
        incident = episode.incident
        if not isinstance(incident, Incident):
            raise ValueError(
                "oracle needs the truth, which neither a server nor a real incident has; "
                "choose another policy"
            )
        if incident.injection:
            root, remedy = str(incident.root), str(incident.remedy)
            self.script = tuple(answers(incident.severity, root, (remedy, root), incident.team))
        else:
            self.script = (Action("classify_severity", (incident.severity,)), Action("ignore"))
        super().open(episode)


class ReadingPolicy(Policy):
    """Base of policies that read logs: remembers everything it read, and answers by the runbook."""

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self.topology, self.observation = topology, observation
        self.entries = [topology.names[position] for position in topology.entry_services]
        self.readings: dict[str, list[Reading]] = {name: [] for name in topology.names}
        self.errors: Counter[str] = Counter()
        self.edge_errors: list[float] = []
        self.slowdowns: dict[str, list[float]] = {name: [] for name in topology.names}
        self.queue: list[Action] = []
        self.see(observation)

    def see(self, observation: Observation) -> None:
        self.observation = observation
        for line in observation.lines or ():
            service, reading = read_line(line)
            if service in self.readings:
                self.readings[service].append(reading)
                # PostgreSQL reports errors at level LOG, so the level alone is not enough.
                self.errors[service] += line.startswith("ERROR") or reading.kind in ERROR_KINDS
        for alert in observation.alerts or ():
            if alert.service in self.entries and alert.metric == "errors":
                self.edge_errors.append(alert.value)
        for row in observation.metrics or ():
            if row.slowdown is not None:
                self.slowdowns[row.service].append(row.slowdown)
            if row.service in self.entries and row.errors is not None:
                self.edge_errors.append(row.errors)

    def act(self) -> Action:
        if not self.queue:
            self.queue = self.decide()
        return self.queue.pop(0)

    def decide(self) -> list[Action]:
        """The next actions, at least one."""
        raise NotImplementedError

    def loudest(self) -> str:
        """The service that has logged most errors so far; in a tie, the first in the graph."""
        return max(self.topology.names, key=lambda name: self.errors[name])

    def slowdown(self, *services: str) -> float:
        """Mean latency in the metrics seen so far, as a multiple of normal; 0 if there are none."""
        seen = [value for name in services for value in self.slowdowns[name]]
        return sum(seen) / max(1, len(seen))

    def severity(self) -> str:
        """P1 to P3 from what was seen of the entry services."""
        errors = max(self.edge_errors, default=0.0)
        if errors > EDGE_ERRORS_P1:
            return "P1"
        slow = self.slowdown(*self.entries) > REAL_SLOWDOWN
        return "P2" if errors > EDGE_ERRORS_P2 or slow else "P3"

    def proven(self, service: str) -> bool:
        """Whether a line of the service has proved a fault there."""
        return bool(self.subjects(service, "proof"))

    def subjects(self, service: str, kind: str) -> list[str]:
        """What the service's lines of that kind are about, the most frequent first."""
        readings = [line for line in self.readings[service] if line.kind == kind]
        counts = Counter(line.subject for line in readings)
        return [subject for subject, _ in counts.most_common()]

    def fault_at(self, service: str) -> Fault | None:
        """The fault that the service's lines prove, or else one that they hint at, or else None."""
        proofs, hints = self.subjects(service, "proof"), self.subjects(service, "hint")
        if proofs:
            return FAULTS[proofs[0]]
        if not hints:
            return None
        possible = faults_at(self.topology.service(service))
        return next(fault for fault in possible if fault.remedy == hints[0])

    def answer(self, service: str) -> list[Action]:
        """Blame `service`; fix and page by the runbook, or if no fault was read, page its owner."""
        fault, at = self.fault_at(service), self.topology.service(service)
        if fault is None:  # a service of unknown kind has no known owner
            return answers(self.severity(), service, None, at.owner)
        return answers(self.severity(), service, (fault.remedy, service), fault.owner_at(at))


class LoudestPolicy(ReadingPolicy):
    """Blames the service that logs most errors in the opening; asks it once to learn the fix."""

    name = "loudest"

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        super().begin(topology, observation)
        self._blamed = self.loudest()
        self.queue = [Action("request_more_logs", (self._blamed,))]

    def decide(self) -> list[Action]:
        return self.answer(self._blamed)


class TracePolicy(ReadingPolicy):
    """Walks down the calls from an entry service, to the callee with most reported errors."""

    name = "trace"
    patience = 2  # times it asks one service

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        super().begin(topology, observation)
        self._at = self.entries[0]
        self._asked: Counter[str] = Counter()

    def decide(self) -> list[Action]:
        passed: set[str] = set()  # two services may complain of each other
        while not self.proven(self._at):
            callee = self._reported(self._at)
            if callee is not None and callee not in passed:
                passed.add(self._at)
                self._at = callee
                continue
            if self._asked[self._at] < self.patience and self._may_ask():
                self._asked[self._at] += 1
                return [Action("request_more_logs", (self._at,))]
            if self.fault_at(self._at):
                break
            suspect = self._next_suspect()
            if suspect is None:
                return [Action("classify_severity", ("P3",)), Action("ignore")]
            self._at = suspect
            passed.clear()
        return self.answer(self._at)

    def _may_ask(self) -> bool:
        """Whether enough steps are left for a question and an answer."""
        left = self.observation.max_steps - self.observation.step
        return left > len(self.answer(self._at))

    def _reported(self, service: str) -> str | None:
        """The callee that `service` reports most errors from, among those it may ask again."""
        for name in self.subjects(service, "callee"):
            if name in self.topology.position and self._asked[name] < self.patience:
                return name
        return None

    def _next_suspect(self) -> str | None:
        """If no callee can be followed: an unasked service, preferably with informative lines."""
        if not self._may_ask():
            return None
        unasked = [name for name in self.topology.names if not self._asked[name]]
        informative = [name for name in unasked if self.fault_at(name) or self._reported(name)]
        return next(iter(informative or unasked), None)
