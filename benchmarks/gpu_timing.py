"""Times of `benchmarks.gpu`: runs in a row between two events of the GPU, over copies of the inputs.

A run of some microseconds is shorter than its launch by the host. So runs are recorded as one piece of
work, ours as well as torch's, which takes as long as the GPU does. Inputs are copied until they are larger
than the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any, Final

import numpy.typing as npt

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_clock import CudaClock
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_graph import CudaGraph
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

Array = npt.NDArray[Any]
WARM_UPS: Final = 3
_LEAST_SECONDS: Final = 1e-3
_MOST_RUNS: Final = 64
_MOST_COPIES: Final = 16
_MOST_BYTES: Final = 1 << 30
"""Memory that copies of the inputs may take."""
Batch = Callable[[], float]
"""Function that starts runs, waits for them, and returns the seconds of one."""


def copies_for(inputs: Sequence[Array], cache_bytes: int) -> int:
    """Return the number of copies of inputs that are larger together than twice the cache."""
    size = max(1, sum(array.nbytes for array in inputs))
    return max(1, min(_MOST_COPIES, ceil(2 * cache_bytes / size), _MOST_BYTES // size))


def runs_for(seconds: float) -> int:
    """Return the number of runs in a row of that many seconds each that can be timed."""
    return min(_MOST_RUNS, max(1, ceil(_LEAST_SECONDS / max(seconds, 1e-9))))


@dataclass(eq=False)
class NativeRuns:
    """Runs of a native program on copies of its inputs.

    Attributes:
        context: The GPU.
        program: The program.
        sets: Inputs and results of each copy.
        runs: Runs of a batch.
    """

    context: CudaContext
    program: LoadedProgram
    sets: list[list[CudaBuffer]]
    runs: int

    @classmethod
    def of(cls, context: CudaContext, program: LoadedProgram, inputs: Sequence[Array]) -> NativeRuns:
        """Copy the inputs, and count the runs of a batch by one of them."""
        results = [context.new_buffer(port.shape, port.dtype) for port in program.program.results]
        count = copies_for(inputs, context.cache_bytes)
        sets = [[*map(context.put, inputs), *results] for _ in range(count)]
        runs = cls(context, program, sets, 1)
        clock = CudaClock(context)
        for _ in range(WARM_UPS):
            seconds = clock.seconds(runs.start)
        clock.close()
        runs.runs = runs_for(seconds)
        return runs

    def start(self) -> None:
        """Start the runs of a batch one by one."""
        for number in range(self.runs):
            slots = self.sets[number % len(self.sets)]
            self.program.launch_each([buffer.address for buffer in slots])

    def batch(self) -> Batch:
        """Record a batch."""
        graph, clock = CudaGraph.record(self.context, self.start), CudaClock(self.context)
        return lambda: clock.seconds(graph.launch) / self.runs


def torch_batch(torch: Any, rival: Callable[..., Any], inputs: Sequence[Array], cache_bytes: int) -> Batch:
    """Record runs of a function of torch on copies of its inputs on the GPU.

    Args:
        torch: The module, with a GPU.
        rival: The function.
        inputs: Its inputs.
        cache_bytes: Size of the second-level cache of the GPU.
    """
    count = copies_for(inputs, cache_bytes)
    sets = [[torch.from_numpy(array).cuda() for array in inputs] for _ in range(count)]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def seconds(work: Callable[[], Any]) -> float:
        start.record()
        work()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3

    for _ in range(WARM_UPS):
        once = seconds(lambda: rival(*sets[0]))
    runs = runs_for(once)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(runs):
            rival(*sets[number % count])
    return lambda: seconds(graph.replay) / runs


def interleaved(batches: Sequence[Batch], rounds: int) -> list[float]:
    """Return the median seconds of a run of each, timed by turns."""
    samples = [[batch() for batch in batches] for _ in range(rounds)]
    return [median(column) for column in zip(*samples, strict=True)]
