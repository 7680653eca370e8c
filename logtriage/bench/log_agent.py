"""Ask a policy or a trained agent about a custom log.

    from logtriage.bench.log_agent import load_agent, triage
    agent = load_agent("agent")  # or a folder, or a hub name
    print(triage(agent, open("incident.log").read()))

Nothing is executed: the agent's actions are only proposals.
"""

from pathlib import Path
from typing import NamedTuple

from logreader.log import read_text
from logreader.log_episode import LogEpisode
from logtriage.play.conversation import Message
from logtriage.play.episode import BaseEpisode
from logtriage.policies.scripted import Policy
from logtriage.world.call_graph import CallGraph
from logtriage.world.topology import DEFAULT_TOPOLOGY
from triagelab.language_models.language_models import LanguageModelPolicy
from triagelab.language_models.loading import load_language_model, located, runnable


class Diagnosis(NamedTuple):
    """An agent's diagnosis of a log: its first answers, empty where it gave none.

    Attributes:
        closed_by: `resolve`, `ignore` (a false alarm), or `timeout` if it did not end by itself.
        messages: the whole conversation; empty for a scripted policy.
        decisions: the agent's turns, or a scripted policy's steps; they took `seconds` in all.
    """

    severity: str
    root_cause: str
    remedy: str
    team: str
    closed_by: str
    messages: list[Message]
    decisions: int
    seconds: float

    def __str__(self) -> str:
        names = ("severity", "root cause", "remedy", "page", "closed by")
        rows = [f"{name:>10}: {value or '-'}" for name, value in zip(names, self, strict=False)]
        turns = "1 decision" if self.decisions == 1 else f"{self.decisions} decisions"
        each = self.seconds / max(1, self.decisions)
        return "\n".join([*rows, f"{turns}, {each:.2f} s each"])


def load_agent(source: str | Path, constrained: bool = True) -> LanguageModelPolicy:
    """Load a trained agent as a greedy policy, from a folder or hub name of a model or an adapter.
    It runs in 4 bit if it was trained so and there is an NVIDIA GPU, else unquantised.

    If `constrained`, it writes only calls that exist (see `policies.llm.grammar`), provided that
    its chat template allows that.
    """
    from peft import PeftConfig
    from transformers.utils import find_adapter_config_file

    from triagelab.language_models.grammar import writes_as_qwen

    name = str(located(source))
    if find_adapter_config_file(name) is None:
        model, tokenizer = load_language_model(name)
    else:
        base, in_4bit = runnable(PeftConfig.from_pretrained(name).base_model_name_or_path, False)
        model, tokenizer = load_language_model(base, in_4bit, adapter=name)
    checked = constrained and writes_as_qwen(tokenizer)
    return LanguageModelPolicy(model, tokenizer, name=name, constrained=checked)


def triage(agent: Policy, text: str, topology: CallGraph = DEFAULT_TOPOLOGY) -> Diagnosis:
    """Show an agent the most unusual lines of a log, or the last ones, and return what it would do.
    `ValueError` if no line names a service of the call graph.
    """
    return ask(agent, LogEpisode(read_text(text, topology.names), topology))


def ask(agent: Policy, episode: BaseEpisode) -> Diagnosis:
    """As `triage`, of an episode; `ValueError` for a policy that plays only simulated incidents."""
    (played,) = agent.play([episode])
    turns = sum(message["role"] == "assistant" for message in played.messages)
    record = episode.record
    return Diagnosis(
        severity=record.severity or "",
        root_cause=record.root_cause or "",
        remedy=" ".join(record.remediations[0]) if record.remediations else "",
        team=record.team or "",
        closed_by=record.closed_by or "",
        messages=list(played.messages),
        decisions=turns or record.steps,
        seconds=played.seconds,
    )
