"""The tasks of a program are the kernels that native builds of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from intarsia.autoschedule.extraction import extract_tasks
from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Call as CallExpr
from intarsia.ir import Constant, DType, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.ir.attributes import Attrs
from intarsia.measure.inputs import random_inputs
from intarsia.native.dag import structural_key
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduleLog, default_state
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.native.build import build_region
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.toolchain.native.plan import planned_region

TARGET = Target("cpu -toolchain=native -threads=2")
WEIGHT = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)


def model(name: str) -> IRModule:
    return from_onnx(build_model(name, 0))


def built_source(mod: IRModule) -> KernelSource:
    """What a build compiles of a model that is given to native as a whole."""
    with build(partition_whole(mod, TARGET)) as executable:
        (source,) = (kernel.source for kernel in executable.kernels)
    return source


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernels"), [("squeezenet", 31), ("mobilenet_v2", 54)])
def test_the_kernels_of_a_model(name: str, kernels: int) -> None:
    # With vectors of 64 bytes squeezenet has one kernel more: every CPU is asked for the same ones.
    tasks = extract_tasks(model(name), TARGET.with_options(wide_vectors=False))
    assert sum(task.weight for task in tasks) == kernels
    assert max(task.weight for task in tasks) > 1
    assert len({task.key for task in tasks}) == len(tasks)
    assert len({task.task.workload_key for task in tasks}) == len(tasks)
    assert all(task.bytes_moved > 0 for task in tasks)
    assert [task.flop_count for task in tasks if task.name.startswith("from_blocked")] in ([0], [])


def test_the_tasks_are_what_is_built() -> None:
    mod = model("mnist")
    plan = planned_region(built_source(mod)).plan
    tasks = extract_tasks(mod, TARGET)
    assert [task.key for task in tasks] == [structural_key(kernel.dag) for kernel in plan.kernels]
    assert [task.name for task in tasks] == [kernel.name for kernel in plan.kernels]
    for task in tasks:
        assert task.task.target == TARGET
        assert task.task.layout_rewrite_option is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        assert task.task.hardware.num_cores == 2
        assert str(task.default_state) == str(default_state(task.task.dag, Isa.host(), 2))


@pytest.mark.slow
def test_a_book_of_default_states_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mod = model("mnist")
    log = ScheduleLog.of_states(task.default_state for task in extract_tasks(mod, TARGET))
    log.save(schedule_folder())
    inputs = random_inputs(mod["main"], 0)
    found, codes = [], []
    for target in (TARGET, TARGET.with_options(schedules=log.digest)):
        with build(partition_whole(mod, target)) as executable:
            found.append(executable(**inputs))
            (source,) = (kernel.source for kernel in executable.kernels)
        codes.append([kernel.object_code for kernel in build_region(source).kernels])
    assert codes[0] == codes[1]
    np.testing.assert_array_equal(found[0], found[1])


def test_a_book_of_the_target_is_not_part_of_the_task() -> None:
    mod = model("mnist")
    plain, logged = (
        extract_tasks(mod, target) for target in (TARGET, TARGET.with_options(schedules="0" * 16))
    )
    assert [task.task.record_task for task in plain] == [task.task.record_task for task in logged]


def var(name: str) -> Var:
    return Var(name, checked_type=TensorType((4, 16), DType.FLOAT32))


def marked(name: str, toolchain: str, op: str) -> tuple[GlobalVar, Function]:
    """A function that a partitioner has given to a toolchain."""
    x = var(f"{name}_x")
    body = call(op, call("MatMul", x, Constant(WEIGHT)))
    target = f"cpu -toolchain={toolchain} -threads=1"
    function = Function((x,), body, Attrs({"Compiler": toolchain, "target": target, "global_symbol": name}))
    return GlobalVar(name, checked_type=function.checked_type), function


def partitioned() -> IRModule:
    """Two functions for native that differ in the end, one of them called twice, and one for another."""
    functions = dict(
        marked(*each)
        for each in (("a", "native", "Relu"), ("b", "native", "Tanh"), ("c", "reference", "Relu"))
    )
    a, b, c = functions
    x = var("x")
    body: Var | CallExpr = x
    for callee in (a, c, b, a):
        body = CallExpr(callee, (body,), checked_type=x.checked_type)
    main = Function((x,), body)
    return IRModule({GlobalVar("main", checked_type=main.checked_type): main, **functions})


def test_the_functions_that_a_program_gives_to_native() -> None:
    mod = partitioned()
    tasks = extract_tasks(mod)
    assert [task.weight for task in tasks] == [2, 1]
    assert [task.task.hardware.num_cores for task in tasks] == [1, 1]
    assert [task.task.target for task in tasks] == [Target("cpu -toolchain=native -threads=1")] * 2
    with build(mod) as executable:
        sources = [each.source for each in executable.kernels if each.source.toolchain == "native"]
    keys = [
        structural_key(kernel.dag) for source in sources for kernel in planned_region(source).plan.kernels
    ]
    assert [task.key for task in tasks] == keys


def test_a_program_without_native_parts_has_no_tasks() -> None:
    assert extract_tasks(model("mnist")) == ()


def test_what_native_cannot_do_is_an_error() -> None:
    x = Var("x", checked_type=TensorType((4,), DType.FLOAT32))
    mod = IRModule.from_expr(Function((x,), call("Unique", x)))
    with pytest.raises(CompileError, match="native cannot compile this"):
        extract_tasks(mod, TARGET)


def gathered(indices: list[int]) -> IRModule:
    """Rows of an input, chosen by a constant."""
    x = var("x")
    chosen = Constant(np.array(indices, np.int64))
    return IRModule.from_expr(Function((x,), call("Gather", x, chosen)))


def test_constants_that_are_no_floats_are_kept() -> None:
    (task,) = extract_tasks(gathered([3, 1, 1]), TARGET)
    (array,) = task.task.task_inputs.values()
    np.testing.assert_array_equal(array, [3, 1, 1])
    assert task.weight == 1
