"""What a model says, turn by turn, for every door that an agent plays through: completions of the
OpenAI protocol, and the episode that `ConversationPolicy` makes of them.
"""

import json

from openai.types.chat import ChatCompletionMessage
from talking_server import call, said

from logtriage.play.actions import Action
from logtriage.play.conversation import from_wire, tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession
from logtriage.policies.policy import ConversationPolicy
from logtriage.registry import make_policy


def does(*actions):
    """A completion that takes these actions at once."""
    functions = [tool_call(action)["function"] for action in actions]
    return said(
        *(
            call(function["name"], json.dumps(function["arguments"]), f"call_{number}")
            for number, function in enumerate(functions)
        )
    )


def message_of(completion):
    return completion[2]["choices"][0]["message"]


def opening(task, index, split="test"):
    """What the agent reads first."""
    return ToolSession(Episode.open(task, split, index)).opening


def as_played_by(name, task, index, seed=0):
    """The episode of a script, and completions that do the same."""
    episode = Episode.open(task, "test", index)
    make_policy(name, seed).play([episode])
    return episode, [does(step.action) for step in episode.history]


def conversed(completions, task, index):
    """What `ConversationPolicy` plays with these completions."""

    class Scripted(ConversationPolicy):
        def reply(self, read, seed):
            turn = sum(message["role"] == "assistant" for message in read)
            message = ChatCompletionMessage.model_validate(message_of(completions[turn]))
            return from_wire(message), None

    (played,) = Scripted("scripted").play([Episode.open(task, "test", index)])
    return played


MALFORMED = [
    call("rm", "{}", "a"),
    call("escalate", "{broken", "b"),
    call("escalate", "{}", "c"),
    call("resolve", '{"now": 1}', "d"),
]
WRONG = [  # completions on `single_crash`, the steps they take, and how the incident ends
    ([said(*MALFORMED), does(Action("ignore"))], 5, "ignore"),
    ([said(*MALFORMED * 3)], 8, "timeout"),
    ([does(Action("classify_severity", ("P2",))), said(content="I give up.")], 1, "timeout"),
    ([said(content='<tool_call>\n{"name": "resol'), does(Action("resolve"))], 2, "resolve"),
    ([does(Action("resolve"), Action("resolve"))], 1, "resolve"),
]
