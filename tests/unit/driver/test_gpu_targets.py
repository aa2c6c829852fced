"""`tune` on a target of a GPU, beside one of the CPU, in worker processes with a fake driver."""

from __future__ import annotations

import pytest
from tests.gpu_on_cpu import at_hand
from tests.gpu_on_cpu.fake_machine import machine_with_gpus

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.measure.testbed import local
from intarsia.tune.contest.candidate_record import Status

pytestmark = pytest.mark.processes


def test_a_gpu_is_a_candidate_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, at_hand.__name__))
    with machine_with_gpus():
        result = ia.tune(
            build_model("mnist"),
            targets=["native", "cuda -toolchain=native"],
            passes=[],
            budget=6,
            database=False,
        )
        assert result.host.gpus
    records = {record.name: record for record in result.candidates}
    assert set(records) == {"native", "native on cuda"}
    gpu = records["native on cuda"]
    assert gpu.target == "cuda -toolchain=native"
    assert gpu.status not in {Status.FAILED, Status.WRONG, Status.UNAVAILABLE}, gpu.reason
    assert gpu.timing is not None


def test_a_gpu_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")
    result = ia.tune(
        build_model("mnist"),
        targets=["reference", "cuda -toolchain=native"],
        passes=[],
        budget=3,
        database=False,
    )
    (record,) = (record for record in result.candidates if record.name == "native on cuda")
    assert record.status is Status.UNAVAILABLE
    assert "toolchain 'native' is not usable on cuda here: there is no NVIDIA driver" in record.reason
