"""Tuning on the workers of a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.command_line import Outcome, process
from tests.unit.measure.testbed.dask_processes import dask_processes

pytestmark = pytest.mark.processes

TUNE = ("tune", "zoo:mnist", "--budget", "1", "--target", "onnxruntime", "--target", "openvino")


def test_a_cluster_measures_and_this_machine_keeps(tmp_path: Path) -> None:
    place = ("--database", str(tmp_path / "measurements.db"))
    (tmp_path / "cluster").mkdir()
    with dask_processes(tmp_path / "cluster") as cluster:
        for _ in range(2):
            cluster.start_worker()
        cluster.expect_workers(2)
        outcome = process(*TUNE, *place, "--cluster", cluster.address, cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert "wrote mnist.intarsia" in outcome.out
    again = process(*TUNE, *place, "--json", cwd=tmp_path)
    assert again.code == 0
    latencies = {each["toolchain"]: each["latency_seconds"] for each in again.document["candidates"]}
    assert set(latencies) == {"onnxruntime", "openvino"}
    assert process("run", "mnist.intarsia", cwd=tmp_path).code == 0


def test_nobody_answers(tmp_path: Path) -> None:
    outcome = process(*TUNE, "-q", "--cluster", "tcp://127.0.0.1:9", cwd=tmp_path)
    assert outcome == Outcome(
        2,
        "",
        "error: no Dask scheduler answers at tcp://127.0.0.1:9 within 5 s\n"
        'help: start one with "dask scheduler", which prints its address, and workers with '
        '"dask worker ADDRESS"; or see that no firewall is between\n',
    )
