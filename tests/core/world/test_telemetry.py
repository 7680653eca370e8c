from collections import Counter

import pytest

from logtriage.world.cluster import Cluster
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS, TASKS
from logtriage.world.telemetry import DETAIL_LINES, LINE_KINDS, STREAM_LINES, Telemetry
from logtriage.world.wording import read_line


def eyes(incident):
    cluster = Cluster(incident.topology, incident.injection, incident.untreated, incident.arrival)
    return Telemetry(incident, cluster, incident.stream("telemetry"))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_every_line_reads_back_and_only_the_root_gives_the_fault_away(task, split):
    for index in range(20):
        incident = sample_incident(task, split, index)
        telemetry, names = eyes(incident), incident.topology.names
        lines = telemetry.opening_lines()
        assert len(lines) == STREAM_LINES
        for position in range(len(names)):
            detail = telemetry.detail(position)
            assert len(detail) == DETAIL_LINES
            lines += detail
        for line in lines:
            service, (kind, subject) = read_line(line)
            assert service in names and kind != "unknown", line
            assert kind != "callee" or subject in names, line
            if kind == "proof":
                assert (service, subject) == (incident.root, incident.injection.fault.name)
            elif kind == "hint":
                assert (service, subject) == (incident.root, incident.remedy)


def test_the_root_is_suppressed_at_first_and_not_for_ever():
    incidents = (sample_incident("cascading_failure", "train", index) for index in range(100))
    dark = [incident for incident in incidents if incident.quiet_until > incident.arrival]
    assert len(dark) > 30
    for incident in dark:
        telemetry = eyes(incident)
        assert all(
            line.split()[1] != incident.root or read_line(line)[1].kind == "benign"
            for line in telemetry.opening_lines()
        )
        assert incident.root not in {row.service for row in telemetry.metrics()}
        assert incident.root not in {alert.service for alert in telemetry.alerts()}
        while telemetry.cluster.tick < incident.quiet_until:
            telemetry.cluster.advance()
        assert telemetry.suppressed() is None


@pytest.mark.parametrize("split", ["train", "unseen_topology"])
def test_an_answer_about_all_services_does_not_show_who_is_suppressed(split):
    # A dark root speaks in it as often as anybody, in ordinary words; and whose row is missing in
    # the first table has none later, dark or not, and before or after the root speaks.
    spoke = asked = expected = 0
    for incident in (sample_incident("silent_degradation", split, k) for k in range(150)):
        telemetry = eyes(incident)
        rows = [row.service for row in telemetry.metrics()]
        for _ in range(6):
            said = [
                read_line(line)[1].kind
                for line in telemetry.sample()
                if line.split()[1] == incident.root
            ]
            if telemetry.suppressed() is not None:
                asked, spoke = asked + 1, spoke + len(said)
                expected += min(1.0, STREAM_LINES / len(incident.topology.names))
                assert set(said) <= {"normal"}
            assert [row.service for row in telemetry.metrics()] == rows
            telemetry.cluster.advance()
    assert asked > 150 and spoke == pytest.approx(expected, abs=4 * (asked / 4) ** 0.5)


def test_silent_degradation_rarely_raises_an_alert_at_first():
    def share(task):
        return sum(bool(eyes(sample_incident(task, "test", i)).alerts()) for i in range(200)) / 200

    assert share("silent_degradation") < 0.05
    assert share("single_crash") > 0.7 and share("cascading_failure") > 0.7


@pytest.mark.parametrize("task", TASKS)
def test_the_stream_prints_each_kind_of_line_as_often_as_announced(task):
    # As the table in `telemetry` has it: noise is benign; else a service speaks by loudness, and
    # prints by line weights.
    noise, incidents = TASKS[task].noise, 500
    expected, seen = Counter(benign=noise * incidents), Counter()
    for index in range(incidents):
        telemetry = eyes(sample_incident(task, "train", index))
        loudness = telemetry.log_volumes()
        for position, loud in enumerate(loudness):
            weights = telemetry.line_weights(position)
            assert dict(zip(LINE_KINDS, weights, strict=True))["benign"] == noise
            for kind, weight in zip(LINE_KINDS, weights, strict=True):
                expected[kind] += (1 - noise) * loud / sum(loudness) * weight / sum(weights)
        seen.update(read_line(line)[1].kind for line in telemetry.opening_lines())
    lines = incidents * STREAM_LINES
    assert seen.total() == lines and set(seen) <= set(LINE_KINDS)
    for kind in LINE_KINDS:
        share = expected[kind] / incidents
        deviation = (share * (1 - share) / lines) ** 0.5
        assert seen[kind] / lines == pytest.approx(share, abs=4 * deviation), kind
