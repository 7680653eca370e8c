"""Sessions that are played by the actions they are given."""

from logtriage.play.conversation import tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession


def played(task, index, *actions, split="train"):
    """A closed session of these actions; one of None stands for text that was no call."""
    session = ToolSession(Episode.open(task, split, index))
    for action in actions:
        if action is None:
            session.refuse("no call")
            continue
        function = tool_call(action)["function"]
        session.call(function["name"], function["arguments"])
    session.episode.abandon()
    return session


def at_random(task, index, random, split="train"):
    """A closed session of random actions, some of them no valid ones, and right ones now and then;
    it may be left open, and go on when it is over.
    """
    session = ToolSession(Episode.open(task, split, index))
    incident = session.episode.incident
    names = incident.topology.names
    for _ in range(random.randrange(1, 12)):
        right = random.random() < 0.6
        name, arguments = random.choice(
            [
                ("request_more_logs", {"service": random.choice([*names, "all"])}),
                (
                    "classify_severity",
                    {"severity": incident.severity if right else random.choice(["P1", "P2", "P3"])},
                ),
                (
                    "identify_root_cause",
                    {"service": incident.root if right else random.choice(names)},
                ),
                (
                    "remediate",
                    {"remedy": incident.remedy, "service": incident.root}
                    if right
                    else {"remedy": "restart", "service": random.choice(names)},
                ),
                ("escalate", {"team": incident.team if right else "sre"}),
                ("escalate", {"team": "ceo"}),
                (random.choice(["resolve", "ignore"] if right else ["", "rm"]), {}),
            ]
        )
        session.call(name, arguments)
        if session.episode.done and random.random() < 0.7:
            break
    session.episode.abandon()
    return session
