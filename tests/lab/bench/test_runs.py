"""The GPU of this machine, as its driver describes it."""

import os

import pytest

from triagelab.bench.runs import Gpu, find_gpu


@pytest.mark.parametrize(
    "line, gpu, text",
    [
        ("Tesla T4, 15360, 7.5", Gpu("Tesla T4", 16.1, False), "Tesla T4, 16 GB, no bf16"),
        # Of memory that it shares with the processor the driver does not know the size.
        ("NVIDIA GB10, [N/A], 12.1", Gpu("NVIDIA GB10", None, True), "NVIDIA GB10"),
        ("Orin (nvgpu), [N/A], [N/A]", Gpu("Orin (nvgpu)", None, False), "Orin (nvgpu), no bf16"),
    ],
)
def test_a_gpu_is_found_whatever_its_driver_leaves_out(line, gpu, text, tmp_path, monkeypatch):
    driver = tmp_path / "nvidia-smi"
    driver.write_text(f"#!/bin/sh\necho '{line}'\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ours = find_gpu()
    assert (ours.name, ours.bf16, str(ours)) == (gpu.name, gpu.bf16, text)
    assert ours.memory_gb == pytest.approx(gpu.memory_gb, abs=0.05)
