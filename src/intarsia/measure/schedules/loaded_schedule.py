"""Load a built schedule in the process that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Self

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.schedules.loaded_task import LoadedTask
from intarsia.measure.schedules.schedule_kernel import ScheduleKernel
from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.partial_loops import PartialLoops
from intarsia.support.closed_on_exit import ClosedOnExit


@dataclass(frozen=True, slots=True, eq=False)
class LoadedSchedule(ClosedOnExit):
    """A kernel in memory, with the arrays of its task; as a context manager it frees its code on exit.

    Attributes:
        task: Task whose outputs the kernel writes.
        function: The kernel.
        call: Function that runs the kernel once, on the threads of the task.
        call_part: Function that runs a part of the kernel's parallel loops on the given pool.
    """

    task: LoadedTask
    function: NativeFunction
    call: Callable[[], object]
    call_part: Callable[[PartialLoops], object]

    @classmethod
    def load(cls, task: LoadedTask, built: ScheduleKernel, operand_bytes: int = 0) -> Self:
        """Load a kernel for the arrays of its task; constants are packed as it reads them.

        Args:
            task: Task of the kernel.
            built: The kernel.
            operand_bytes: Least number of bytes of the copies of the operands that calls cycle through.

        Raises:
            ArtifactError: The object code is damaged, or needs features that this machine lacks.
            InputError: An array does not fit its parameter.
        """
        function = built.kernel.load()
        packings = {packing.tensor_name: packing for packing in built.packings}
        given = tuple(
            task.packed_contents(packings[name]) if name in packings else task.contents[name]
            for name in built.reads
        )
        outputs = tuple(output.array for output in task.outputs.values())
        sets = task.operand_sets(given, operand_bytes)
        tables = cycle([CallTable((KernelCall(function, (*operands, *outputs)),)) for operands in sets])
        return cls(task, function, lambda: next(tables).run(task.pool), lambda part: next(tables).run(part))

    def checked_call(self) -> Outcome:
        """Run the kernel once, and compare its results with the reference."""
        self.task.spoil_outputs()
        self.call()
        return self.task.check_outputs()

    def close(self) -> None:
        """Free the code."""
        self.function.code.unload()
