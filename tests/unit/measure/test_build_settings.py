"""Candidates are built under the pass settings of their workload, in whatever process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ir_programs import relu, var
from tests.unit.measure.quick_testbed import quick_testbed

import intarsia as ia
from intarsia.build import build
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import build_candidate
from intarsia.measure.judge.judges import NATIVE, JudgeSession
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.testbed.parcel import PackedFolder
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.target import Target
from intarsia.toolchain.native.build import build_region
from intarsia.transform import PassContext, PassInfo, PassInstrument, PassSettings

TARGET = Target("cpu -toolchain=native -threads=1")
UNROLLED = {"tir.UnrollLoop": {"auto_max_step": 64}}


class Watch(PassInstrument):
    """Notes the passes that run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.seen.append(info.name)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def program() -> IRModule:
    x = var()
    return IRModule.from_expr(Function((x,), relu(x)))


def small_product() -> IRModule:
    """A product with sums of five terms, whose loop is small enough to be unrolled."""
    x = Var("x", checked_type=TensorType((32, 5), DType.FLOAT32))
    weight = Constant(np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32))
    return IRModule.from_expr(Function((x,), call("MatMul", x, weight)))


def workload(**settings: Any) -> Workload:
    """The product, as a workload that is made under a context."""
    with PassContext(**settings):
        return Workload(small_product(), "product")


def codes(executable: Executable) -> list[bytes]:
    """Object code of the kernels of the only region, from the artifact's own settings."""
    return [kernel.object_code for kernel in build_region(executable.kernels[0].source).kernels]


def built_codes(**settings: Any) -> list[bytes]:
    """Object code of the product, built here under a context."""
    with PassContext(**settings), build(partition_whole(small_product(), TARGET)) as executable:
        return codes(executable)


def test_the_default_settings_leave_the_keys_of_measurements_as_they_are() -> None:
    """These digests are keys of measurements that users have stored."""
    assert Workload(program()).digest == "ebbcc9dd3cf1f4cc0f393c85e83ee1e0"
    assert Workload(program(), by_structure=True).digest == "467b19a26396622f80e19810d142e69e"


@pytest.mark.parametrize("by_structure", [False, True])
def test_other_settings_make_other_workloads(by_structure: bool) -> None:
    digests = {Workload(program(), by_structure=by_structure).digest}
    for settings in ({"opt_level": 1}, {"config": UNROLLED}, {"disabled_pass": ["FoldConstant"]}):
        with PassContext(**settings):
            digests.add(Workload(program(), by_structure=by_structure).digest)
    with PassContext(instruments=[Watch()]):
        digests.add(Workload(program(), by_structure=by_structure).digest)
    assert len(digests) == 4


def test_a_folder_has_the_settings_also_after_it_was_sent(tmp_path: Path) -> None:
    folder = WorkloadFolder.write(workload(config=UNROLLED), tmp_path)
    assert folder.settings() == PassSettings.of(PassContext(config=UNROLLED))
    (tmp_path / "elsewhere").mkdir()
    sent = PackedFolder.pack(folder).open(tmp_path / "elsewhere")
    assert sent.settings() == folder.settings()
    assert WorkloadFolder.write(workload(), tmp_path).settings() == PassSettings()


@pytest.mark.parametrize(
    "settings", [{}, {"config": UNROLLED}, {"disabled_pass": ["LoopPartition"]}], ids=str
)
def test_a_task_builds_under_the_settings_of_the_workload(tmp_path: Path, settings: dict[str, Any]) -> None:
    folder, artifact = WorkloadFolder.write(workload(**settings), tmp_path), tmp_path / "built"
    with PassContext(opt_level=0):  # a context of the worker does not count
        outcome = build_candidate(folder.path, str(TARGET), WHOLE.kind, WHOLE.trace, artifact)
    assert outcome.error is MeasureError.OK, outcome.message
    with ia.load(artifact) as executable:
        assert executable.kernels[0].source.pass_settings == PassSettings.of(PassContext(**settings)).text
        assert codes(executable) == built_codes(**settings)


def test_settings_that_a_worker_does_not_have_are_a_failed_candidate(tmp_path: Path) -> None:
    asked = Workload(small_product(), settings=PassSettings('{"config":{"nobody.has":1}}'))
    folder = WorkloadFolder.write(asked, tmp_path)
    outcome = build_candidate(folder.path, str(TARGET), WHOLE.kind, WHOLE.trace, tmp_path / "built")
    assert outcome.error is MeasureError.INSTANTIATION
    assert "unknown config key 'nobody.has'" in outcome.message


@pytest.mark.processes
def test_workers_build_under_the_settings_of_each_workload(tmp_path: Path) -> None:
    asked = [MeasureInput(workload(**each), TARGET, WHOLE) for each in ({}, {"config": UNROLLED})]
    with quick_testbed(tmp_path) as testbed:
        found = list(testbed.measure(asked))
        assert [each.outcome.error for each in found] == [MeasureError.OK] * 2
        artifacts = [testbed.artifact(item) for item in asked]
        assert None not in artifacts
        with ia.load(str(artifacts[0])) as plain, ia.load(str(artifacts[1])) as unrolled:
            assert codes(plain) == built_codes()
            assert codes(unrolled) == built_codes(config=UNROLLED) != codes(plain)


def test_judges_are_compiled_under_the_default_context() -> None:
    watch = Watch()
    context = PassContext(disabled_pass=["LoopPartition"], instruments=[watch])
    with context, JudgeSession(NATIVE, small_product()) as session:
        assert not isinstance(session.run({"x": np.ones((32, 5), np.float32)}), Exception)
        assert session._executable is not None
        source = session._executable.kernels[0].source
    assert (source.pass_settings, watch.seen) == ("", [])
