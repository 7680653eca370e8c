"""Incidents played by tool calls: a session, TRL's face over it, and the schemas of the tools."""

import inspect
import json

import pytest
from test_scoring import right_answers

from logtriage.adapters.shell import take
from logtriage.environment import TriageEnvironment
from logtriage.models import TriageAction
from logtriage.play.actions import ACTION_ARGUMENTS, Action, action_values
from logtriage.play.episode import Episode
from logtriage.play.tools import MALFORMED_COST, ToolSession, TriageTools
from logtriage.world.incidents import sample_incident

ROW = {"task": "single_crash", "split": "train", "index": 0}


def test_every_action_is_read_as_it_is_written():
    values = action_values(sample_incident(**ROW).topology)
    actions = [Action.parse(kind, value) for kind, some in values.items() for value in some]
    assert [Action.from_text(action.text) for action in actions] == actions
    assert (actions[0].text, actions[-1].text) == ("classify_severity:P1", "ignore")
    scoped = Action("remediate", ("restart", "payments:db"))  # as some real services are named
    assert Action.from_text("remediate:restart:payments:db") == scoped


@pytest.fixture
def session():
    return ToolSession(Episode.open("cascading_failure", "train", 0))


@pytest.mark.parametrize(
    "name, arguments, answer",
    [
        ("rm", {}, "unknown tool 'rm'; choose one of classify_severity"),
        ("escalate", [], "must be a JSON object, got list"),
        ("escalate", {}, "missing a required argument: 'team'; it takes team"),
        ("escalate", {"team": "sre", "urgent": True}, "unexpected keyword argument 'urgent'"),
        ("resolve", {"now": True}, "unexpected keyword argument 'now'; it takes nothing"),
        ("escalate", {"team": "ceo"}, "choose one of sre"),
        ("escalate", {"team": None}, "unknown team 'None'"),
        ("remediate", {"remedy": 1, "service": []}, "unknown remedy '1'"),
        ("__init__", {}, "unknown tool"),
        ("reset", ROW, "unknown tool"),
    ],
)
def test_malformed_calls_are_answered_and_the_episode_goes_on(session, name, arguments, answer):
    assert answer in session.call(name, arguments)
    assert not session.episode.done
    assert "resolve" in session.call("resolve", {})
    assert session.call("resolve", {}) == "Incident closed."


def test_the_reward_takes_malformed_calls_off():
    tools = TriageTools()
    tools.reset(**ROW)
    assert tools.get_reward() == 0.0 and tools.session.episode.record.closed_by == "timeout"
    opening = tools.reset(**ROW, prompt=[], extra=1)
    assert opening == tools.session.opening and opening.startswith("step 0 of 8\ncalls: ")
    tools.escalate("ceo")
    tools.resolve()
    with pytest.raises(ValueError, match="Incident closed"):
        tools.resolve()
    score = tools.session.episode.score.total
    assert tools.get_reward() == tools.session.reward() == pytest.approx(score - 0.1)
    tools.session.malformed += 1  # one that a trainer saw and the session did not
    assert tools.get_reward() == pytest.approx(score - 3 * MALFORMED_COST)


def test_only_trl_subtracts_from_the_total():
    # Other interfaces: `reward` of the OpenEnv environment, and of a shell in a container.
    incident = sample_incident(**ROW)
    actions = [Action("escalate", ("ceo",)), Action("sudo"), *right_answers(incident)]
    env, tools, episode = TriageEnvironment(), TriageTools(), Episode(incident)
    env.reset(**ROW)
    tools.reset(**ROW)
    for action in actions:
        given = dict(zip(ACTION_ARGUMENTS.get(action.type, ()), action.args, strict=True))
        tools.session.call(action.type, given)
        paid = env.step(TriageAction(action_type=action.type, value=action.value)).reward
        take(episode, [action.type, *action.args])
    total = tools.session.episode.score.total
    assert 0.9 < total < 1.0  # for the speed alone
    assert paid == total == json.loads(take(episode, ["score"]))["reward"]
    assert tools.get_reward() == pytest.approx(total - 2 * MALFORMED_COST)


def test_an_instance_is_used_again_and_forgets(monkeypatch):
    # TRL pools instances: an incident must not inherit what an earlier one cost.
    left, tools = [], TriageTools()
    monkeypatch.setattr(Episode, "leave", lambda episode: left.append(episode.incident.index))
    tools.reset(**ROW)
    tools.escalate("ceo")
    before = tools.session
    tools.reset(**{**ROW, "index": 1})
    assert tools.session is not before and tools.session.malformed == 0
    assert not tools.session.episode.done and left == [0]


def test_every_public_method_is_an_action_or_what_trl_asks_for():
    # As TRL finds its tools: whatever else were public, a model could call.
    methods = dict(inspect.getmembers(TriageTools(), predicate=inspect.ismethod))
    public = {name for name in methods if not name.startswith("_")}
    assert public == {*ACTION_ARGUMENTS, "reset", "get_reward"}
    values = {"severity": "P2", "service": "user-db", "team": "dba", "remedy": "restart"}
    for name, arguments in ACTION_ARGUMENTS.items():
        given = {argument: values[argument] for argument in arguments}
        tools, session = TriageTools(), ToolSession(Episode.open(**ROW))
        tools.reset(**ROW)
        assert getattr(tools, name)(**given) == session.call(name, given)
        assert tools.session.malformed == session.malformed == 0


def test_what_was_done_is_remembered_in_order(session):
    session.call("request_more_logs", {"service": "all"})
    session.call("escalate", {"team": "ceo"})
    session.refuse("no call")
    session.call("resolve", {})
    session.call("resolve", {})
    history = session.episode.history
    done = [Action("request_more_logs", ("all",)), None, None, Action("resolve")]
    assert [step.action for step in history] == done
    assert [step.observation.step for step in history] == [1, 2, 3, 4]
    assert "unknown team" in history[1].observation.error
    assert history[2].observation.error == "no call"
    assert session.late == 1 and session.malformed == 3
