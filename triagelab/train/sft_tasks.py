"""The SFT tasks of the base model: short ones in reading, episodes of a novice on-call and, for the
track `expert`, episodes of an expert.

None of them uses the right answer of an incident. They use only what an agent sees, and the runbook
(`faults.FAULTS`), which is true in the simulated world. The expert also knows how incidents are
drawn. Every example is a function of its number alone: if a draw or the name of a random stream
changes, so does the base model. In all of them services have path names, and no line of the split
`unseen_wording` occurs.
"""

import re
from collections.abc import Container
from functools import cache, cached_property
from itertools import chain
from random import Random
from typing import Any

from logtriage.play.actions import Action
from logtriage.play.conversation import Message, opening_messages, tool_call
from logtriage.play.episode import Episode, incident_id
from logtriage.play.observation import Observation, call_graph_line, render
from logtriage.play.renaming import renamed_graph, whole_names
from logtriage.play.tools import ToolSession
from logtriage.policies.novice import NovicePolicy
from logtriage.policies.scripted import REAL_SLOWDOWN, ReadingPolicy
from logtriage.world.call_graph import CallGraph
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import Task, check_task
from logtriage.world.topology import random_topology
from logtriage.world.wording import VARIED_BOOKS, read_line

from ..language_models.path_names import incident_names, path_names
from ..reference.belief import BeliefPolicy

# Slices of `train`, far from GRPO's: `TrainingConfig` refuses to reach the first of them.
SFT_TASK_INDEX, NOVICE_INDEX = 1_000_000, 2_000_000
EXPERT_INDEX = 4_000_000
# Shares of the incidents' tasks among reading tasks, and among imitated episodes.
READING_SHARES = {"single_crash": 0.45, "cascading_failure": 0.3, "silent_degradation": 0.25}
EPISODE_SHARES = {"single_crash": 0.25, "cascading_failure": 0.25, "silent_degradation": 0.5}

READING_PROMPT = "Read what the cluster prints and say what it means."
# Kind of reading task to its share and its number of questions.
KINDS = {
    "lines": (0.42, 8),
    "blocks": (0.21, 4),
    "edges": (0.06, 8),
    "opening": (0.04, 1),
    "graph": (0.1, 6),
    "slow": (0.1, 5),
    "rounds": (0.07, 0),
}
# Kinds of line (see `wording.Reading`) to a share of the questions about lines, which look for a
# line of one of these kinds. Lines drawn at random would nearly all say nothing.
SOUGHT_SHARES = {(): 0.46, ("proof", "hint"): 0.34, ("callee",): 0.2}

PLAIN_SHARE = 0.4  # of examples; the others vary in one of these ways, equally often
VARIATIONS = ((True, False), (False, True), (True, True))  # (random call graph, varied wording)
REWORDED = 0.6  # of questions about lines: there are many words, and these tasks are cheap
# Noise on log lines in varied wording, in imitated episodes: the share of lines that stay clear;
# in the others, of unknown and of missing words; of lines of chatter without any known word.
CLEAR_LINES, UNKNOWN_WORDS, MISSING_WORDS, UNKNOWN_LINES = 0.5, 0.2, 0.2, 0.3
MOST_UNKNOWN = 0.8  # share of words that are replaced by made-up ones, at most
CHATTER, PUNCTUATION = ("normal", "benign"), ",.:;()'\""


def open_varied(task: str | Task, split: str, index: int) -> Episode:
    """Open the episode of an example; for `PLAIN_SHARE` of the indices, that of `Episode.open`.
    `ValueError` for a split other than train: no result is measured on these episodes.
    """
    if split != "train":
        raise ValueError(f"varied episodes are for training alone; choose split train, not {split}")
    random = Random(f"varied/{check_task(task).name}/{index}")
    if random.random() < PLAIN_SHARE:
        return Episode(sample_incident(task, split, index))
    new_graph, new_words = random.choice(VARIATIONS)
    graph = random_topology(random) if new_graph else None
    return Episode(sample_incident(task, split, index, graph, new_words))


