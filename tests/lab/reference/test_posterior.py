"""The posterior against the simulator: states, prior, likelihoods, calibration."""

from itertools import pairwise, product
from random import Random

import numpy as np
import pandas as pd
import pytest

from logtriage.play.episode import Episode
from logtriage.play.observation import Observation
from logtriage.world.cluster import Cluster, Injection, untreated_states
from logtriage.world.faults import faults_at
from logtriage.world.incidents import Incident, sample_incident
from logtriage.world.tasks import SEVERITIES, TASKS
from logtriage.world.telemetry import LINE_KINDS, Telemetry, one_digit, two_digits
from logtriage.world.topology import DEFAULT_TOPOLOGY, random_topology
from logtriage.world.wording import Reading, read_line
from triagelab.reference.posterior import Posterior, printed_between
from triagelab.reference.prior import prior_of, simulate

NAMES = DEFAULT_TOPOLOGY.names


def posterior(task):
    return Posterior(prior_of(DEFAULT_TOPOLOGY, TASKS[task], "train"))


@pytest.mark.parametrize("topology", [DEFAULT_TOPOLOGY, random_topology(Random("beliefs"))])
def test_all_hypotheses_at_once_are_simulated_as_one_by_one(topology):
    random = Random("simulate")
    injections = [
        Injection(fault, position, random.random(), 1, 1 + int(random.random() * 12))
        for position, service in enumerate(topology.services)
        for fault in faults_at(service)
    ]
    injections = random.sample(injections, 40)
    faults = [injection.fault for injection in injections]
    numbers = (
        np.array([getattr(injection, name) for injection in injections])
        for name in ("position", "intensity", "ramp")
    )
    states = simulate(topology, faults, *numbers, 20)
    for i, injection in enumerate(injections):
        alone = untreated_states(topology, injection, 20)
        for name in ("load", "latency", "errors", "pool", "cpu"):
            # `untreated_states` stops once nothing moves by a thousandth.
            expected = np.array([getattr(state, name) for state in alone])
            assert states[name][i, : len(alone)] == pytest.approx(expected, rel=0.02, abs=0.005)


@pytest.mark.parametrize("task", TASKS)
def test_the_prior_is_the_generators(task):
    prior, count = prior_of(DEFAULT_TOPOLOGY, TASKS[task], "train"), 500
    incidents = [sample_incident(task, "train", index) for index in range(count)]
    mass = prior.weight.sum(1)
    assert mass.sum() == pytest.approx(1.0)

    def check(of_hypotheses, of_incidents):
        for value in {*of_incidents, *of_hypotheses}:
            expected = mass[np.array([other == value for other in of_hypotheses])].sum()
            share = sum(other == value for other in of_incidents) / count
            error = (expected * (1 - expected) / count) ** 0.5
            assert abs(share - expected) < 0.01 + 4.5 * error, value

    pairs = [
        (at, prior.faults[fault].name if at >= 0 else "")
        for at, fault in zip(prior.position.tolist(), prior.fault, strict=True)
    ]
    injections = [incident.injection for incident in incidents]
    drawn = [
        (-1, "") if injection is None else (injection.position, injection.fault.name)
        for injection in injections
    ]
    check(pairs, drawn)
    levels = [SEVERITIES[level] for level in prior.severity]
    check(levels, [incident.severity for incident in incidents])


def telemetry_of(prior, h, quiet=0):
    """The simulator's own telemetry in the incident that hypothesis `h` describes."""
    injection = None
    if prior.position[h] >= 0:
        fault, position = prior.faults[prior.fault[h]], int(prior.position[h])
        intensity, ramp = float(prior.intensity[h]), int(prior.ramp[h])
        injection = Injection(fault, position, intensity, 1, ramp)
    arrival, severity = int(prior.arrival[h]), SEVERITIES[prior.severity[h]]
    states = untreated_states(prior.topology, injection, prior.task.lead[1] + prior.task.max_steps)
    where = (prior.task, "train", 0, prior.topology, injection, severity, arrival)
    incident = Incident(*where, arrival + quiet, states)
    cluster = Cluster(prior.topology, injection, incident.untreated, arrival)
    return incident, cluster, Telemetry(incident, cluster, Random("telemetry"))


@pytest.mark.parametrize("task", TASKS)
def test_under_each_hypothesis_lines_are_as_likely_as_telemetry_makes_them(task):
    belief, random = posterior(task), Random("lines")
    for h in random.sample(range(len(belief.alive)), 12):
        _, cluster, telemetry = telemetry_of(belief.prior, h)
        for step in range(3):
            assert belief.log_volume(step)[h] == pytest.approx(telemetry.log_volumes(), rel=0.02)
            for at in range(len(NAMES)):
                weights = telemetry.line_weights(at)
                shares = belief.line_shares(at, step)
                expected = [weight / sum(weights) for weight in weights]
                assert [shares[kind][h] for kind in LINE_KINDS] == pytest.approx(expected, abs=1e-6)
                named = dict(telemetry.callee_weights(at))
                for other in named:
                    share = belief.line_chance(at, [Reading("callee", NAMES[other])], step)[h]
                    whole = weights[2] / sum(weights) * named[other] / sum(named.values())
                    assert share == pytest.approx(whole, rel=0.05)
            cluster.advance()


