"""The belief against the simulator it claims to know: states, prior, likelihoods, calibration."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from logtriage.bench.benchmark import opening_beliefs
from logtriage.bench.dials import dialled
from logtriage.bench.intervals import calibration_error
from logtriage.ceiling.belief import BeliefPolicy
from logtriage.ceiling.outcomes import NONE, Answers, Outcomes, answer_actions, score_table
from logtriage.ceiling.posterior import Posterior, printed_between
from logtriage.ceiling.prior import Prior, cached_prior
from logtriage.ceiling.trajectories import simulate
from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import Observation
from logtriage.policies.scripted import TracePolicy
from logtriage.world.call_graph import TEAMS
from logtriage.world.cluster import Cluster, Injection, untreated_states
from logtriage.world.faults import REMEDIES, faults_at
from logtriage.world.incidents import Incident, sample_incident
from logtriage.world.tasks import SEVERITIES, SPLITS, TASKS
from logtriage.world.telemetry import LINE_KINDS, Telemetry, one_digit, two_digits
from logtriage.world.topology import DEFAULT_TOPOLOGY, random_topology
from logtriage.world.wording import Reading, read_line


@pytest.mark.parametrize(
    "topology", [DEFAULT_TOPOLOGY, random_topology(Random("beliefs"))], ids=["default", "random"]
)
@pytest.mark.parametrize("lag", [1, 3])
def test_all_hypotheses_at_once_are_simulated_as_one_by_one(topology, lag):
    random, injections = Random("simulate"), []
    for position, service in enumerate(topology.services):
        for fault in faults_at(service):
            injections.append(
                Injection(fault, position, random.random(), 1, 1 + int(random.random() * 12))
            )
    faults, positions, intensities, ramps = (
        [getattr(injection, name) for injection in injections]
        for name in ("fault", "position", "intensity", "ramp")
    )
    states = simulate(
        topology, faults, np.array(positions), np.array(intensities), np.array(ramps), 20, lag
    )
    for i, injection in enumerate(injections):
        for tick, state in enumerate(untreated_states(topology, (injection,), 20, lag)):
            for name in ("load", "latency", "errors", "pool", "cpu"):
                # `untreated_states` stops once nothing moves by a thousandth.
                assert states[name][i, tick] == pytest.approx(
                    getattr(state, name), rel=0.02, abs=0.005
                ), (injection, name)


@pytest.mark.parametrize("task", TASKS)
def test_the_prior_is_the_generators(task):
    prior, count = cached_prior(DEFAULT_TOPOLOGY, TASKS[task], "train"), 1500
    incidents = [sample_incident(task, "train", index) for index in range(count)]
    mass = prior.weight.sum(1)
    assert mass.sum() == pytest.approx(1.0)

    def check(of_hypotheses, of_incidents, label):
        for value in set(of_incidents) | set(of_hypotheses):
            expected = mass[np.array([x == value for x in of_hypotheses])].sum()
            found = sum(x == value for x in of_incidents) / count
            assert (
                abs(found - expected) < 0.01 + 4.5 * (expected * (1 - expected) / count) ** 0.5
            ), (label, value)

    roots = [-1 if i.injection is None else i.injection.position for i in incidents]
    names = ["" if i.injection is None else i.injection.fault.name for i in incidents]
    check(prior.position.tolist(), roots, "root")
    check([SEVERITIES[s] for s in prior.severity], [i.severity for i in incidents], "severity")
    faults = [
        prior.faults[f].name if at >= 0 else ""
        for at, f in zip(prior.position, prior.fault, strict=True)
    ]
    check(
        list(zip(prior.position.tolist(), faults, strict=True)),
        list(zip(roots, names, strict=True)),
        "pair",
    )


def incident_of(prior, h, quiet=0):
    """The incident that hypothesis `h` describes."""
    injections = ()
    ticks = prior.task.lead[1] + prior.task.max_steps
    if prior.position[h] >= 0:
        fault = prior.faults[prior.fault[h]]
        injections = (
            Injection(
                fault, int(prior.position[h]), float(prior.intensity[h]), 1, int(prior.ramp[h])
            ),
        )
    arrival, severity = int(prior.arrival[h]), SEVERITIES[prior.severity[h]]
    states = untreated_states(prior.topology, injections, ticks)
    return Incident(
        prior.task,
        "train",
        0,
        prior.topology,
        injections,
        severity,
        arrival,
        arrival + quiet,
        (),
        states,
    )


@pytest.mark.parametrize("task", TASKS)
def test_under_each_hypothesis_lines_are_as_likely_as_telemetry_makes_them(task):
    prior = cached_prior(DEFAULT_TOPOLOGY, TASKS[task], "train")
    belief, random = Posterior(prior), Random("lines")
    names = prior.topology.names
    for h in random.sample(range(len(prior.run)), 60):
        incident = incident_of(prior, h)
        cluster = Cluster(prior.topology, incident.injections, incident.untreated, incident.arrival)
        eyes = Telemetry(incident, cluster, Random("eyes"))
        for step in range(4):
            assert belief.loudness(step)[h] == pytest.approx(eyes.loudness(), rel=0.02), (h, step)
            for at in range(len(names)):
                weights = eyes.line_weights(at)
                shares = belief.line_shares(at, step)
                found = [shares[kind][h] for kind in LINE_KINDS]
                assert found == pytest.approx(
                    [weight / sum(weights) for weight in weights], abs=1e-6
                )
                named = dict(eyes.callee_weights(at))
                for other in named:
                    share = belief.says(at, [Reading("callee", names[other])], step)[h]
                    expected = weights[2] / sum(weights) * named[other] / sum(named.values())
                    assert share == pytest.approx(expected, rel=0.05)
            cluster.advance()


def test_a_dark_root_is_silent_in_the_stream_and_not_when_asked():
    prior = cached_prior(DEFAULT_TOPOLOGY, TASKS["cascading_failure"], "train")
    belief, random = Posterior(prior), Random("dark")
    for h in random.sample(range(len(prior.run)), 20):
        incident = incident_of(prior, h, quiet=3)
        cluster = Cluster(prior.topology, incident.injections, incident.untreated, incident.arrival)
        eyes = Telemetry(incident, cluster, Random("eyes"))
        root = prior.position[h]
        expected = belief.loudness(0)[h].copy()
        expected[root] = 0.0
        assert expected == pytest.approx(eyes.loudness(), rel=0.02)
        likelihood = belief._likelihood(Episode(incident).opening, None)
        assert likelihood[h, 1] > 0.0
        assert eyes.line_weights(root)[0] > 0.0


@pytest.mark.parametrize("digits", [1, 2])
def test_what_is_printed_covers_every_quantity_once(digits):
    # The bounds of neighbouring figures meet, and `telemetry` prints what lies between them so.
    shown = {1: one_digit, 2: two_digits}[digits]
    values = sorted({float(shown(x / 100.0)) for x in range(10, 300_000)})
    for value, following in pairwise(values):
        low, high = printed_between(value, digits)
        assert high == pytest.approx(printed_between(following, digits)[0])
        if value >= 1.0:
            assert float(shown(low + 1e-6)) == value == float(shown(high - 1e-6))


def readings_of(service, topology):
    faults = faults_at(service)
    callees = service.downstream
    return [
        *(Reading("proof", fault.name) for fault in faults),
        *(Reading("hint", remedy) for remedy in {fault.remedy for fault in faults}),
        *(Reading("callee", callee) for callee in callees),
        *(Reading(kind) for kind in ("own", "benign", "normal")),
    ]


@pytest.mark.parametrize("decoys", [0, 3])
def test_what_a_service_may_say_sums_to_one(decoys):
    belief = Posterior(
        Prior(DEFAULT_TOPOLOGY, dialled("cascading_failure", "decoys", decoys), "train")
    )
    for at, service in enumerate(DEFAULT_TOPOLOGY.services):
        total = sum(
            belief.says(at, [reading], 2) for reading in readings_of(service, DEFAULT_TOPOLOGY)
        )
        assert total == pytest.approx(np.ones(len(belief.alive)), abs=1e-3)  # give or take ODDITY


@pytest.mark.parametrize("task", TASKS)
def test_before_anything_is_asked_it_is_as_right_as_it_thinks(task):
    openings = opening_beliefs(task, "test", 400)
    assert calibration_error(openings["confidence"], openings["correct"]) <= 0.05


def test_nothing_seen_changes_nothing_and_a_proof_settles_it():
    prior = cached_prior(DEFAULT_TOPOLOGY, TASKS["cascading_failure"], "train")
    incident = next(
        i for i in (sample_incident("cascading_failure", "train", n) for n in range(99)) if i.root
    )
    episode, belief = Episode(incident), Posterior(prior)
    before = belief.roots().copy()
    belief.see(episode.opening._replace(alerts=None, metrics=None, lines=None), incident.root)
    assert belief.roots() == pytest.approx(before)
    kind = incident.injection.fault.name
    lines = (
        line for _ in range(200) for line in episode.telemetry.lines(incident.injection.position)
    )
    line = next(line for line in lines if read_line(line)[1] == Reading("proof", kind))
    belief.see(episode.opening._replace(alerts=None, metrics=None, lines=[line]), incident.root)
    assert belief.roots()[incident.injection.position] == pytest.approx(1.0)


def test_the_table_of_scores_is_the_rubrics():
    random, topology = Random("scores"), DEFAULT_TOPOLOGY
    incidents = [sample_incident(task, "train", index) for task in TASKS for index in range(25)]
    for incident in incidents:
        team = NONE if incident.team is None else TEAMS.index(incident.team)
        root = NONE if incident.injection is None else incident.injection.position
        outcome = Outcomes(
            *(
                np.array([x])
                for x in (
                    root,
                    incident.remedy or "",
                    team,
                    SEVERITIES.index(incident.severity),
                    1.0,
                )
            )
        )
        options = []
        for _ in range(30):
            at = root if root != NONE and random.random() < 0.6 else random.randrange(7)
            remedy = (
                incident.remedy
                if incident.remedy and random.random() < 0.6
                else random.choice(REMEDIES)
            )
            paged = team if random.random() < 0.5 else random.choice([NONE, 0, 1, 2, 3])
            fix = random.choice([None, (at, remedy)])
            options.append(Answers(random.randrange(3), random.choice([at, NONE]), fix, paged))
        options.append(Answers(random.randrange(3), NONE, None, NONE, ignore=True))
        asked = random.randrange(3)
        table = score_table(options, outcome, incident.task, asked)
        for row, option in zip(table, options, strict=True):
            episode = Episode(incident)
            for action in [Action("request_more_logs", ("all",))] * asked + answer_actions(
                option, topology
            ):
                episode.act(action)
            assert row[0] == pytest.approx(episode.score.total), (incident, option)


def play(policy, task, split="train", first=7000, count=60):
    episodes = [
        Episode(sample_incident(task, split, index)) for index in range(first, first + count)
    ]
    policy.play(episodes)
    return episodes


def test_an_answer_about_all_services_is_weighed_as_it_is_made():
    # A dark root's line is an ordinary one; whose row is missing says nothing more.
    belief = Posterior(cached_prior(DEFAULT_TOPOLOGY, TASKS["silent_degradation"], "train"))
    names, root = DEFAULT_TOPOLOGY.names, belief.prior.position[belief.alive]
    at = names.index("user-db")

    def likelihood(asked, kind=None, metrics=None):
        lines = [] if kind is None else [texts[kind]]
        seen = Observation(1, 15, alerts=[], metrics=metrics, lines=lines)
        return belief._likelihood(seen, asked)

    texts = {}
    for index in range(400):
        for line in Episode(sample_incident("silent_degradation", "train", index)).opening.lines:
            name, reading = read_line(line)
            if name == "user-db":
                texts.setdefault(reading.kind, line)
    quiet = likelihood("all")
    for kind in ("normal", "benign"):
        said = belief.says(at, [read_line(texts[kind])[1]], 1)
        ratio = likelihood("all", kind) / quiet
        assert ratio[:, 0] == pytest.approx(said)
        assert ratio[root != at, 1] == pytest.approx(said[root != at])
        assert set(ratio[root == at, 1]) == {float(kind == "normal")}
    assert likelihood("all", metrics=[]) == pytest.approx(quiet)


@pytest.mark.parametrize("task", TASKS)
def test_belief_is_above_trace(task):
    belief, trace = (
        np.mean([e.score.total for e in play(policy, task)])
        for policy in (BeliefPolicy(), TracePolicy())
    )
    assert belief > trace + 0.02


@pytest.mark.parametrize("split", SPLITS)
def test_it_states_a_confidence_and_ends_by_itself(split):
    for episode in play(BeliefPolicy(), "silent_degradation", split, first=0, count=5):
        assert episode.record.closed_by in ("resolve", "ignore")
        assert episode.record.root_cause is None or 0.0 <= episode.record.confidence <= 1.0


@pytest.mark.parametrize(
    "dial, value", [("lag", 3), ("decoys", 4), ("quiet", 6), ("services", 12), ("noise", 0.7)]
)
def test_it_knows_the_dials(dial, value):
    task = dialled("cascading_failure", dial, value)
    scores = [
        np.mean([e.score.total for e in play(policy, task, count=20)])
        for policy in (BeliefPolicy(), TracePolicy())
    ]
    assert scores[0] > max(0.6, scores[1])


def test_what_contradicts_all_that_was_believed_is_believed_alone():
    belief = Posterior(cached_prior(DEFAULT_TOPOLOGY, TASKS["single_crash"], "train"))
    observation = Episode(sample_incident("single_crash", "train", 0)).opening._replace(
        alerts=None, metrics=None
    )
    before = belief.roots()
    belief.see(
        observation._replace(lines=["ERROR user-db x"]), "user-db"
    )  # unreadable text tells nothing
    assert belief.roots() == pytest.approx(before)
    for name in (
        "user-db",
        "payment-db",
    ):  # two proofs at two places: no single fault can be behind both
        line = (
            f"LOG {name} nightly report query runs for 10 min, sequential scan on orders, cpu 50%"
        )
        belief.see(observation._replace(lines=[line]), name)
        assert belief.roots()[DEFAULT_TOPOLOGY.position[name]] == pytest.approx(1.0)


def test_a_observations_that_no_hypothesis_allows_is_an_error():
    belief = Posterior(cached_prior(DEFAULT_TOPOLOGY, TASKS["single_crash"], "train"))
    observation = Episode(sample_incident("single_crash", "train", 0)).opening._replace(
        alerts=None, metrics=None
    )
    proofs = [
        f"LOG user-db {text}"
        for text in ("process still waiting for ExclusiveLock, 10 sessions queue behind it",)
    ]
    proofs += ["LOG user-db pg_sleep(10) stacked after a quoted user field by the web role"]
    with pytest.raises(ValueError, match="impossible under every hypothesis"):
        belief.see(observation._replace(lines=proofs), "user-db")
