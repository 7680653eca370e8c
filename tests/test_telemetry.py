import re
from collections import Counter

import pytest

from logtriage.cluster import Cluster
from logtriage.incidents import SPLITS, TASKS, sample_incident
from logtriage.telemetry import DETAIL_LINES, STREAM_LINES, Telemetry, figure, read_line
from logtriage.wording import BOOKS


def eyes(incident):
    cluster = Cluster(incident.topology, incident.injection, incident.untreated, incident.arrival)
    return Telemetry(incident, cluster, incident.stream("telemetry"))


def test_figures_are_short_and_right():
    assert [figure(x) for x in (0.0, 0.04, 0.06, 1.0, 9.94, 9.96, 12.4, 99.6, 149.0, 1234.0, 2999.0)] == [
        "0",
        "0",
        "0.1",
        "1",
        "9.9",
        "10",
        "12",
        "100",
        "150",
        "1200",
        "3000",
    ]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("task", TASKS)
def test_every_line_reads_back_to_its_service(task, split):
    for index in range(30):
        incident = sample_incident(task, split, index)
        telemetry = eyes(incident)
        lines = telemetry.stream()
        assert len(lines) == STREAM_LINES
        for position in range(len(incident.topology.names)):
            detail = telemetry.detail(position)
            assert len(detail) == DETAIL_LINES
            lines += detail
        for line in lines:
            service, reading = read_line(line)
            assert service in incident.topology.position, line
            assert reading.kind != "unknown", line
            if reading.kind == "callee":
                assert reading.subject in incident.topology.position, line


def test_proofs_come_from_the_root_only_and_name_its_fault():
    for index in range(100):
        incident = sample_incident("single_crash", "train", index)
        telemetry = eyes(incident)
        for position, name in enumerate(incident.topology.names):
            for line in telemetry.detail(position):
                _, reading = read_line(line)
                if reading.kind == "proof":
                    assert (name, reading.subject) == (incident.root, incident.injection.fault.name)
                elif reading.kind == "hint":
                    assert (name, reading.subject) == (incident.root, incident.remedy)


def test_numbers_in_lines_agree_with_the_state():
    seen = 0
    for index in range(200):
        incident = sample_incident("cascading_failure", "train", index)
        telemetry, state = eyes(incident), incident.untreated[incident.arrival]
        for line in telemetry.stream():
            found = re.match(r"ERROR (\S+) ([\d.]+)% of requests answered 5xx", line)
            if found:
                position = incident.topology.position[found[1]]
                assert found[2] == figure(100 * state.errors[position])
                seen += 1
    assert seen > 20


def test_the_root_is_dark_at_first_and_not_for_ever():
    dark = [i for i in (sample_incident("cascading_failure", "train", k) for k in range(100)) if i.quiet_until > i.arrival]
    assert len(dark) > 30
    for incident in dark:
        telemetry = eyes(incident)
        assert all(line.split()[1] != incident.root or read_line(line)[1].kind == "benign" for line in telemetry.stream())
        assert incident.root not in {row.service for row in telemetry.metrics()}
        assert incident.root not in {alert.service for alert in telemetry.alerts()}
        while telemetry.cluster.tick < incident.quiet_until:
            telemetry.cluster.advance()
        assert telemetry.dark() == -1


def test_silent_degradation_raises_no_alert_at_first():
    incidents = [sample_incident("silent_degradation", "test", index) for index in range(200)]
    assert sum(bool(eyes(i).alerts()) for i in incidents) / 200 < 0.1


def test_noise_is_as_announced():
    # An innocent cluster prints nothing but noise and normal lines; the stream's share of noise is at least the task's.
    for task, settings in TASKS.items():
        kinds = Counter(
            read_line(line)[1].kind for index in range(300) for line in eyes(sample_incident(task, "train", index)).stream()
        )
        assert kinds["benign"] / sum(kinds.values()) >= settings.noise - 0.03


def test_unseen_wording_shares_no_template_with_train():
    def texts(split):
        lines = [line for i in range(150) for line in eyes(sample_incident("single_crash", split, i)).stream()]
        return {re.sub(r"[\d.]+|\S+-\S+", "#", line) for line in lines}

    assert not texts("train") & texts("unseen_wording")
    assert texts("train") & texts("test")


def test_unknown_text_is_read_as_unknown():
    assert read_line("ERROR api-gateway the dog ate the packets")[1].kind == "unknown"
    assert read_line("")[1].kind == "unknown"


def test_wording_is_unambiguous():
    # A text that two entries could have printed would make reading a guess. Levels and kinds of service tell apart.
    seen = {}
    for kind, book in BOOKS.items():
        for key, templates in book.items():
            for template in templates:
                other = seen.setdefault(template, (kind, key))
                assert other[0] == kind and other[1][:-1] == key[:-1], template