def sft_task(index: int) -> list[Message]:
    """A task in reading: short questions about text of `train`, which that text and the runbook
    answer, or the task to ask every service once.
    """
    random = Random(f"drill/{index}")
    kind = random.choices(list(KINDS), [share for share, _ in KINDS.values()])[0]
    # each has ten incidents to itself, and uses at most one per question
    first = SFT_TASK_INDEX + 10 * index
    if kind == "rounds":
        return _rounds(_open(random, first), random)
    if kind == "graph":
        exchange = _questions_of_a_graph(random, index)
    else:
        exchange = []
        for at in range(first, first + KINDS[kind][1]):
            episode = _open(random, at, kind == "lines" and random.random() < REWORDED)
            if kind in ("lines", "blocks"):
                exchange.append(_question_of_logs(kind, episode, random))
            elif kind == "slow":
                exchange.append(_question_of_latency(episode, random))
            else:
                exchange.append(_question_of_severity(kind, episode))
    messages = [{"role": "system", "content": READING_PROMPT}]
    for text, answer in exchange:
        messages += [{"role": "user", "content": text}, {"role": "assistant", **answer}]
    return messages


def _rounds(episode: Episode, random: Random) -> list[Message]:
    """Each service is asked once: a model must remember which ones it has asked."""
    topology = episode.incident.topology
    messages = [
        {"role": "system", "content": READING_PROMPT},
        {"role": "user", "content": f"{call_graph_line(topology)}\nask everybody once"},
    ]
    names = random.sample(topology.names, len(topology.names))
    steps = max(len(names), episode.incident.task.max_steps)
    for step, name in enumerate(names, start=1):
        row = episode.telemetry.metric(topology.position[name])
        answer = render(Observation(step, steps, metrics=[row]))
        messages += [
            {"role": "assistant", **_calls("", Action("request_more_logs", (name,)))},
            {"role": "tool", "name": "request_more_logs", "content": answer},
        ]
    return [*messages, {"role": "assistant", "content": "all asked"}]


def _open(random: Random, index: int, reworded: bool = False) -> Episode:
    """An episode of `train` with path names, of a task that `random` draws. With `reworded` it has
    the default call graph and varied wording.
    """
    task = draw_task(random, READING_SHARES)
    if reworded:
        episode = Episode(sample_incident(task, "train", index, varied_wording=True))
    else:
        episode = open_varied(task, "train", index)
    graph = renamed_graph(episode.incident.topology, incident_names(episode))
    return Episode(episode.incident.renamed(graph))


def draw_task(random: Random, shares: dict[str, float]) -> str:
    """A task, drawn by its share."""
    return random.choices(list(shares), list(shares.values()))[0]


def _questions_of_a_graph(random: Random, index: int) -> list[tuple[str, Message]]:
    """Ask about a random call graph, shown with the first question, whom a service calls or who
    calls it. The answer asks each of these for its logs.
    """
    graph = random_topology(random)
    topology = renamed_graph(graph, path_names(graph, f"drill/{index}"))
    below = [(f"called by {service.name}", service.downstream) for service in topology.services]
    above = [(f"callers of {name}", topology.callers[name]) for name in topology.names]
    head, questions = f"{call_graph_line(topology)}\n", []
    for text, names in random.sample(below + above, KINDS["graph"][1]):
        answer = _calls("", *[Action("request_more_logs", (name,)) for name in names])
        questions.append((head + text, answer if names else {"content": "nothing"}))
        head = ""
    return questions


