"""Simulated runs against times that are computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from intarsia.ir import TensorType
from intarsia.ir.dtype import DType
from intarsia.native import te
from intarsia.native.cores.chunk_order import chunk_bounds, run_loop
from intarsia.native.cores.line_holders import LineHolders
from intarsia.native.cores.plan_loops import LoopsOfKernel
from intarsia.native.cores.simulate import SimulatedRun, simulate_plan
from intarsia.native.dag import ComputeDAG
from intarsia.native.graph.region_plan import KernelPlan, RegionPlan, RegionValue
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule import ScheduledDag
from intarsia.target.machine_model import MachineModel

MACHINE = replace(MachineModel(), barrier_cycles=300, busy_third_bandwidth=16.0)
MOVE = 100.0
"""Cycles of a move of a line on that machine."""
LINE = 4.0
"""Cycles that a core waits for a line of another one."""


def test_lines_move_to_those_who_lack_them() -> None:
    holders, lines = LineHolders(8), np.arange(8)
    assert holders.read(0, lines) == 0  # nobody wrote them
    assert holders.write(0, lines[:6]) == 0
    assert holders.read(0, lines) == 0
    assert holders.read(1, lines) == 6
    assert holders.read(1, lines) == 0
    assert holders.write(1, lines[:2]) == 0  # it has them
    assert holders.read(0, lines) == 2
    assert holders.write(2, lines[:4]) == 4


def test_chunks_differ_by_one_iteration_at_most() -> None:
    assert chunk_bounds(10, 4) == [(0, 3), (3, 5), (5, 8), (8, 10)]
    assert chunk_bounds(3, 3) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("extent", [28, 14, 12, 9])
def test_ranges_of_as_many_chunks_have_as_many_iterations(extent: int) -> None:
    sizes = [end - begin for begin, end in chunk_bounds(extent, 8)]
    assert sum(sizes[:4]) - sum(sizes[4:]) in {0, 1}  # the caller begins first


def _owners(chunks: int, cores: int) -> tuple[list[list[int]], float]:
    """Return the chunks of each core, of 1,000 cycles each, and the time of the loop."""
    owned: list[list[int]] = [[] for _ in range(cores)]

    def run_chunk(core: int, chunk: int) -> float:
        owned[core].append(chunk)
        return 1000.0

    return owned, run_loop(chunks, cores, MACHINE, run_chunk).whole


def test_one_core_needs_no_claims() -> None:
    assert _owners(4, 1) == ([[0, 1, 2, 3]], 4000.0)


def test_ranges_are_claimed_without_moves() -> None:
    owned, whole = _owners(4, 2)
    assert owned == [[0, 1], [2, 3]]
    # The worker sees the number of the loop after one move, and counts after its chunks, by another one; the
    # caller sees that after one more.
    assert whole == 2000.0 + 3 * MOVE


def test_each_of_many_cores_has_the_same_range_in_every_loop() -> None:
    owned, _ = _owners(32, 8)
    assert owned == [list(range(4 * core, 4 * core + 4)) for core in range(8)]


def test_the_caller_has_a_chunk_of_a_short_loop() -> None:
    owned, _ = _owners(2, 8)
    assert owned[0] == [0]
    assert sorted(chunk for chunks in owned for chunk in chunks) == [0, 1]


def test_a_core_without_chunks_takes_the_last_ones_of_others() -> None:
    owned: list[list[int]] = [[], []]

    def run_chunk(core: int, chunk: int) -> float:
        owned[core].append(chunk)
        return 10_000.0 if core else 1000.0

    time = run_loop(8, 2, MACHINE, run_chunk)
    assert owned == [[0, 1, 2, 3, 7, 6, 5], [4]]
    assert time.busy == (7000.0, 10_000.0)


ROWS = 64


def _copy(name: str, axis: str, *, is_transposed: bool = False) -> tuple[ComputeDAG, LoopState]:
    """Return a copy of a matrix of lines, with threads along its rows or columns."""
    x = te.placeholder((ROWS, ROWS, 16), name="x")
    y = te.compute(
        x.shape, lambda i, j, k: x[j, i, k] if is_transposed else x[i, j, k], name=name, axis_names="ijk"
    )
    dag = ComputeDAG((x, y))
    state = LoopState.initial(dag)
    if axis == "j":
        state = state.reorder(name, ["j", "i", "k"])
    return dag, state.parallel(name, axis)


def _chain(second: str, cores: int, *, is_transposed: bool = False) -> SimulatedRun:
    """Simulate two copies in a row, the first one along rows."""
    steps = [_copy("y", "i"), _copy("z", second, is_transposed=is_transposed)]
    loops = {}
    for dag, state in steps:
        chosen = ScheduledDag(dag, state, ())
        loops[id(dag)] = LoopsOfKernel(chosen, chosen.lowered(), 64)
    values = tuple(RegionValue(TensorType((ROWS, ROWS, 16), DType.FLOAT32), number) for number in range(3))
    kernels = tuple(
        KernelPlan(dag, {"x": number}, {}, (number + 1,), f"copy {number}")
        for number, (dag, _) in enumerate(steps)
    )
    plan = RegionPlan(values, kernels, (0,), (2,), {1: 0}, values[1].size_bytes)
    return simulate_plan(plan, loops, [64_000.0, 64_000.0], cores, MACHINE)


def test_one_core_moves_nothing() -> None:
    run = _chain("j", 1)
    assert (run.cycles, run.moved_bytes, run.waiting_share) == (128_000.0, 0, 0.0)


def test_what_a_core_wrote_it_reads() -> None:
    run = _chain("i", 2)
    assert run.moved_bytes == 0
    assert run.cycles == 2 * (32_000.0 + 3 * MOVE)


@pytest.mark.parametrize(("axis", "is_transposed"), [("j", False), ("i", True)])
def test_another_axis_moves_half_of_what_lies_between(axis: str, *, is_transposed: bool) -> None:
    run = _chain(axis, 2, is_transposed=is_transposed)
    first, second = run.kernels
    half = ROWS * ROWS // 2
    # Every core gets half of its half for reading; the first copy then gets the same lines for writing, where
    # it has them, by reading, already.
    assert second.moved_bytes == half * 64
    assert second.cycles == 32_000.0 + half / 2 * LINE + 3 * MOVE
    assert first.moved_bytes == 0


def test_as_many_iterations_as_cores_are_balanced_and_others_wait() -> None:
    run = _chain("i", 48)
    assert run.kernels[0].cycles >= 2000.0  # 64 iterations on 48 cores: some run two
    assert run.waiting_share > 1 - 64 / 96 - 0.01
