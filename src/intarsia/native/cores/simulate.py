"""The time of a plan on a machine with any number of cores, by the machine model.

A kernel's cycles on one core are given. They are divided among its phases by their work and among the
iterations of a loop evenly. A core waits besides for each line that another core wrote last, which comes at
the rate of the last-level cache while all cores load. What is left out: bandwidth of memory that cores share,
caches that are too small, clusters of cores, frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.native.cores.chunk_order import LoopTime, chunk_bounds, run_loop
from intarsia.native.cores.line_holders import MOST_CORES, LineHolders
from intarsia.native.cores.plan_loops import LoopsOfKernel
from intarsia.native.cores.touched_lines import TouchedLines
from intarsia.native.execution.crew import CHUNKS_PER_THREAD
from intarsia.native.graph.region_plan import KernelPlan, RegionPlan
from intarsia.target.machine_model import MachineModel

_RUNS: Final = 2
"""Number of runs, of which the last counts: in the first, no core has anything."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The simulated time of a kernel.

    Attributes:
        name: Name of the kernel.
        alone: Cycles on one core.
        cycles: Cycles on all cores.
        barriers: Number of parallel loops, each of which all threads begin and end together.
        moved_bytes: Bytes of lines that a core got from another one, which wrote them last.
        waiting: Cycles of all cores together between the end of their chunks and that of the kernel.
        serial: Cycles that the calling thread runs alone.
    """

    name: str
    alone: float
    cycles: float
    barriers: int
    moved_bytes: int
    waiting: float
    serial: float


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A run of a plan on several cores.

    Attributes:
        cores: Number of cores.
        kernels: Time of each kernel, in the order in which they run.
    """

    cores: int
    kernels: tuple[KernelTime, ...]

    @property
    def cycles(self) -> float:
        """Cycles of the run."""
        return sum(kernel.cycles for kernel in self.kernels)

    @property
    def moved_bytes(self) -> int:
        """Bytes of lines that cores got from others, which wrote them last."""
        return sum(kernel.moved_bytes for kernel in self.kernels)

    @property
    def waiting_share(self) -> float:
        """Share of the time of all cores in which they wait for others."""
        return sum(kernel.waiting for kernel in self.kernels) / max(1.0, self.cores * self.cycles)


def simulate_plan(
    plan: RegionPlan,
    loops: Mapping[int, LoopsOfKernel],
    cycles: Sequence[float],
    cores: int,
    machine: MachineModel,
) -> SimulatedRun:
    """Return the time of a plan on a number of cores.

    Args:
        plan: The plan, made for as many threads.
        loops: Loops of each computation, by the `id` of its DAG.
        cycles: Cycles of each kernel on one core.
        cores: Number of cores, from 1 to `MOST_CORES`, each with one thread.
        machine: Model of the machine.
    """
    assert 1 <= cores <= MOST_CORES
    simulation = _Simulation(plan, loops, cores, machine)
    for _ in range(_RUNS):
        times = tuple(map(simulation.run_kernel, range(len(plan.kernels)), cycles))
    return SimulatedRun(cores, times)


class _Simulation:
    """The state of a run: which core has which line."""

    def __init__(
        self,
        plan: RegionPlan,
        loops: Mapping[int, LoopsOfKernel],
        cores: int,
        machine: MachineModel,
    ) -> None:
        self._plan, self._loops = plan, loops
        self._cores, self._machine = cores, machine
        self._first_lines, behind = _first_lines(plan, machine.line_bytes)
        self._scratch = behind
        most = max((sum(map(self._lines, item.shared.values())) for item in loops.values()), default=0)
        self._holders = LineHolders(behind + most)

    def run_kernel(self, number: int, cycles: float) -> KernelTime:
        """Run a kernel that takes some cycles on one core."""
        kernel = self._plan.kernels[number]
        loops = self._loops[id(kernel.dag)]
        first_lines = self._lines_of_kernel(kernel, loops)
        whole = waiting = serial = 0.0
        barriers = moved = 0
        for order, touched in enumerate(loops.phases):
            phase = touched.phase
            alone = cycles * phase.work / loops.work
            seed = number * len(loops.phases) + order
            time, lines = self._run_phase(touched, alone, first_lines, seed)
            whole += time.whole
            waiting += self._cores * time.whole - sum(time.busy)
            serial += time.whole if phase.loop is None else 0.0
            barriers += phase.repeats if phase.loop is not None else 0
            moved += lines
        line = self._machine.line_bytes
        return KernelTime(kernel.name, cycles, whole, barriers, moved * line, waiting, serial)

    def _run_phase(
        self, touched: TouchedLines, cycles: float, first_lines: Mapping[str, int], seed: int
    ) -> tuple[LoopTime, int]:
        """Run a phase; return its time, and the number of lines that moved."""
        phase = touched.phase
        chunks = chunk_bounds(phase.extent, min(phase.extent, CHUNKS_PER_THREAD * self._cores))
        moved = 0

        def run_chunk(core: int, number: int) -> float:
            nonlocal moved
            begin, end = chunks[number]
            lines = self._touch(core, touched, begin, end, first_lines)
            moved += lines
            waited = lines * self._machine.line_bytes / self._machine.busy_third_bandwidth
            return (cycles * (end - begin) / phase.extent + waited) / phase.repeats

        time = run_loop(len(chunks), self._cores, self._machine, run_chunk, seed)
        busy = tuple(phase.repeats * value for value in time.busy)
        return LoopTime(phase.repeats * time.whole, busy), moved

    def _touch(
        self, core: int, touched: TouchedLines, begin: int, end: int, first_lines: Mapping[str, int]
    ) -> int:
        """Let a core read and write what iterations touch; return the number of lines that move to it."""
        moved = 0
        for item in touched.of(begin, end):
            first = first_lines.get(item.name)
            if first is not None:
                change = self._holders.write if item.is_written else self._holders.read
                moved += change(core, item.lines + first)
        return moved

    def _lines_of_kernel(self, kernel: KernelPlan, loops: LoopsOfKernel) -> dict[str, int]:
        """Return the first line of each buffer of a kernel, except of constants, which no core writes."""
        first_lines, behind = {}, self._scratch
        for buffer, placeholder in loops.inputs.items():
            if placeholder in kernel.inputs:
                value = kernel.inputs[placeholder]
                if self._plan.values[value].constant is None:
                    first_lines[buffer] = self._first_lines[self._plan.root(value)]
        for buffer, value in zip(loops.outputs, kernel.outputs, strict=True):
            first_lines[buffer] = self._first_lines[self._plan.root(value)]
        for buffer, size in loops.shared.items():
            first_lines[buffer] = behind
            behind += self._lines(size)
        return first_lines

    def _lines(self, size: int) -> int:
        return -(-size // self._machine.line_bytes)


def _first_lines(plan: RegionPlan, line_bytes: int) -> tuple[dict[int, int], int]:
    """Return the first line of the memory of each value, and the line behind all of them."""
    first_lines = {root: offset // line_bytes for root, offset in plan.arena.items()}
    behind = -(-plan.arena_bytes // line_bytes)
    for root in dict.fromkeys(map(plan.root, (*plan.params, *plan.results))):
        if root not in first_lines:
            first_lines[root] = behind
            behind += -(-plan.values[root].size_bytes // line_bytes)
    return first_lines, behind