def _question_of_severity(kind: str, episode: Episode) -> tuple[str, Message]:
    """Ask how severe it is, by the edge's metrics, or by an opening; then also who is loudest."""
    topology, reader = episode.incident.topology, ReadingPolicy()
    if kind == "opening":
        reader.begin(topology, episode.opening)
        content = f"loudest {reader.loudest()}"
        text = render(episode.opening, topology)
    else:
        edge = episode.telemetry.metric(0)  # the edge is the first service of these graphs
        observation = Observation(0, 0, alerts=episode.opening.alerts, metrics=[edge])
        reader.begin(topology, observation)
        content, text = "", render(observation)
    return text, _calls(content, Action("classify_severity", (reader.severity(),)))


def _question_of_latency(episode: Episode, random: Random) -> tuple[str, Message]:
    """Ask which of some services is slowest against its baseline, by their metrics at some step.
    The answer is nobody if the difference may be noise.
    """
    topology, reader = episode.incident.topology, ReadingPolicy()
    for _ in range(random.randrange(episode.incident.task.max_steps - 1)):
        episode.act(Action("request_more_logs", (topology.names[0],)))
    names = random.sample(topology.names, random.randint(2, len(topology.names)))
    rows = [episode.telemetry.metric(topology.position[name]) for name in names]
    observation = Observation(0, 0, metrics=rows)
    reader.begin(topology, observation)
    slowest = max(topology.names, key=reader.slowdown)
    real = reader.slowdown(slowest) > REAL_SLOWDOWN
    return render(observation), {"content": f"slowest {slowest}" if real else "nobody"}


def _question_of_logs(kind: str, episode: Episode, random: Random) -> tuple[str, Message]:
    """Ask what a line, or a block of lines, says. Services are tried in random order until one
    shows a line of the kinds that are sought; if none does, the last one is taken.
    """
    topology, reader = episode.incident.topology, ReadingPolicy()
    positions = list(range(len(topology.names))) * (2 if kind == "lines" else 1)
    random.shuffle(positions)
    if kind == "blocks":  # each is a step, and the last one would close the incident
        positions = positions[: episode.incident.task.max_steps - 1]
    sought = random.choices(list(SOUGHT_SHARES), list(SOUGHT_SHARES.values()))[0]
    for position in positions:
        service = topology.names[position]
        if kind == "lines":
            lines = episode.telemetry.lines(position)
            observation, text = Observation(0, 0, lines=lines), lines[0]
        else:
            observation = episode.act(Action("request_more_logs", (service,)))
            text = render(observation)
        reader.begin(topology, observation)
        question = text, _meaning(reader, service)
        if not sought or any(reading.kind in sought for reading in reader.readings[service]):
            break
    return question


def _meaning(reader: ReadingPolicy, service: str) -> Message:
    """Remedy by the runbook, and team if a fault is proven; else whom the lines complain of."""
    fault = reader.fault_at(service)
    if fault is not None:
        fix = Action("remediate", (fault.remedy, service))
        if reader.proven(service):
            team = fault.owner_at(reader.topology.service(service))
            return _calls("", fix, Action("escalate", (team,)))
        return _calls("", fix)
    named = [reading.subject for reading in reader.readings[service] if reading.kind == "callee"]
    return {"content": f"see {named[-1]}" if named else "nothing"}


def _calls(content: str, *actions: Action) -> Message:
    return {"content": content, "tool_calls": [tool_call(action) for action in actions]}


def novice_episode(index: int) -> list[Message]:
    """An episode of the novice: what the base model imitates."""
    random = Random(f"novice/{index}")
    task = draw_task(random, EPISODE_SHARES)
    episode = open_varied(task, "train", NOVICE_INDEX + index)
    return transcript(NovicePolicy(random), NoisySession(episode))


class NoisySession(ToolSession):
    """A session with path names. If the wording is varied, some words of log lines are missing or
    unknown, as in the logs of unfamiliar software.
    """

    stream = "noise"  # name of the random stream

    def __init__(self, episode: Episode) -> None:
        self._random = Random(f"{self.stream}/{incident_id(episode)}")
        self._noise = episode.incident.varied_wording
        super().__init__(episode, incident_names)

    def _rendered(self, observation: Observation, opening: CallGraph | None = None) -> str:
        text = super()._rendered(observation, opening)
        return "\n".join(map(self._read, text.split("\n"))) if self._noise else text

    def _read(self, line: str) -> str:
        return noisy(line, self.services, self._random)


