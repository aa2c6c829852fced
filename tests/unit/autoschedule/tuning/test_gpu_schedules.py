"""Schedules of GPU kernels by their static cost: their programs compute the same on a fake GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_image
from tests.gpu_schedules import any_schedule
from tests.scheduled_products import NATIVE, product

import intarsia as ia
from intarsia.autoschedule.cost_model import StaticGpuModel
from intarsia.autoschedule.extraction.extract_gpu_tasks import extract_gpu_tasks
from intarsia.autoschedule.policy import PolicyOptions
from intarsia.autoschedule.task.facts_here import facts_here
from intarsia.autoschedule.tuning import gpu_schedules
from intarsia.autoschedule.tuning.gpu_schedules import gpu_schedule_log, is_for_gpu
from intarsia.native.gpu.default_gpu_state import default_gpu_state
from intarsia.native.gpu.static_cost import FACTS
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule import ScheduleLog
from intarsia.passes import partition_whole
from intarsia.runtime.cuda.gpu_facts import Gpus
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.toolchain.native.gpu import compile_program
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

pytest.importorskip("llvmlite", reason="schedules are of native kernels")
GPU = Target("cuda -toolchain=native")
FEW = PolicyOptions(
    sample_init_min_population=6, evolutionary_search_population=6, evolutionary_search_num_iters=1
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the user that is empty, on a machine without a GPU."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gpu_schedules, "gpus_here", Gpus)


def test_a_log_is_used_and_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_schedules, "least_static_cost", any_schedule)
    log = gpu_schedule_log(product(), GPU)
    (task,) = extract_gpu_tasks(product(), GPU, facts_here())
    state = log.lookup(task.task.dag)
    assert state is not None
    assert "blockIdx.x" in str(state)
    log.save(schedule_folder())
    x = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
    with ia.build(product(), NATIVE) as exe:
        (kernel,) = exe.kernels
        source, expected = kernel.source, exe(x)
    scheduled = compile_program.compile_program(_with_log(source, log.digest), "sm_80", fake_image)
    plain = compile_program.compile_program(_with_log(source, None), "sm_80", fake_image)
    assert [launch.threads for launch in scheduled.launches] != [launch.threads for launch in plain.launches]
    context = fake_context()
    loaded = LoadedProgram(context, scheduled)
    (result,) = loaded.run([x])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    loaded.close()
    context.close()


def _with_log(source: KernelSource, digest: str | None) -> KernelSource:
    return replace(source, target=str(GPU.with_options(schedules=digest)))


def test_a_schedule_that_cannot_be_lowered_costs_speed_only() -> None:
    (task,) = extract_gpu_tasks(product(), GPU, facts_here())
    name = task.task.dag.outputs[0].op.name
    refused = LoopState.initial(task.task.dag).bind(name, 0, "threadIdx.y")
    kernels = compile_program.kernels_for(task.task.dag, ScheduleLog.of_states([refused]))
    assert kernels == compile_program.kernels_for(task.task.dag, None)


def test_a_log_that_is_not_there_is_an_error() -> None:
    with ia.build(product(), NATIVE) as exe:
        (kernel,) = exe.kernels
        source = _with_log(kernel.source, "0123456789abcdef")
    with pytest.raises(CompileError, match="there is no schedule log"):
        compile_program.compile_program(source, "sm_80", fake_image)


@pytest.mark.slow  # seconds: a search
def test_a_search_by_static_cost_logs_what_costs_less_only() -> None:
    log = gpu_schedule_log(product(), GPU, options=FEW)
    (task,) = extract_gpu_tasks(product(), GPU, facts_here())
    model, state = StaticGpuModel(facts_here()), log.lookup(task.task.dag)
    if state is not None:
        found, given = model.predict(task.task, [state, default_gpu_state(task.task.dag)])
        assert found > given


def test_a_stopped_search_has_no_schedules() -> None:
    assert len(gpu_schedule_log(product(), GPU, should_stop=lambda: True)) == 0


def test_programs_for_a_gpu_are_told_from_others() -> None:
    assert is_for_gpu(product(), GPU)
    assert not is_for_gpu(product(), NATIVE)
    assert is_for_gpu(partition_whole(product(), GPU), None)
    assert not is_for_gpu(partition_whole(product(), NATIVE), None)
    assert not is_for_gpu(product(), None)
    assert facts_here() == FACTS["sm_80"]
