"""Convolutions with channels last: right for every size, with sums in registers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from tests.default_schedules import assert_matches_declared, optimised
from tests.emitted_kernels import x86_sets

from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, MemoryScope
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state, scheduled
from intarsia.native.schedule.channels_last import channels_last_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel

SETS = x86_sets()
ISA = next(iter(SETS.values()))


@dataclass(frozen=True)
class Case:
    """A convolution, and whether a positive part follows."""

    size: tuple[int, int]
    channels: int
    made: int
    taps: int = 3
    stride: int = 1
    pad: int = 1
    batch: int = 1
    follows: bool = False

    def dag(self, *, depthwise: bool = False) -> ComputeDAG:
        """The declaration."""
        height, width = self.size
        x = te.placeholder((self.batch, height, width, self.channels), name="x")
        weights = (self.taps, self.taps, *(() if depthwise else (self.channels,)), self.made)
        w = te.placeholder(weights, name="w", attrs={"constant": 1})
        read = self.padded(x) if self.pad else x
        p, q = te.reduce_axis(self.taps, "p"), te.reduce_axis(self.taps, "q")
        c = te.reduce_axis(self.channels, "c")
        counts = (1 + (each + 2 * self.pad - self.taps) // self.stride for each in self.size)
        stride = self.stride

        def of_all(n: te.Expression, i: te.Expression, j: te.Expression, o: te.Expression) -> te.Reduction:
            return te.sum(read[n, i * stride + p, j * stride + q, c] * w[p, q, c, o], (p, q, c))

        def of_own(n: te.Expression, i: te.Expression, j: te.Expression, o: te.Expression) -> te.Reduction:
            return te.sum(read[n, i * stride + p, j * stride + q, o] * w[p, q, o], (p, q))

        shape = (self.batch, *counts, self.made)
        free = {"layout_free_placeholders": ("w",)}
        y = te.compute(shape, of_own if depthwise else of_all, name="y", attrs=free)
        if self.follows:
            y = te.compute(shape, lambda n, i, j, o: te.maximum(y[n, i, j, o], 0.0), name="relu")
        return ComputeDAG((y,))

    def padded(self, x: te.Tensor) -> te.Tensor:
        """With zeros around the image."""
        pad, (height, width) = self.pad, self.size

        def element(n: te.Expression, i: te.Expression, j: te.Expression, c: te.Expression) -> te.Expression:
            inside = te.logical_and(i >= pad, i < height + pad, j >= pad, j < width + pad)
            return te.if_then_else(inside, x[n, i - pad, j - pad, c], 0.0)

        shape = (x.shape[0], height + 2 * pad, width + 2 * pad, x.shape[3])
        return te.compute(shape, element, name="padded")


CASES = {
    "like ResNet": Case((14, 14), 16, 64),
    "rests everywhere": Case((5, 9), 3, 21, follows=True),
    "strides": Case((9, 8), 8, 17, stride=2),
    "a single tap": Case((6, 7), 12, 40, taps=1, pad=0, follows=True),
    "batch": Case((4, 4), 5, 16, batch=3),
    "few rows, many channels": Case((3, 3), 8, 320),
    "a pixel": Case((1, 1), 8, 8),
    "no pixels": Case((2, 2), 4, 4, pad=0),
}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_computes_what_is_declared(case: Case, isa: Isa, threads: int) -> None:
    assert_matches_declared(case.dag(), isa, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_no_cache_holds_are_read_once(threads: int) -> None:
    isa = replace(ISA, machine=MachineModel(caches=CacheSizes(1024, 8192, 65536)))
    dag = CASES["few rows, many channels"].dag()
    assert [loop.name for loop in default_state(dag, isa, threads)["y"].iters][1] == "o.0"
    assert_matches_declared(dag, isa, threads)


def test_a_tile_of_sums_is_in_registers() -> None:
    isa = ISA
    function = optimised(scheduled(CASES["like ResNet"].dag(), isa, 1).lowered(), isa)
    buffers = [
        visit.statement.buffer for visit in walk(function.body) if isinstance(visit.statement, Allocate)
    ]
    kept = [buffer for buffer in buffers if buffer.scope is MemoryScope.REGISTER]
    assert kept
    lanes = isa.vector_bytes // 4
    assert all(
        buffer.shape[0] * -(-buffer.shape[-1] // lanes) <= isa.vector_registers
        for buffer in kept
        if len(buffer.shape) == 2
    )


def test_threads_share_bands_and_pad_what_they_read() -> None:
    dag = Case((56, 56), 64, 64).dag()
    state = default_state(dag, ISA, 2)
    (first, *_) = (loop for loop in state["y"].iters if loop.annotation is IteratorAnnotation.PARALLEL)
    assert first.name.endswith(".0")
    assert state["padded"].compute_at is ComputeAt.ITER
    assert state["y.local"].iters[-1].annotation is IteratorAnnotation.VECTORIZE


def test_threads_share_channels_if_there_are_many_weights() -> None:
    dag = Case((7, 7), 512, 512).dag()
    state = default_state(dag, ISA, 2)
    order = [loop.name for loop in state["y"].iters if (loop.extent or 1) > 1]
    (shared,) = (loop.name for loop in state["y"].iters if loop.annotation is IteratorAnnotation.PARALLEL)
    assert order[0] == shared
    assert state["padded"].compute_at is ComputeAt.ROOT


def test_depthwise_ones_are_not_for_it() -> None:
    dag = Case((8, 8), 16, 16).dag(depthwise=True)
    assert channels_last_state(ScheduleTask(dag, ISA, 2)) is None