def test_a_suppressed_root_is_silent_in_the_stream_and_not_when_asked():
    belief, random = posterior("cascading_failure"), Random("suppressed")
    for h in random.sample(range(len(belief.alive)), 10):
        incident, _, telemetry = telemetry_of(belief.prior, h, quiet=3)
        root = belief.prior.position[h]
        expected = belief.log_volume(0)[h].copy()
        expected[root] = 0.0
        assert expected == pytest.approx(telemetry.log_volumes(), rel=0.02)
        assert belief._likelihood(Episode(incident).opening, None)[h, 1] > 0.0
        assert telemetry.line_weights(root)[0] > 0.0


@pytest.mark.parametrize("digits, printed", [(1, one_digit), (2, two_digits)])
def test_what_is_printed_covers_every_quantity_once(digits, printed):
    # The bounds of neighbouring figures meet, and `telemetry` prints what lies between them so.
    values = sorted({printed(x / 10.0) for x in range(1, 30_000)})
    for value, following in pairwise(values):
        low, high = printed_between(value, digits)
        assert high == pytest.approx(printed_between(following, digits)[0])
        if value >= 1.0:
            assert printed(low + 1e-6) == value == printed(high - 1e-6)


def test_the_readings_of_a_service_sum_to_one():
    belief = posterior("cascading_failure")
    for at, service in enumerate(DEFAULT_TOPOLOGY.services):
        faults = faults_at(service)
        readings = [
            *(Reading("proof", fault.name) for fault in faults),
            *(Reading("hint", remedy) for remedy in {fault.remedy for fault in faults}),
            *(Reading("callee", callee) for callee in service.downstream),
            *(Reading(kind) for kind in ("own", "benign", "normal")),
        ]
        total = sum(belief.line_chance(at, [reading], 2) for reading in readings)
        assert total == pytest.approx(np.ones(len(belief.alive)), abs=1e-3)  # up to EPSILON


def test_before_anything_is_asked_it_is_as_right_as_it_thinks():
    confidence, correct = [], []
    for task, index in product(TASKS, range(60)):
        episode = Episode(sample_incident(task, "test", index))
        belief = Posterior(prior_of(DEFAULT_TOPOLOGY, TASKS[task], "test"))
        belief.see(episode.opening, None)
        best = int(belief.roots().argmax())
        confidence.append(min(1.0, belief.roots()[best]))
        correct.append((*NAMES, None)[best] == episode.incident.root)
    # The expected calibration error: the gap between confidence and accuracy in each of ten bins.
    tenth = np.minimum(9, 10 * np.array(confidence)).astype(int)
    gaps = pd.Series(np.array(confidence) - correct).groupby(tenth).sum()
    assert gaps.abs().sum() / len(confidence) <= 0.05


def answered(*lines):
    """An answer that shows these lines alone."""
    return Observation(1, 12, lines=lines)


def test_nothing_seen_changes_nothing_and_a_proof_settles_it():
    incidents = (sample_incident("cascading_failure", "train", index) for index in range(99))
    incident = next(incident for incident in incidents if incident.root)
    belief, root = posterior("cascading_failure"), incident.injection.position
    before = belief.roots()
    belief.see(answered(), incident.root)
    belief.see(answered(f"ERROR {incident.root} x"), incident.root)  # no known reading
    assert belief.roots() == pytest.approx(before)
    telemetry, proof = Episode(incident).telemetry, Reading("proof", incident.injection.fault.name)
    lines = (line for _ in range(200) for line in telemetry.lines(root))
    line = next(line for line in lines if read_line(line)[1] == proof)
    belief.see(answered(line), incident.root)
    assert belief.roots()[root] == pytest.approx(1.0)


def test_an_answer_about_all_services_is_weighed_as_it_is_made():
    # A suppressed root prints an ordinary line; a missing row shows nothing more.
    belief = posterior("silent_degradation")
    root, at = belief.prior.position, NAMES.index("user-db")

    def likelihood(lines=(), metrics=None):
        seen = Observation(1, 15, alerts=[], metrics=metrics, lines=lines)
        return belief._likelihood(seen, "all")

    texts = {}
    for index in range(400):
        for line in Episode(sample_incident("silent_degradation", "train", index)).opening.lines:
            name, reading = read_line(line)
            if name == "user-db":
                texts.setdefault(reading.kind, line)
    for kind in ("normal", "benign"):
        chance = belief.line_chance(at, [read_line(texts[kind])[1]], 1)
        ratio = likelihood([texts[kind]]) / likelihood()
        assert ratio[:, 0] == pytest.approx(chance)
        assert ratio[root != at, 1] == pytest.approx(chance[root != at])
        assert set(ratio[root == at, 1]) == {float(kind == "normal")}
    assert likelihood(metrics=[]) == pytest.approx(likelihood())


def test_what_contradicts_the_belief_is_believed_alone_unless_nothing_allows_it():
    belief = posterior("single_crash")
    # Two proofs at two places: no single fault causes both.
    text = "nightly report query runs for 10 min, sequential scan on orders, cpu 50%"
    for name in ("user-db", "payment-db"):
        belief.see(answered(f"LOG {name} {text}"), name)
        assert belief.roots()[DEFAULT_TOPOLOGY.position[name]] == pytest.approx(1.0)
    proofs = (
        "LOG user-db process still waiting for ExclusiveLock, 10 sessions queue behind it",
        "LOG user-db pg_sleep(10) stacked after a quoted user field by the web role",
    )
    with pytest.raises(ValueError, match="impossible under every hypothesis"):
        belief.see(answered(*proofs), "user-db")
