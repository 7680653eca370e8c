"""Scripted policies. A language model or a human is one more: see `policy`.

They read log lines by their text alone (`wording.read_line`) and know the runbook
(`faults.FAULTS`). Only `oracle` is told the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product
from random import Random

from ..play.actions import ACTION_TYPES, Action, action_values
from ..play.episode import BaseEpisode, Episode, final_score
from ..play.observation import Observation
from ..play.scoring import single_faults
from ..world.call_graph import TEAMS, CallGraph
from ..world.faults import FAULTS, Fault
from ..world.incidents import Incident, sample_incident
from ..world.tasks import SEVERITIES, Task, check_task
from ..world.topology import DEFAULT_TOPOLOGY, Topology, simulated
from ..world.wording import Reading, read_line
from .policy import Policy

TROUBLE_KINDS = ("proof", "hint", "callee", "own")  # lines by which a service complains
EDGE_ERRORS_P1 = 5.0  # per cent of user requests; the definition of P1
# What a careful reader of noisy metrics takes for real: per cent, and times the usual latency.
EDGE_ERRORS_P2, REAL_SLOWDOWN = 0.4, 1.25


class FunctionPolicy(Policy):
    """Any function as a policy.

    Args:
        function: takes the call graph and the observations so far (the opening first) and returns
            the next action.
        name: shown in results.
    """

    def __init__(
        self, function: Callable[[CallGraph, Sequence[Observation]], Action], name: str
    ) -> None:
        self.function, self.name = function, name

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._topology, self._observations = topology, [observation]

    def act(self) -> Action:
        return self.function(self._topology, tuple(self._observations))

    def see(self, observation: Observation) -> None:
        self._observations.append(observation)


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
    """The same script whatever happens."""

    name = "constant"

    def __init__(self, script: Sequence[Action]) -> None:
        self.script = tuple(script)

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self._rest = iter(self.script)

    def act(self) -> Action:
        return next(self._rest, Action("resolve"))


class TrainedConstantPolicy(ConstantPolicy):
    """For each task, the open-loop script that scores best on `train`: `best_constant_script`."""

    def __init__(self, incidents: int = 100) -> None:
        self._incidents = incidents

    def prepare(self, task: str | Task, split: str) -> None:
        self._train(check_task(task), DEFAULT_TOPOLOGY)

    def _open(self, episode: BaseEpisode) -> None:
        incident = episode.incident
        # Random call graphs are not trained on one by one: there, the default graph's script plays.
        random = incident.split == "unseen_topology"
        graph = DEFAULT_TOPOLOGY if random else simulated(incident.topology)
        assert incident.task is not None  # a simulated incident has settings
        self.script = self._train(incident.task, graph)
        super()._open(episode)

    def _train(self, task: Task, topology: Topology) -> tuple[Action, ...]:
        graph = None if task.services else topology
        return tuple(best_constant_script(task, self._incidents, graph))


class OraclePolicy(Policy):
    """Knows the answer: the top of the scale."""

    name = "oracle"

    def _open(self, episode: BaseEpisode) -> None:
        incident = episode.incident
        if not isinstance(incident, Incident):
            raise ValueError(
                "oracle needs the truth, which neither a server nor a real incident tells; "
                "choose another policy"
            )
        script: list[Action] = [Action("classify_severity", (incident.severity,))]
        if incident.injection is None:
            script.append(Action("ignore"))
        else:
            for fault in single_faults(incident):
                script += [
                    Action("identify_root_cause", (str(fault.root),)),
                    Action("remediate", (str(fault.remedy), str(fault.root))),
                    Action("escalate", (str(fault.team),)),
                ]
            script.append(Action("resolve"))
        self._rest = iter(script)

    def act(self) -> Action:
        return next(self._rest)


class ReadingPolicy(Policy):
    """What the policies that read have in common: memory of everything read, and the closing
    answers.
    """

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        self.topology, self.observation = topology, observation
        self.edges = [topology.names[position] for position in topology.edges]
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
                # PostgreSQL reports its troubles at level LOG, so the level alone does not tell who
                # complains.
                self.errors[service] += line.startswith("ERROR") or reading.kind in TROUBLE_KINDS
        for alert in observation.alerts or ():
            if alert.service in self.edges and alert.metric == "errors":
                self.edge_errors.append(alert.value)
        for row in observation.metrics or ():
            if row.slowdown is not None:
                self.slowdowns[row.service].append(row.slowdown)
            if row.service in self.edges and row.errors is not None:
                self.edge_errors.append(row.errors)

    def act(self) -> Action:
        if not self.queue:
            self.queue = self.decide()
        return self.queue.pop(0)

    def decide(self) -> list[Action]:
        """The next actions, at least one."""
        raise NotImplementedError

    def loudest(self) -> str:
        """The service that has complained most so far; the earlier in the graph among equals."""
        return max(self.topology.names, key=lambda name: self.errors[name])

    def slowdown(self, *services: str) -> float:
        """Mean latency in their metrics seen so far, in times the usual; 0 before any."""
        seen = [value for name in services for value in self.slowdowns[name]]
        return sum(seen) / max(1, len(seen))

    def slowest(self) -> str:
        """The service of the highest `slowdown`; the earlier in the graph among equals."""
        return max(self.topology.names, key=self.slowdown)

    def severity(self) -> str:
        """P1 to P3 from what was seen of the edge."""
        errors = max(self.edge_errors, default=0.0)
        slowdown = self.slowdown(*self.edges)
        if errors > EDGE_ERRORS_P1:
            return "P1"
        return "P2" if errors > EDGE_ERRORS_P2 or slowdown > REAL_SLOWDOWN else "P3"

    def proven(self, service: str) -> bool:
        """Whether a line of the service has proved a fault there."""
        return any(reading.kind == "proof" for reading in self.readings[service])

    def fault_at(self, service: str) -> Fault | None:
        """The fault that the service's lines prove; failing that, one they hint at; else None."""
        proofs = Counter(r.subject for r in self.readings[service] if r.kind == "proof")
        if proofs:
            return FAULTS[proofs.most_common(1)[0][0]]
        hints = Counter(r.subject for r in self.readings[service] if r.kind == "hint")
        if hints:
            remedy = hints.most_common(1)[0][0]
            return next(
                fault
                for fault in FAULTS.values()
                if fault.remedy == remedy and fault.can_strike(self.topology.service(service))
            )
        return None

    def answer(self, service: str) -> list[Action]:
        """Blame `service`; fix it and page by the runbook.

        With nothing read there, touch nothing and page its owner.
        """
        fault, at = self.fault_at(service), self.topology.service(service)
        team = fault.owner_at(at) if fault else at.owner
        fix: list[Action] = [Action("remediate", (fault.remedy, service))] if fault else []
        # Nobody knows the team of a service of unknown kind.
        page: list[Action] = [Action("escalate", (team,))] if team else []
        return [
            Action("classify_severity", (self.severity(),)),
            Action("identify_root_cause", (service,)),
            *fix,
            *page,
            Action("resolve"),
        ]


