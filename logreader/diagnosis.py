"""Ask an agent about your own log. Its actions are only proposals.

print(triage(load_agent("agent"), open("incident.log").read()))
"""

from typing import NamedTuple

from logtriage.play.conversation import Message
from logtriage.play.episode import BaseEpisode
from logtriage.policies.policy import Policy
from logtriage.world.call_graph import CallGraph
from logtriage.world.topology import DEFAULT_TOPOLOGY

from .log import read_text
from .log_episode import LogEpisode


class Diagnosis(NamedTuple):
    """An agent's diagnosis of a log: its first answers, empty where it gave none."""

    severity: str
    root_cause: str
    remedy: str
    team: str
    closed_by: str  # `resolve`, `ignore` (a false alarm), or `timeout` if it did not end by itself
    messages: list[Message]  # the whole conversation; empty for a scripted policy

    def __str__(self) -> str:
        names = ("severity", "root cause", "remedy", "page", "closed by")
        rows = (f"{name:>10}: {value or '-'}" for name, value in zip(names, self, strict=False))
        return "\n".join(rows)


def triage(agent: Policy, text: str, topology: CallGraph = DEFAULT_TOPOLOGY) -> Diagnosis:
    """Ask an agent about a log; `ValueError` if no line names a service of the call graph."""
    return ask(agent, LogEpisode(read_text(text, topology.names), topology))


def ask(agent: Policy, episode: BaseEpisode) -> Diagnosis:
    """As `triage`, of an episode; `ValueError` for a policy that plays only simulated incidents."""
    (played,) = agent.play([episode])
    record = episode.record
    return Diagnosis(
        severity=record.severity or "",
        root_cause=record.root_cause or "",
        remedy=" ".join(record.remediations[0]) if record.remediations else "",
        team=record.team or "",
        closed_by=record.closed_by or "",
        messages=list(played.messages),
    )
