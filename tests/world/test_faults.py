from logtriage.world.call_graph import KINDS, TEAMS
from logtriage.world.faults import FAULTS, REMEDIES, faults_at
from logtriage.world.topology import DEFAULT_TOPOLOGY
from logtriage.world.wording import BOOKS


def test_a_remedy_does_not_give_the_team_away():
    for remedy in REMEDIES:
        teams = {
            fault.owner_at(service)
            for fault in FAULTS.values()
            if fault.remedy == remedy
            for service in DEFAULT_TOPOLOGY.services
            if fault.can_occur_at(service)
        }
        assert len(teams) >= 2 and teams <= set(TEAMS), remedy
    # Nor a kind of service the fault.
    assert all(len(faults_at(service)) >= 3 for service in DEFAULT_TOPOLOGY.services)


def test_every_fault_leaves_evidence_wherever_it_can_occur_at():
    for fault in FAULTS.values():
        for kind in fault.kinds:
            for section, subject in (("proof", fault.name), ("hint", fault.remedy)):
                assert (subject, kind) in BOOKS[section], (
                    f"wording.txt lacks a section [{section} {subject} {kind}]"
                )
    # and every entry keeps a template back for `unseen_wording`
    for section, book in BOOKS.items():
        for key, lines in book.items():
            assert len(set(lines)) == len(lines) >= 2, (
                f"wording.txt: [{section} {' '.join(key)}] needs two lines at least, none twice"
            )
    assert set(BOOKS["normal"]) == set(BOOKS["benign"]) == {(kind,) for kind in KINDS}
