"""What the score promises; and every known way to cheat, over 100 held-out incidents a task."""

from itertools import chain, cycle
from random import Random

import pytest

from logtriage.play.actions import ACTION_TYPES, Action, action_values
from logtriage.play.episode import Episode
from logtriage.play.scoring import WEIGHTS
from logtriage.policies.scripted import LoudestPolicy, OraclePolicy
from logtriage.world.call_graph import TEAMS
from logtriage.world.faults import REMEDIES
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY

INCIDENTS = 100


def play(incident, actions):
    """The score of doing `actions` and then walking away, unless the incident is closed before."""
    episode = Episode(incident)
    for action in actions:
        episode.act(action)
        if episode.done:
            break
    episode.abandon()
    return episode.score


def incident_where(condition, task="cascading_failure"):
    return next(i for i in (sample_incident(task, "train", k) for k in range(500)) if condition(i))


def right_answers(i, team=None):
    return [
        Action("classify_severity", (i.severity,)),
        Action("identify_root_cause", (i.root,)),
        Action("remediate", (i.remedy, i.root)),
        Action("escalate", (team or i.team,)),
        Action("resolve"),
    ]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_scores_exactly_one_everywhere(task, split):
    for index in range(INCIDENTS):
        episode = Episode(sample_incident(task, split, index))
        OraclePolicy().play([episode])
        assert episode.score.total == 1.0, index


def test_the_gate_is_closed_by_a_wrong_team_and_by_no_page_for_p1_and_p2():
    incident = incident_where(lambda i: True)
    for team in TEAMS:
        total = play(incident, right_answers(incident, team)).total
        assert total == (1.0 if team == incident.team else 0.0)
    for severity, passes in (("P1", False), ("P2", False), ("P3", True)):
        task = "silent_degradation" if severity == "P3" else "cascading_failure"
        incident = incident_where(lambda i, s=severity: i.severity == s and i.injection, task)
        score = play(incident, [a for a in right_answers(incident) if a[0] != "escalate"])
        assert (score.total > 0.5) is passes and score.gate == float(passes)


@pytest.mark.parametrize(
    "at, part", enumerate(("severity", "root_cause", "remediation", "escalation"))
)
def test_the_first_answer_counts_and_answering_again_costs(at, part):
    incident = incident_where(lambda i: True)
    answers = right_answers(incident)
    before, right, after = answers[:at], answers[at], answers[at + 1 :]
    for value in set(action_values(incident.topology)[right.type]) - {right.value}:
        wrong = Action.parse(right.type, value)
        only = play(incident, [*before, wrong, *after])
        first = play(incident, [*before, *[wrong] * 4, right, *after])
        assert getattr(only, part) == getattr(first, part) == 0.0, value
        last = play(incident, [*before, right, wrong, *after])
        fruitless = 0.1 * (part == "remediation")
        assert getattr(last, part) == 1.0 and last.cost == pytest.approx(0.05 + fruitless)


def test_speed_wants_the_fault_gone_and_falls_with_steps():
    incident, ask = incident_where(lambda i: True), Action("request_more_logs", ("all",))
    severity, cause, _, *rest = right_answers(incident)
    assert play(incident, [severity, cause, *rest]).speed == 0.0
    innocent = next(name for name in incident.topology.names if name != incident.root)
    wrong = Action("remediate", ("restart", innocent))
    assert play(incident, [wrong, *right_answers(incident)]).speed > 0.0
    speeds = [play(incident, [*[ask] * n, *right_answers(incident)]).speed for n in range(8)]
    assert speeds[0] == 1.0 and speeds == sorted(speeds, reverse=True) and speeds[7] == 0.0


def test_a_false_alarm_pays_in_full_for_p3_and_ignore_only():
    incident = incident_where(lambda i: i.injection is None, "silent_degradation")
    name = incident.topology.names[0]
    p3, ignore = Action("classify_severity", ("P3",)), Action("ignore")
    assert play(incident, [p3, ignore]).total == 1.0
    assert play(incident, [p3, Action("resolve")]).total == pytest.approx(0.2)
    for extra in (
        Action("escalate", ("sre",)),
        Action("remediate", ("restart", name)),
        Action("identify_root_cause", (name,)),
    ):
        assert play(incident, [p3, extra, ignore]).total < 0.9


