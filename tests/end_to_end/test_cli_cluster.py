"""Tuning on the workers of a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.command_line import Outcome, process
from tests.unit.measure.testbed import other_workers
from tests.unit.measure.testbed.dask_processes import dask_processes
from tests.unit.measure.testbed.other_workers import UNLIKE

from intarsia.toolchain.this_host import this_host

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
    assert set(latencies) >= {"onnxruntime", "openvino"}  # a fast machine has time for a mix, too
    assert process("run", "mnist.intarsia", cwd=tmp_path).code == 0


def test_every_host_gets_an_artifact(tmp_path: Path) -> None:
    place = ("--database", str(tmp_path / "measurements.db"))
    (tmp_path / "cluster").mkdir()
    with dask_processes(tmp_path / "cluster") as cluster:
        cluster.start_worker()
        preload = ("--preload", str(other_workers.__file__))
        cluster.start_worker(*preload, environment={UNLIKE: "another machine"})
        cluster.expect_workers(2)
        every = ("--cluster", cluster.address, "--every-host")
        outcome = process(*TUNE, *place, *every, "--json", cwd=tmp_path)
        assert outcome.code == 0, outcome.err
        text = process(*TUNE, *place, *every, cwd=tmp_path)
    hosts = outcome.document["hosts"]
    assert sorted(host["host"]["cores"] for host in hosts) == sorted({this_host().cores, 777})
    for host in hosts:
        assert host["file"] == f"mnist.{host['machine']}.intarsia"
        assert process("run", host["file"], cwd=tmp_path).code == 0
        assert f"wrote {host['file']}" in text.out
    head, *rows = text.out.splitlines()[: 1 + len(hosts)]
    assert head.split()[:3] == ["machine", "CPU", "cores"]
    assert {row.split()[0] for row in rows} == {host["machine"] for host in hosts}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--every-host needs the workers of a cluster"),
        (
            ("--cluster", "tcp://127.0.0.1:9", "--plan", "x.plan"),
            "--every-host gives an artifact for each machine, and takes no --plan",
        ),
        (
            ("--cluster", "tcp://127.0.0.1:9", "--require-latency", "5"),
            "--every-host gives an artifact for each machine, and takes no --require-latency",
        ),
    ],
)
def test_what_every_host_does_not_go_with(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    outcome = process(*TUNE, "--every-host", *flags, cwd=tmp_path)
    assert outcome.code == 2
    assert message in outcome.err


def test_nobody_answers(tmp_path: Path) -> None:
    outcome = process(*TUNE, "-q", "--cluster", "tcp://127.0.0.1:9", cwd=tmp_path)
    assert outcome == Outcome(
        2,
        "",
        "error: no Dask scheduler answers at tcp://127.0.0.1:9 within 5 s\n"
        'help: start one with "dask scheduler", which prints its address, and workers with '
        '"dask worker ADDRESS"; or see that no firewall is between\n',
    )
