"""Incidents of `production`: drawn from a cause, the same everywhere, and nothing else moves."""

import hashlib

import numpy as np

from triagelab.realistic import generator, randomisation
from triagelab.realistic.generator import Block
from triagelab.realistic.mesh import AT, BLOCK, STYLES, consequences
from triagelab.realistic.randomisation import FAILURES, NO_FAULT, sizes

GOLDEN = ["d628f724496f742c", "402e1afa078214c0", "9eb28a123e32f906"]
BLOCKS = [Block("train", number) for number in range(6)]


def digest(block):
    """Of what is shown, to three digits: what the last bits of a sum may not change."""
    texts = []
    seen = block.seen
    for array in (seen.values, seen.usual, seen.waits[..., 2], block.lines.ordinary):
        texts.append(" ".join(f"{value:.3g}" for value in np.ravel(array)))
    texts.append(" ".join(map(str, block.root)))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def test_incidents_never_change():
    # Published results are of these; the same on Python 3.11 and 3.13.
    blocks = [Block("test", number) for number in range(3)]
    assert [digest(block) for block in blocks] == GOLDEN
    assert not np.array_equal(blocks[0].root, BLOCKS[0].root)  # of the other split


def test_a_fault_changes_its_root_and_what_follows_from_it():
    mesh = BLOCKS[0].mesh
    size = mesh.own.shape[1]
    for kind, fault in enumerate(FAILURES):
        # of middling strength, and with all groups showing
        strength = sizes(np.full(BLOCK, kind), np.full((BLOCK, 4), 0.5))
        for root in range(0, size, 3):
            change = consequences(mesh, np.full(BLOCK, root), strength)
            waits_or_fails = mesh.slowed[:, :, root] > 0.0
            neighbour = mesh.machine == mesh.machine[:, root, None]
            touched = waits_or_fails
            if "neighbours" in fault.effects:
                touched = touched | (mesh.slowed @ neighbour[:, :, None] > 0.0)[..., 0]
            assert not change.latency[~touched].any(), fault.name
            assert not change.errors[~waits_or_fails].any(), fault.name
            assert not change.node[~neighbour].any(), fault.name
            alone = np.arange(size) != root
            assert not change.cpu[:, alone].any() and not change.memory[:, alone].any(), fault.name


def test_what_a_style_does_not_measure_is_unknown():
    for block in BLOCKS:
        never = ~STYLES[block.mesh.style]
        never[:, AT["p95"]] = False  # in the place of a latency that is not measured
        for incident in range(BLOCK):
            assert np.isnan(block.seen.values[incident][:, never[incident]]).all()
        assert np.isnan(block.seen.values[:, :, AT["p95"]][block.requests == 0]).all()


def test_nothing_measured_is_infinite(monkeypatch):
    # as noise is once in ten thousand blocks
    monkeypatch.setattr(randomisation, "CALLS_P95", (500.0, 0.0))
    assert not np.isinf(Block("train", 0).seen.values).any()


def test_an_alert_tells_of_what_was_measured():
    # It must not prove a fault: whoever fails on its own alerts, too.
    without = 0
    for block in (*BLOCKS, *(Block("train", number) for number in range(6, 20))):
        failed = block.seen.alerts[..., 1] > 0.0
        after = block.failures[..., generator.ZERO + 1 :].sum(-1) > 0
        assert not (failed & ~after).any()
        without += int(failed[block.kind == NO_FAULT].any(1).sum())
    assert without > 0
