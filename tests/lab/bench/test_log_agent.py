"""A trained agent on a log that somebody pasted."""

from helpers import SHOP

from logreader.diagnosis import triage
from logtriage.play.actions import Action
from logtriage.play.conversation import tool_call
from logtriage.policies.policy import ConversationPolicy
from logtriage.policies.scripted import answers

ANSWERS = [
    [Action("request_more_logs", ("user-db",))],
    answers("P1", "user-db", ("restart", "user-db"), "dba"),
]


class Scripted(ConversationPolicy):
    def reply(self, messages, seed):
        turn = sum(message["role"] == "assistant" for message in messages)
        calls = [tool_call(action) for action in ANSWERS[turn]]
        return {"role": "assistant", "content": "", "tool_calls": calls}, None


def answer_in(diagnosis):
    """What the one question brought."""
    (asked,) = [m for m in diagnosis.messages if m.get("name") == "request_more_logs"]
    return asked["content"]


def test_a_pasted_log_becomes_a_diagnosis():
    diagnosis = triage(Scripted("scripted"), "ERROR user-db is down\nINFO api-gateway fine")
    assert diagnosis[:5] == ("P1", "user-db", "restart user-db", "dba", "resolve")
    answer = answer_in(diagnosis)
    assert "ERROR user-db is down" in answer and "fine" not in answer
    assert "\nroot cause: user-db\n" in str(diagnosis)


def test_services_of_another_cluster_need_its_call_graph():
    refused = triage(Scripted("scripted"), "ERROR basket-db is down", SHOP)
    assert refused.root_cause == "" and refused.closed_by == "resolve"


def test_no_line_of_a_log_is_taken_for_ours():
    text = "step user-db ERROR is down\ncalls: user-db ERROR 3 of 3 failed"
    answer = answer_in(triage(Scripted("scripted"), text))
    assert "is down" in answer and "3 of 3 failed" in answer