class AugmentedSession(NoisySession):
    """A session with lexical augmentation: throughout the incident some words read as they are, and
    others always as the same made-up word.
    """

    stream = "dialect"  # by which published bases were made

    def _read(self, line: str) -> str:
        level, _, text = line.partition(" ")
        return f"{level} {self._words.sub(self._replaced, text)}" if level.isupper() else line

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(rf"{whole_names(self.services)}|[A-Za-z]{{3,}}")

    @cached_property
    def _readings(self) -> dict[str, str]:
        """How each word reads that has occurred so far; a name reads as it is."""
        return {name: name for name in self.services}

    @cached_property
    def _unknown(self) -> float:
        """The share of words that are made up."""
        return MOST_UNKNOWN * self._random.random()

    def _replaced(self, match: re.Match[str]) -> str:
        word, unknown = match[0], self._unknown
        if word not in self._readings:
            made_up = self._random.random() < unknown
            self._readings[word] = made_up_word(self._random) if made_up else word
        return self._readings[word]


def made_up_word(random: Random) -> str:
    """The beginning of a word of the varied wording, and the end of another."""
    first, second = random.choices(varied_words(), k=2)
    head = first[: random.randint(1, len(first) - 1)]
    return head + second[random.randint(1, len(second) - 1) :]


def noisy(line: str, kept: Container[str], random: Random) -> str:
    """Leave out some words of a log line and make up others, but keep those in `kept`. Some lines
    of chatter lose all known words. Half of the log lines, and other lines, stay as they are.
    """
    level, *words = line.split(" ")
    if not level.isupper() or len(words) < 2 or random.random() < CLEAR_LINES:
        return line
    unknown = UNKNOWN_WORDS
    if read_line(line)[1].kind in CHATTER and random.random() < UNKNOWN_LINES:
        unknown = 1.0
    kept_words = [level, words[0]]
    for word in words[1:]:
        if word.strip(PUNCTUATION) in kept or not any(char.isalpha() for char in word):
            kept_words.append(word)
        elif random.random() < unknown:
            kept_words.append(made_up_word(random))
        elif random.random() >= MISSING_WORDS:
            kept_words.append(word)
    return " ".join(kept_words)


@cache
def varied_words() -> list[str]:
    """All words of the varied wording that have three letters or more."""
    sections = (section for book in VARIED_BOOKS.values() for section in book.values())
    texts = (re.sub(r"{\w+}", " ", template) for section in sections for template in section)
    return sorted({*chain.from_iterable(re.findall("[A-Za-z]{3,}", text) for text in texts)})


def expert_episode(index: int) -> list[Message]:
    """An episode of `belief`: what the track `expert` imitates first."""
    task = draw_task(Random(f"expert/{index}"), EPISODE_SHARES)
    episode = open_varied(task, "train", EXPERT_INDEX + index)
    return transcript(BeliefPolicy(), NoisySession(episode))


def transcript(policy: ReadingPolicy | BeliefPolicy, session: ToolSession) -> list[Message]:
    """Play an episode, and return the conversation. Actions decided together make up one turn."""
    episode, called = session.episode, session.names
    policy.open(episode)
    messages, calls = opening_messages(session.opening), list[dict[str, Any]]()
    while not episode.done:
        if not policy.queue:
            calls = []
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        action = policy.act()
        call = tool_call(Action(action.type, tuple(called.get(arg, arg) for arg in action.args)))
        calls.append(call)
        answer = session.call(**call["function"])
        policy.see(episode.history[-1].observation)
        messages.append({"role": "tool", "name": action.type, "content": answer})
    # Drop the last answers: a conversation ends with the last turn to be imitated.
    while messages[-1]["role"] == "tool":
        messages.pop()
    return messages
