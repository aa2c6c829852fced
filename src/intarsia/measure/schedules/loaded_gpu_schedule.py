"""Load a built schedule on the GPU of the process that runs it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Final, Self

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.schedules.gpu_schedule_kernel import GpuScheduleKernel
from intarsia.measure.schedules.loaded_task import GUARD, LoadedTask, loaded_task
from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_clock import CudaClock
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_graph import CudaGraph
from intarsia.runtime.cuda.cuda_kernel import opened_gpu
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

_KEPT_TASKS: Final = 2
"""Computations whose arrays stay on the GPU."""
_MOST_SETS: Final = 32
_CACHES: Final = 2
"""Size of the copies of operands in second-level caches: from this on no run finds its operands there."""
_BATCH_SECONDS: Final = 5e-4
"""Least time of a batch, if it has not too many runs."""
_MOST_RUNS: Final = 128


@dataclass(frozen=True, slots=True, eq=False)
class GpuTask:
    """A computation with its arrays on a GPU.

    Attributes:
        task: The computation with its arrays of the host.
        gpu: The GPU.
        operands: Contents of the placeholders, and copies of them, which runs take in turn.
        outputs: Memory of each output with the guards around it.
    """

    task: LoadedTask
    gpu: CudaContext
    operands: tuple[tuple[CudaBuffer, ...], ...]
    outputs: tuple[CudaBuffer, ...]

    @classmethod
    def put(cls, task: LoadedTask, gpu: CudaContext) -> Self:
        """Copy the arrays of a task to a GPU.

        Raises:
            MemoryError: The GPU has not as much memory.
        """
        outputs = tuple(gpu.put(output.memory) for output in task.outputs.values())
        return cls(task, gpu, _operand_sets(task, gpu), outputs)

    @property
    def slot_sets(self) -> list[list[int]]:
        """Addresses of the operands and the outputs, for each copy of the operands."""
        results = [buffer.address + GUARD for buffer in self.outputs]
        return [[*(buffer.address for buffer in buffers), *results] for buffers in self.operands]

    def spoil_outputs(self) -> None:
        """Overwrite the outputs and their guards before a checked run."""
        self.task.spoil_outputs()
        for output, buffer in zip(self.task.outputs.values(), self.outputs, strict=True):
            self.gpu.upload(buffer.address, output.memory)

    def check_outputs(self) -> Outcome:
        """Wait for the run, and compare the outputs with the reference.

        Raises:
            ExecutionError: A kernel failed.
        """
        for output, buffer in zip(self.task.outputs.values(), self.outputs, strict=True):
            self.gpu.download(output.memory, buffer.address)
        return self.task.check_outputs()


def _operand_sets(task: LoadedTask, gpu: CudaContext) -> tuple[tuple[CudaBuffer, ...], ...]:
    """Return copies of the operands, larger together than the cache; fewer where the memory ends before."""
    arrays = tuple(task.contents.values())
    size = sum(array.nbytes for array in arrays)
    sets = [tuple(map(gpu.put, arrays))]
    for _ in range(min(_MOST_SETS, ceil(_CACHES * gpu.cache_bytes / max(1, size))) - 1):
        try:
            sets.append(tuple(map(gpu.put, arrays)))
        except MemoryError:
            break
    return tuple(sets)


def gpu_task(path: Path) -> GpuTask:
    """Return the computation of a folder on the GPU of this process; the last ones stay there."""
    gpu = opened_gpu()
    return _gpu_task(path, gpu.identity)


@functools.lru_cache(_KEPT_TASKS)
def _gpu_task(path: Path, identity: int) -> GpuTask:  # noqa: ARG001  # another GPU has no arrays of the first
    return GpuTask.put(loaded_task(path, 1), opened_gpu())


@dataclass(eq=False)
class LoadedGpuSchedule(ClosedOnExit):
    """The kernels of a schedule on a GPU; as a context manager it frees their memory on exit.

    A batch of runs is recorded and started by one call of the driver, so that no time of the host is
    between its kernels.

    Attributes:
        task: Task whose outputs they write.
        program: The kernels.
        clock: Clock of the GPU.
        runs: Number of runs of a batch; 0 before it is recorded.
    """

    task: GpuTask
    program: LoadedProgram
    clock: CudaClock
    runs: int = 0
    _batch: CudaGraph | None = field(default=None)

    @classmethod
    def load(cls, task: GpuTask, built: GpuScheduleKernel) -> Self:
        """Load kernels for the arrays of their task.

        Raises:
            MemoryError: The GPU has not as much memory.
            ExecutionError: The driver refuses the code.
        """
        return cls(task, LoadedProgram(task.gpu, built.program), CudaClock(task.gpu))

    def checked_call(self) -> Outcome:
        """Run the kernels once, and compare their results with the reference."""
        self.task.spoil_outputs()
        self._run_with(self.task.slot_sets[0])
        return self.task.check_outputs()

    def time_once(self) -> float:
        """Return the seconds of one run by the events of the GPU, with the host's time between kernels."""
        return self.clock.seconds(lambda: self._run_with(self.task.slot_sets[0]))

    def record_batch(self, seconds: float) -> None:
        """Record the batch.

        Args:
            seconds: Seconds of a run, roughly.
        """
        sets = self.task.slot_sets
        self.runs = min(_MOST_RUNS, max(1, ceil(_BATCH_SECONDS / seconds))) if seconds > 0 else _MOST_RUNS

        def run_all() -> None:
            for number in range(self.runs):
                self._run_with(sets[number % len(sets)])

        self._batch = CudaGraph.record(self.task.gpu, run_all)

    def start_batch(self) -> None:
        """Start the runs of the batch."""
        assert self._batch is not None, "it is recorded first"
        self._batch.launch()

    def close(self) -> None:
        """Free the memory that the kernels have."""
        if self._batch is not None:
            self._batch.close()
        self.program.close()

    def _run_with(self, slots: Sequence[int]) -> None:
        self.program.launch_each(slots)
