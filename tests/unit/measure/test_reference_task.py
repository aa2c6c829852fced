"""Judges that hang or crash are left out; the report says so, and the run goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import tests.faulty_judges as faulty_judges
from tests.unit.measure.quick_testbed import HOST, WORKLOAD

import intarsia as ia
from intarsia.measure.judge.gate import Gate
from intarsia.measure.testbed import local
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.support.errors import ExecutionError
from intarsia.tune.contest.candidate_record import Status

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")

LIMIT_S = 4.0
UNOPTIMISED = "onnxruntime without optimisations"


def judged(parent: Path, monkeypatch: pytest.MonkeyPatch, conduct: str, limit_s: float = 60.0) -> Gate:
    """The gate of the small workload, where engines misbehave."""
    monkeypatch.setenv(faulty_judges.CONDUCT, conduct)
    limits = TestbedLimits(run_seconds=limit_s)
    preload = (faulty_judges.__name__,)
    with LocalTestbed.open(HOST, workers=1, limits=limits, preload=preload, parent=parent) as testbed:
        return testbed.prepare(WORKLOAD).gate()


@pytest.mark.slow
def test_a_judge_that_hangs_is_left_out_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the interpreter's lock, so that no thread of its process could end it."""
    begun = time.perf_counter()
    gate = judged(tmp_path, monkeypatch, "reference=hang", LIMIT_S)
    assert time.perf_counter() - begun < 10 * LIMIT_S
    assert gate.is_proven
    assert gate.reference.startswith(f"{UNOPTIMISED}, confirmed by openvino (")
    assert f"; failed: onnx.reference (it took more than {LIMIT_S:g} s)" in gate.reference


@pytest.mark.slow
def test_judges_that_crash_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = judged(tmp_path, monkeypatch, "reference=crash,onnxruntime=crash")
    assert gate.is_proven
    assert gate.reference.startswith("openvino, confirmed by native without fusion (")
    for name in ("onnx.reference", UNOPTIMISED):
        assert f"; failed: {name} (its process was killed by SIGABRT)" in gate.reference


@pytest.mark.slow
def test_without_any_judge_there_is_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = ",".join(f"{name}=crash" for name in ("reference", "onnxruntime", "openvino", "native"))
    with pytest.raises(ExecutionError, match="no toolchain that could judge results is usable"):
        judged(tmp_path, monkeypatch, everyone)


@pytest.mark.slow
def test_tune_goes_on_without_a_judge_that_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faulty_judges.CONDUCT, "openvino=crash")
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, faulty_judges.__name__))
    targets = ["cpu -toolchain=onnxruntime", "cpu -toolchain=reference"]
    result = ia.tune(WORKLOAD.module, budget=1, targets=targets, partitions=False, passes=[])
    assert {item.status for item in result.candidates} <= {Status.MEASURED, Status.SLOW}