class LoudestPolicy(ReadingPolicy):
    """Blames whoever logs most errors in the first batch, after reading there what the fix is."""

    name = "loudest"

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        super().begin(topology, observation)
        self._blamed = self.loudest()
        self._asked = False

    def decide(self) -> list[Action]:
        if not self._asked:
            self._asked = True
            return [Action("request_more_logs", (self._blamed,))]
        return self.answer(self._blamed)


class TracePolicy(ReadingPolicy):
    """Walks down the call graph from the edge, to the callee that each complains of most."""

    name = "trace"
    patience = 2  # times it asks one service before it settles for what it has

    def begin(self, topology: CallGraph, observation: Observation) -> None:
        super().begin(topology, observation)
        self._at = self.edges[0]
        self._asked: Counter[str] = Counter()

    def decide(self) -> list[Action]:
        while True:
            if self.proven(self._at):
                return self.answer(self._at)
            callee = self._complaint(self._at)
            if callee is not None:
                self._at = callee
            elif self._asked[self._at] < self.patience and self._steps_left() > len(
                self.answer(self._at)
            ):
                self._asked[self._at] += 1
                return [Action("request_more_logs", (self._at,))]
            elif self.fault_at(self._at):
                return self.answer(self._at)
            else:
                suspect = self._next_suspect()
                if suspect is None:
                    return [Action("classify_severity", ("P3",)), Action("ignore")]
                self._at = suspect

    def _steps_left(self) -> int:
        return self.observation.max_steps - self.observation.step

    def _complaint(self, service: str) -> str | None:
        """The callee that `service` names most, unless it was asked to exhaustion already."""
        named = Counter(
            reading.subject for reading in self.readings[service] if reading.kind == "callee"
        )
        return next(
            (
                name
                for name, _ in named.most_common()
                if name in self.topology.position and self._asked[name] < self.patience
            ),
            None,
        )

    def _next_suspect(self) -> str | None:
        """With no complaint to follow: a service not asked yet, one with telling lines first."""
        if self._steps_left() <= len(self.answer(self._at)):
            return None
        unasked = [name for name in self.topology.names if not self._asked[name]]
        telling = [name for name in unasked if self.fault_at(name) or self._complaint(name)]
        return next(iter(telling or unasked), None)


