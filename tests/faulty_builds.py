"""Builds of schedules that go wrong, as a number in the schedule says; workers find them in this module."""

from __future__ import annotations

import os
from dataclasses import replace
from enum import IntEnum
from pathlib import Path

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import PlainData
from intarsia.measure.schedules.build_schedule import build_schedule, compile_steps, steps_of
from intarsia.measure.schedules.kernel_folder import KernelFolder
from intarsia.measure.schedules.schedule_kernel import ScheduleKernel, compile_schedule
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.schedule import with_state

HANGING = "hanging"
"""The file in a task's folder that says that a build hangs."""

_HINT = "auto_unroll_max_step$"


class Fault(IntEnum):
    """What goes wrong."""

    BUILD_RAISES = 9001
    BUILD_ABORTS = 9002
    BUILD_HANGS = 9003
    BUILD_TAKES_ALL_MEMORY = 9004
    OTHER_LOOPS = 9005
    WRITES_NOTHING = 9006
    WRITES_BEHIND = 9007
    RUN_CRASHES = 9008
    RUN_HANGS = 9009
    DAMAGED_CODE = 9010


_BODIES = {
    Fault.WRITES_NOTHING: "  ret void",
    Fault.RUN_CRASHES: "  store volatile i32 1, ptr null\n  ret void",
    Fault.RUN_HANGS: "  br label %again\nagain:\n  br label %again",
}


def with_fault(state: LoopState, stage: str, fault: Fault) -> LoopState:
    """The state with a hint that the builds of this module know."""
    return state.pragma(stage, 0, f"{_HINT}{fault.value}")


def build_with_fault(folder: Path, trace: PlainData, artifact: Path, most_stores: int | None) -> Outcome:
    """Build as always, unless a hint asks for a fault."""
    steps, layout = steps_of(trace)
    hints = [step[-1].removeprefix(_HINT) for step in steps if step[0] == "PR"]
    faults = [Fault(int(hint)) for hint in hints if int(hint) in set(Fault)]
    if not faults:
        return build_schedule(folder, trace, artifact, most_stores)
    match faults[0]:
        case Fault.BUILD_RAISES:
            raise ArithmeticError("the build lost count")
        case Fault.BUILD_ABORTS:
            os.abort()
        case Fault.BUILD_HANGS:
            (folder / HANGING).touch()
            while True:
                pass
        case Fault.BUILD_TAKES_ALL_MEMORY:
            raise MemoryError("there is none left")
        case _:
            built = compile_steps(folder, [step for step in steps if step[0] != "PR"], layout)
            assert isinstance(built, ScheduleKernel)
            _changed(folder, built, faults[0]).save(artifact)
            return Outcome()


def _changed(folder: Path, built: ScheduleKernel, fault: Fault) -> ScheduleKernel:
    """A kernel with the right parameters that does something else."""
    isa = built.kernel.isa
    match fault:
        case Fault.OTHER_LOOPS:
            dag = _differences(KernelFolder(folder).program().dag)
            return compile_schedule(with_state(dag, LoopState.initial(dag)), isa)
        case Fault.DAMAGED_CODE:
            return replace(built, kernel=replace(built.kernel, object_code=b"no object code"))
        case _:
            body = _BODIES.get(fault) or _behind(built)
            text = f"define void @kernel(ptr %arguments, ptr %runtime) {{\n{body}\n}}\n"
            code = generate_object_code(text, isa)
            return replace(built, kernel=replace(built.kernel, object_code=code))


def _differences(product: ComputeDAG) -> ComputeDAG:
    """Sums of differences in place of products, with the same placeholders and results."""
    (a, b), (c,) = product.placeholders, product.outputs
    k = te.reduce_axis(a.shape[1], "k")
    return ComputeDAG(
        (a, b, te.compute(c.shape, lambda i, j: te.sum(a[i, k] - b[k, j], axis=k), name=c.buffer.name))
    )


def _behind(built: ScheduleKernel) -> str:
    """Writes the element behind the last one of the result."""
    *_, result = built.kernel.parameters
    place = len(built.kernel.parameters) - 1
    size = result.dtype.itemsize
    for extent in result.shape:
        size *= extent
    return (
        f"  %slot = getelementptr ptr, ptr %arguments, i64 {place}\n"
        "  %result = load ptr, ptr %slot\n"
        f"  %behind = getelementptr i8, ptr %result, i64 {size}\n"
        "  store float 1.0, ptr %behind\n  ret void"
    )
