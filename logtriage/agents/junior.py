"""What the base model is taught: drills in reading, and the episodes of a junior on-call.

Neither ever sees the right answer of an incident: both look only at what an agent sees, and at the
runbook (`faults.FAULTS`: what a line proves, which remedy and team go with it), which is true in
the simulated world.
"""

from __future__ import annotations

from random import Random
from typing import Any

from ..play.episode import Episode, Observation
from ..play.prompts import render
from ..world.incidents import sample_incident
from ..world.topology import Topology
from .language_models import Message, opening_messages
from .scripted import Action, ReadingPolicy

DRILL_PROMPT = "Read what the cluster prints and say what it means."
DRILL_INDEX, JUNIOR_INDEX, HOLDOUT_INDEX = (
    1_000_000,
    2_000_000,
    3_000_000,
)  # slices of `train`, far from GRPO's
TASK_SHARES = {"single_crash": 0.45, "cascading_failure": 0.3, "silent_degradation": 0.25}

SOUGHT = {
    (): 0.46,
    ("proof", "hint"): 0.34,
    ("callee",): 0.2,
}  # kinds of line that a question is made of, by share
LINE_ROUNDS = 2  # times each service is looked at for one

ARGUMENTS = {
    "classify_severity": ("severity",),
    "identify_root_cause": ("service",),
    "escalate": ("team",),
    "remediate": ("remedy", "service"),
    "request_more_logs": ("service",),
    "resolve": (),
    "ignore": (),
}


class JuniorPolicy(ReadingPolicy):
    """Reads well, knows the runbook, and blames the loudest. Wanders with the logs it asks for.

    It asks until something tells it what is wrong, or its patience ends; then it mostly blames the
    loudest anyway. With no alert and nothing telling, it often goes back to bed.

    Args:
        random: the stream of its whims.
    """

    name = "junior"

    def __init__(self, random: Random) -> None:
        self._random = random

    def begin(self, topology: Topology, observation: Observation) -> None:
        super().begin(topology, observation)
        self._loudest = self.loudest()
        self._quiet = not observation.alerts
        self._patience = self._random.choices((1, 2, 3, 4), (0.15, 0.35, 0.3, 0.2))[0]
        self._asked: list[str] = []

    def decide(self) -> list[Action]:
        random = self._random.random
        informed = bool(self._asked) and self.fault_at(self._asked[-1]) is not None
        if len(self._asked) < self._patience and not (informed and random() < 0.8):
            self._asked.append(self._whom_to_ask())
            return [("request_more_logs", self._asked[-1])]
        if self._quiet and not informed and random() < 0.5:
            return [("classify_severity", self.severity()), ("ignore", "")]
        return self.answer(self._loudest if random() < 0.6 else self._asked[-1])

    def _whom_to_ask(self) -> str:
        """At first the loudest or whom it complains of, later whom the last one complains of; often
        just anybody.
        """
        whim = self._random.random()
        source = self._asked[-1] if self._asked else self._loudest
        named = [reading.subject for reading in self.readings[source] if reading.kind == "callee"]
        if not self._asked and whim < 0.35:
            return self._loudest
        if named and whim < 0.65:
            return self._random.choice(named)
        return self._random.choice(self.topology.names)


def tool_call(action: Action) -> dict[str, Any]:
    """An action as a chat message's tool call."""
    action_type, value = action[:2]
    values = value.split(":") if action_type == "remediate" else [value]
    arguments = dict(zip(ARGUMENTS[action_type], values, strict=False))
    return {"type": "function", "function": {"name": action_type, "arguments": arguments}}