def test_solved_means_named_fixed_sooner_or_later_and_not_gated():
    incident = incident_where(lambda i: True)
    severity, cause, fix, page, resolve = right_answers(incident)
    ask = Action("request_more_logs", ("all",))
    bad_fix = Action("remediate", ("restart", incident.root))
    assert bad_fix != fix
    other = next(name for name in incident.topology.names if name != incident.root)
    late = [bad_fix, cause, fix, page, *[ask] * (incident.task.max_steps - 5), resolve]
    for solved, actions in (
        (1.0, [severity, cause, fix, page, resolve]),
        (1.0, [cause, fix, page]),  # it walks away, and the fault is gone
        (1.0, [bad_fix, cause, fix, page, resolve]),
        (1.0, late),  # at the last step no part of the score tells that the fault is gone
        (0.0, [*late[:2], *late[3:]]),
        (0.0, [severity, cause, page, resolve]),
        (0.0, [severity, fix, page, resolve]),
        (0.0, [severity, Action("identify_root_cause", (other,)), cause, fix, page, resolve]),
        (0.0, [severity, cause, fix, Action("ignore")]),
    ):
        assert play(incident, actions).solved == solved, actions

    alarm = incident_where(lambda i: i.injection is None, "silent_degradation")
    waits, ignore = [ask] * (alarm.task.max_steps - 2), Action("ignore")
    assert play(alarm, [bad_fix, *waits, ignore]).solved == 1.0  # the last step, again
    assert play(alarm, [cause, ignore]).solved == play(alarm, [*waits]).solved == 0.0


def test_the_fault_is_gone_exactly_if_the_right_remedy_was_applied_at_the_root():
    # The score follows from the answers alone; the simulated cluster must say the same.
    random = Random("gone")
    for index in range(200):
        incident = sample_incident("cascading_failure", "test", index)
        episode, remedies = Episode(incident), action_values(incident.topology)["remediate"]
        for _ in range(6):
            right = f"{incident.remedy}:{incident.root}"
            value = right if random.random() < 0.1 else random.choice(remedies)
            episode.act(Action.parse("remediate", value))
        applied = (incident.remedy, incident.root) in episode.record.remediations
        assert (episode.cluster.active is None) == applied


def blame(topology):
    return [Action("identify_root_cause", (name,)) for name in topology.names]


P1, PAGES = Action("classify_severity", ("P1",)), [Action("escalate", (team,)) for team in TEAMS]
LOGS = Action("request_more_logs", ("all",))
CHEATS = {  # name to the actions on a call graph
    "do nothing": lambda graph: [],
    "say P3": lambda graph: [Action("classify_severity", ("P3",))],
    "garbage": lambda graph: cycle([Action("hack"), Action("remediate", ("rm -rf", "/"))]),
    "farm logs": lambda graph: cycle([LOGS]),
    "farm logs, then guess": lambda graph: (
        [LOGS] * len(graph.names) + [P1, blame(graph)[-1], PAGES[0]]
    ),
    "blame each service in turn": blame,
    "page every team": lambda graph: [P1, *PAGES],
    "try every remedy": lambda graph: [
        Action("remediate", (remedy, name)) for name in graph.names for remedy in REMEDIES
    ],
    "restart everything": lambda graph: [
        *(P1, PAGES[1]),
        *(Action("remediate", ("restart", name)) for name in graph.names),
    ],
    **{
        f"blame {name} and page every team": lambda graph, at=at: [P1, blame(graph)[at], *PAGES]
        for at, name in enumerate(DEFAULT_TOPOLOGY.names)
    },
}


@pytest.fixture(scope="module")
def incidents():
    return [sample_incident(task, "test", index) for task in TASKS for index in range(INCIDENTS)]


def mean_total(scores):
    """Their mean, every one being in its range; also the mean over tasks, of as many incidents."""
    for score in scores:
        assert 0.0 <= score.total <= 1.0 and score.cost >= 0.0 and score.gate in (0.0, 1.0), score
        assert all(0.0 <= getattr(score, part) <= 1.0 for part in WEIGHTS), score
    return sum(score.total for score in scores) / len(scores)


@pytest.fixture(scope="module")
def loudest(incidents):
    played = LoudestPolicy().play(map(Episode, incidents))
    return mean_total([ended.episode.score for ended in played])


@pytest.mark.parametrize("ending", [[], [Action("resolve")], [Action("ignore")]])
@pytest.mark.parametrize("cheat", CHEATS)
def test_no_cheat_beats_the_honest_loudest(cheat, ending, incidents, loudest):
    actions = [chain(CHEATS[cheat](incident.topology), ending) for incident in incidents]
    assert mean_total([*map(play, incidents, actions)]) < loudest - 0.02


def test_every_score_is_a_fraction_whatever_is_done(incidents):
    random, scores = Random("scores"), []
    for incident in incidents:
        values = action_values(incident.topology)
        kinds = random.choices(ACTION_TYPES, weights=(3, 3, 3, 3, 3, 1, 1), k=16)
        actions = [Action.parse(kind, random.choice(values[kind])) for kind in kinds]
        scores.append(play(incident, actions))
    assert mean_total(scores) < 0.5
