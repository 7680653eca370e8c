"""Language models as policies, with a model that learned nothing. What is about messages is tested
with `play.conversation`, and calls with `play.tools`.
"""

from test_scoring import right_answers

from logtriage.play.actions import Action
from logtriage.play.conversation import answers, opening_messages, tool_call
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession, tool_schemas
from logtriage.policies.llm.language_models import LanguageModelPolicy
from logtriage.policies.llm.loading import load_language_model
from logtriage.policies.policy import ConversationPolicy


def episodes(count=3):
    return [Episode.open("cascading_failure", "train", index) for index in range(count)]


class Scripted(ConversationPolicy):
    """Replies from a list of messages."""

    def __init__(self, replies):
        super().__init__("scripted")
        self.replies = replies

    def reply(self, messages, seed):
        return {"role": "assistant", "content": "", **self.replies.pop(0)}, None


def test_messages_of_any_number_of_calls_are_played():
    right, left = episodes(2)
    calls = [tool_call(action) for action in right_answers(right.incident)]
    broken = {"content": '<tool_call>\n{"name": "resolve", "argu'}
    policy = Scripted([broken, {"tool_calls": calls}, {"content": "I give up."}])
    one, _ = policy.play([right, left])
    assert "could not be read" in one.messages[3]["content"]
    assert (right.record.closed_by, right.record.steps) == ("resolve", 6)
    assert right.score.total > 0.9  # but for the step that was lost
    assert left.record.closed_by == "timeout" and left.score.total == 0.0


def test_ids_are_the_templates_whatever_the_number_of_turns(tiny_base):
    # Turn by turn the ids are concatenated, never re-tokenized; for the embedded tokenizer both
    # must agree.
    model, tokenizer = load_language_model(tiny_base)
    policy = LanguageModelPolicy(model, tokenizer, name="tiny")
    (episode,) = episodes(1)
    session = ToolSession(episode)
    conversation = opening_messages(session.opening)
    (opened,) = policy._opened([session])
    ids = opened.prompt
    asks = Action("request_more_logs", (episode.incident.root,))
    for action in (asks, Action("escalate", ("sre",))):
        message = {"role": "assistant", "content": "", "tool_calls": [tool_call(action)]}
        said = tokenizer.apply_chat_template(
            [{"role": "user", "content": ""}, message], tokenize=False
        )
        said = said.split("<|im_start|>assistant\n")[1].removesuffix("\n")
        ids = ids + tokenizer.encode(said, add_special_tokens=False)
        made = answers(session, message)
        conversation += [message, *made]
        ids = ids + policy._chat.answers(made, ended=True)
        whole = tokenizer.apply_chat_template(
            conversation, tools=tool_schemas(), add_generation_prompt=True, return_dict=False
        )
        assert ids == whole