def transcript(policy: ReadingPolicy, episode: Episode) -> list[Message]:
    """Play an episode turn by turn and write it down as a conversation; what a policy decides at
    once is one turn.
    """
    topology = episode.incident.topology
    policy.begin(topology, episode.opening)
    messages = opening_messages(render(episode.opening, topology))
    while not episode.done:
        turn = policy.decide()
        messages.append(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [tool_call(action) for action in turn],
            }
        )
        for action in turn:
            observation = episode.act(*action)
            policy.see(observation)
            messages.append({"role": "tool", "name": action[0], "content": render(observation)})
            if episode.done:
                break
    while messages[-1]["role"] == "tool":
        messages.pop()
    return messages


# -- the drills
# -------------------------------------------------------------------------------------------------


def drill(index: int) -> list[Message]:
    """One reading exercise: short questions about text of `train`, answered from that text and the
    runbook alone.

    Questions are log lines, blocks of one service's lines, metric rows of the edge, and openings.
    """
    random = Random(f"drill/{index}")
    kind = random.choices(("lines", "blocks", "edges", "opening"), (0.35, 0.35, 0.2, 0.1))[0]
    count = {"lines": 8, "blocks": 4, "edges": 8, "opening": 1}[kind]
    messages = [{"role": "system", "content": DRILL_PROMPT}]
    for question in range(count):
        incident = sample_incident(_draw_task(random), "train", DRILL_INDEX + 10 * index + question)
        text, answer = _question(kind, Episode(incident), random)
        messages += [{"role": "user", "content": text}, {"role": "assistant", **answer}]
    return messages


def _question(kind: str, episode: Episode, random: Random) -> tuple[str, Message]:
    topology, telemetry = episode.incident.topology, episode.telemetry
    reader = ReadingPolicy()
    if kind in ("edges", "opening"):
        reader.begin(topology, episode.opening)
        if kind == "opening":
            answer = _calls(f"loudest {reader.loudest()}", ("classify_severity", reader.severity()))
            return render(episode.opening, topology), answer
        observation = Observation(
            0, 0, alerts=episode.opening.alerts, metrics=[telemetry.metric(0)]
        )
        reader.begin(topology, observation)
        return render(observation), _calls("", ("classify_severity", reader.severity()))
    # Telling lines are rare, and reading them is the point: every other time, look on until one is
    # found.
    positions = list(range(len(topology.names))) * (LINE_ROUNDS if kind == "lines" else 1)
    random.shuffle(positions)
    sought = random.choices(list(SOUGHT), list(SOUGHT.values()))[0]
    for position in positions if sought else positions[:1]:
        service = topology.names[position]
        if kind == "lines":
            observation = Observation(0, 0, lines=telemetry.lines(position))
            text = observation.lines[0]
        else:
            observation = episode.act("request_more_logs", service)
            text = render(observation)
        reader.begin(topology, observation)
        if any(reading.kind in sought for reading in reader.readings[service]):
            break
    return text, _meaning(reader, service)


def _calls(content: str, *actions: Action) -> Message:
    return {"content": content, "tool_calls": [tool_call(action) for action in actions]}


def _meaning(reader: ReadingPolicy, service: str) -> Message:
    """What the runbook says to the lines of `service`, in calls; else whom they complain of; else
    nothing.

    Lines that only hint name a remedy and no team.
    """
    fault = reader.fault_at(service)
    if fault is not None:
        fix: Action = ("remediate", f"{fault.remedy}:{service}")
        if any(reading.kind == "proof" for reading in reader.readings[service]):
            return _calls("", fix, ("escalate", fault.owner_at(reader.topology.service(service))))
        return _calls("", fix)
    named = [reading.subject for reading in reader.readings[service] if reading.kind == "callee"]
    return {"content": f"see {named[-1]}" if named else "nothing"}


def junior_episode(index: int) -> list[Message]:
    """One episode of the junior, as a conversation."""
    random = Random(f"junior/{index}")
    return transcript(
        JuniorPolicy(random),
        Episode(sample_incident(_draw_task(random), "train", JUNIOR_INDEX + index)),
    )


def _draw_task(random: Random) -> str:
    return random.choices(list(TASK_SHARES), list(TASK_SHARES.values()))[0]