def constant_scripts(task: str | Task, topology: Topology | None = None) -> list[list[Action]]:
    """Candidate open-loop scripts of a task: full answers in every combination, partial ones, and
    ignoring.
    """
    topology = sample_incident(task, "train", 0, topology).topology
    scripts: list[list[Action]] = [
        [Action("classify_severity", ("P3",)), Action("ignore")],
        [Action("resolve")],
        [Action("ignore")],
    ]
    for severity, team in product(SEVERITIES, TEAMS):
        start, page = Action("classify_severity", (severity,)), Action("escalate", (team,))
        end = Action("resolve")
        scripts.append([start, page, end])
        for service in topology.services:
            remedies = sorted(
                {fault.remedy for fault in FAULTS.values() if fault.can_strike(service)}
            )
            for remedy in remedies:
                fix = Action("remediate", (remedy, service.name))
                blame = Action("identify_root_cause", (service.name,))
                scripts.append([start, blame, fix, page, end])
                scripts.append([start, fix, page, end])
                scripts.append([start, blame, page, end])
    return scripts


def mean_score_on(policy: Policy, incidents: Sequence[Incident]) -> float:
    """Mean total score of a policy on these incidents; they are not changed and may be played
    again.
    """
    episodes = [Episode(incident) for incident in incidents]
    policy.play(episodes)
    return sum(final_score(episode).total for episode in episodes) / len(episodes)


def mean_score(policy: Policy, task: str, split: str, indices: Iterable[int]) -> float:
    """Mean total score of a policy over incidents."""
    return mean_score_on(policy, [sample_incident(task, split, index) for index in indices])


@cache
def best_constant_script(
    task: str | Task, incidents: int = 100, topology: Topology | None = None
) -> list[Action]:
    """The open-loop script of highest mean score on `train`, by successive halving over
    `constant_scripts`.
    """
    sampled = [sample_incident(task, "train", index, topology) for index in range(incidents)]
    scripts, few = constant_scripts(task, topology), 10
    while len(scripts) > 1:
        scripts.sort(key=lambda script: -mean_score_on(ConstantPolicy(script), sampled[:few]))
        if few >= incidents:
            break
        scripts, few = scripts[: max(1, len(scripts) // 4)], few * 3
    return scripts[0]
