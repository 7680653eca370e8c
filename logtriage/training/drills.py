"""What the base model is taught: drills in reading, and the episodes of a junior on-call; and those
of a teacher, for the track that is taught before it is rewarded.

None of them ever sees the right answer of an incident: all look only at what an agent sees, and at
the runbook (`faults.FAULTS`: what a line proves, which remedy and team go with it), which is true
in the simulated world.

Every example is a pure function of its number, and the order of its draws is part of that: a draw
that is added, left out or moved changes the text of all examples, and with it the base model.
"""

from __future__ import annotations

from random import Random

from ..agents.junior import JuniorPolicy
from ..agents.scripted import Action, ReadingPolicy, TracePolicy
from ..play.conversation import Message, opening_messages, tool_call
from ..play.episode import Episode, Observation
from ..play.prompts import render
from ..world.incidents import sample_incident

# Slices of `train`, far from GRPO's: `TrainingConfig` refuses what would reach the first of them.
DRILL_INDEX, JUNIOR_INDEX, HOLDOUT_INDEX = 1_000_000, 2_000_000, 3_000_000
TEACHER_INDEX = 4_000_000
TASK_SHARES = {"single_crash": 0.45, "cascading_failure": 0.3, "silent_degradation": 0.25}

DRILL_PROMPT = "Read what the cluster prints and say what it means."
KIND_SHARES = {"lines": 0.35, "blocks": 0.35, "edges": 0.2, "opening": 0.1}  # of the drills
QUESTIONS = {"lines": 8, "blocks": 4, "edges": 8, "opening": 1}  # of a drill, by its kind
# Kinds of line (see `reading.Reading`) that a question about lines must contain one of, by share of
# the questions. Drawn blindly, nearly all would say nothing: lines that tell are rare, and reading
# those is the point.
SOUGHT_SHARES = {(): 0.46, ("proof", "hint"): 0.34, ("callee",): 0.2}
LINE_ROUNDS = 2  # times that each service is looked at for one, when a question is a single line


def drill(index: int) -> list[Message]:
    """One reading exercise: short questions about text of `train`, answered from that text and the
    runbook alone.

    Questions are log lines, blocks of one service's lines, metric rows of the edge, and openings.
    """
    random = Random(f"drill/{index}")
    kind = random.choices(list(KIND_SHARES), list(KIND_SHARES.values()))[0]
    messages = [{"role": "system", "content": DRILL_PROMPT}]
    for question in range(QUESTIONS[kind]):
        # ten incidents are set aside for a drill, of which it uses as many as it has questions
        incident = sample_incident(_draw_task(random), "train", DRILL_INDEX + 10 * index + question)
        episode = Episode(incident)
        if kind in ("lines", "blocks"):
            text, answer = _question_of_logs(kind, episode, random)
        else:
            text, answer = _question_of_severity(kind, episode)
        messages += [{"role": "user", "content": text}, {"role": "assistant", **answer}]
    return messages


def _question_of_severity(kind: str, episode: Episode) -> tuple[str, Message]:
    """How bad it is: from a row of the edge's metrics, or from a whole opening, where it is also
    asked who is the loudest.
    """
    topology, reader = episode.incident.topology, ReadingPolicy()
    if kind == "opening":
        reader.begin(topology, episode.opening)
        content = f"loudest {reader.loudest()}"
        text = render(episode.opening, topology)
    else:
        edge = [episode.telemetry.metric(0)]  # the edge is the first service of the default graph
        observation = Observation(0, 0, alerts=episode.opening.alerts, metrics=edge)
        reader.begin(topology, observation)
        content, text = "", render(observation)
    return text, _calls(content, ("classify_severity", reader.severity()))


def _question_of_logs(kind: str, episode: Episode, random: Random) -> tuple[str, Message]:
    """What a line, or a block of lines, of one service says.

    Services are looked at in random order until one has a line of the kind that is sought; the last
    one stands in when none has.
    """
    topology, reader = episode.incident.topology, ReadingPolicy()
    positions = list(range(len(topology.names))) * (LINE_ROUNDS if kind == "lines" else 1)
    random.shuffle(positions)
    sought = random.choices(list(SOUGHT_SHARES), list(SOUGHT_SHARES.values()))[0]
    for position in positions if sought else positions[:1]:
        service = topology.names[position]
        if kind == "lines":
            lines = episode.telemetry.lines(position)
            observation, text = Observation(0, 0, lines=lines), lines[0]
        else:
            observation = episode.act("request_more_logs", service)
            text = render(observation)
        reader.begin(topology, observation)
        if any(reading.kind in sought for reading in reader.readings[service]):
            break
    return text, _meaning(reader, service)


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


def _calls(content: str, *actions: Action) -> Message:
    return {"content": content, "tool_calls": [tool_call(action) for action in actions]}


def junior_episode(index: int) -> list[Message]:
    """One episode of the junior, as a conversation."""
    random = Random(f"junior/{index}")
    policy = JuniorPolicy(random)
    incident = sample_incident(_draw_task(random), "train", JUNIOR_INDEX + index)
    return transcript(policy, Episode(incident))


def teacher_episode(index: int) -> list[Message]:
    """One episode of `trace`, as a conversation: what the track that is taught imitates."""
    random = Random(f"teacher/{index}")
    incident = sample_incident(_draw_task(random), "train", TEACHER_INDEX + index)
    return transcript(TracePolicy(), Episode(incident))


def transcript(policy: ReadingPolicy, episode: Episode) -> list[Message]:
    """Play an episode turn by turn and write it down as a conversation; what a policy decides at
    once is one turn.
    """
    topology = episode.incident.topology
    policy.begin(topology, episode.opening)
    messages = opening_messages(render(episode.opening, topology))
    while not episode.done:
        turn = policy.decide()
        calls = [tool_call(action) for action in turn]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        for action in turn:
            observation = episode.act(*action)
            policy.see(observation)
            messages.append({"role": "tool", "name": action[0], "content": render(observation)})
            if episode.done:
                break
    # Nobody reads the last answers: the conversation ends with what is to be imitated.
    while messages[-1]["role"] == "tool":
        messages.pop()
    return messages


def _draw_task(random: Random) -> str:
    return random.choices(list(TASK_SHARES), list(TASK_SHARES.values()))[0]
