"""Convolutions by Winograd's transforms compiled with their schedule: results, errors, loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.scheduled_kernels import Array, computed, loops_of, normal, written_out

from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import Allocate, Arith, ArithOp, MemoryScope
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.winograd import WinogradChoice, state_of_choice, winograd_choice
from intarsia.native.schedule.winograd_chain import winograd_chain
from intarsia.native.te.operators.blocked_convolution import blocked_convolution, pack_weight
from intarsia.native.te.operators.blocked_layout import blocked_array, blocked_bias, plain_array
from intarsia.native.te.operators.windows import Window
from intarsia.native.te.operators.winograd import TILES, winograd_convolution, winograd_weight

pytestmark = pytest.mark.quick_tests(3)

ISA = Isa.host()
SETS = sorted(x86_sets().items())


@dataclass(frozen=True)
class Case:
    """A convolution of 3 by 3 with bias, a residual and Relu behind; pads are top, left, bottom, right."""

    channels: int
    made: int
    size: tuple[int, int]
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    batch: int = 1

    @property
    def windows(self) -> tuple[Window, Window]:
        top, left, bottom, right = self.pads
        height, width = self.size
        return (
            Window(height, height + top + bottom - 2, 3, 1, 1, top, bottom),
            Window(width, width + left + right - 2, 3, 1, 1, left, right),
        )

    @cached_property
    def data(self) -> Array:
        return normal(self.batch, self.channels, *self.size)

    @cached_property
    def weight(self) -> Array:
        return normal(self.made, self.channels, 3, 3, seed=1) / np.float32(3 * np.sqrt(self.channels))

    @cached_property
    def bias(self) -> Array:
        return normal(self.made, seed=2)

    @cached_property
    def residual(self) -> Array:
        return normal(self.batch, self.made, *(window.count for window in self.windows), seed=3)

    def sums(self) -> Array:
        """Of the convolution alone, in float64."""
        top, left, bottom, right = self.pads
        wide = np.pad(self.data.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
        cut = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
        made: Array = np.einsum("nchwrs,mcrs->nmhw", cut, self.weight.astype(np.float64), optimize=True)
        return made

    def expected(self) -> Array:
        made: Array = np.maximum(self.sums() + self.bias[:, None, None] + self.residual, 0)
        return made

    def dag(self, tile: int, isa: Isa) -> tuple[ComputeDAG, dict[te.Tensor, Array]]:
        """What is computed, and what is given."""
        lanes = isa.vector_bytes // 4
        arrays = {
            "x": blocked_array(self.data, lanes),
            "w": winograd_weight(self.weight, tile, lanes, lanes),
            "b": blocked_array(self.bias, lanes, axis=0),
            "r": blocked_array(self.residual, lanes),
        }
        x, w, b, r = (te.placeholder(array.shape, name=name) for name, array in arrays.items())
        biased = blocked_bias(winograd_convolution(x, w, self.windows, tile, "conv"), b, "bias")
        y = te.compute(biased.shape, lambda *i: te.maximum(biased[i] + r[i], 0.0), "y")
        return ComputeDAG((x, w, b, r, y)), dict(zip((x, w, b, r), arrays.values(), strict=True))


CASES = {
    "whole tiles": Case(16, 32, (8, 12)),
    "channels that fill no block": Case(19, 21, (5, 9)),
    "7 by 7": Case(40, 48, (7, 7)),
    "13 by 15, no padding": Case(8, 24, (13, 15), pads=(0, 0, 0, 0)),
    "one-sided padding": Case(16, 16, (6, 5), pads=(0, 2, 1, 0), batch=2),
    "one pixel": Case(16, 16, (3, 3), pads=(0, 0, 0, 0)),
    "bands": Case(32, 64, (61, 30)),
    "by blocks": Case(128, 256, (9, 8), batch=2),
}


QUICK = ("channels that fill no block", "one-sided padding", "one pixel")
"""Cases for which every kernel is compiled; F(4, 3) for this CPU is for all."""

KERNELS = [
    *(pytest.param(name, 4, isa, id=f"{name}-F(4, 3) {each}") for name in QUICK for each, isa in SETS),
    *(
        pytest.param(
            *(name, tile, ISA),
            id=f"{name}-F({tile}, 3) for this CPU",
            marks=[pytest.mark.slow] * (name != "one-sided padding"),
        )
        for name in QUICK
        for tile in TILES
        if tile != 4
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in QUICK)]
)
def test_results(name: str) -> None:
    case = CASES[name]
    dag, arrays = case.dag(4, ISA)
    for threads in (1, 2):
        found = computed(dag, arrays, blocked_state, ISA, threads)
        np.testing.assert_allclose(plain_array(found, case.made), case.expected(), atol=1e-4)
        assert np.isfinite(found).all()


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("name", "tile", "isa"), KERNELS)
def test_results_of_each_tile_and_instruction_set(name: str, tile: int, isa: Isa) -> None:
    case = CASES[name]
    dag, arrays = case.dag(tile, isa)
    found = computed(dag, arrays, blocked_state, isa, 2)
    np.testing.assert_allclose(plain_array(found, case.made), case.expected(), atol=1e-4)


def test_cases_cover_both_orders_of_loops() -> None:
    found = set()
    for case in CASES.values():
        task = ScheduleTask(case.dag(4, ISA)[0], ISA, 2)
        chain = winograd_chain(task)
        assert chain is not None
        found.add(winograd_choice(chain, task).is_by_blocks)
    assert found == {0, 1}


small = st.integers(1, 40)


@pytest.mark.slow
@settings(max_examples=examples(8), deadline=None)
@given(
    st.sampled_from(TILES),
    st.tuples(small, small, st.integers(1, 20), st.integers(1, 20)),
    st.tuples(*[st.integers(1, 2)] * 4),
    st.tuples(st.integers(1, 9), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1)),
)
def test_every_choice_computes_the_same(
    tile: int, shape: tuple[int, ...], pads: tuple[int, int, int, int], choice: tuple[int, ...]
) -> None:
    case = Case(shape[0], shape[1], (shape[2], shape[3]), pads)
    dag, arrays = case.dag(tile, ISA)

    def rule(task: ScheduleTask) -> LoopState | None:
        chain = winograd_chain(task)
        return None if chain is None else state_of_choice(chain, task, WinogradChoice(*choice))

    found = computed(dag, arrays, rule, ISA, 2)
    np.testing.assert_allclose(plain_array(found, case.made), case.expected(), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("tile", "factor"), [(2, 1.0), (4, 4.0), (6, 20.0)])
def test_errors_beside_those_of_direct_sums(tile: int, factor: float) -> None:
    """Of the largest of float64's results, medians of 5 inputs; the shape is one of ResNet-50's."""
    case, lanes = Case(128, 64, (14, 14), batch=5), ISA.vector_bytes // 4
    given, expected = blocked_array(case.data, lanes), case.sums()
    x = te.placeholder(given.shape, name="x")
    moved = winograd_weight(case.weight, tile, lanes, lanes)
    packed = pack_weight(case.weight, lanes, lanes)
    w, v = te.placeholder(moved.shape, name="w"), te.placeholder(packed.shape, name="v")
    dags = (
        ComputeDAG((x, w, winograd_convolution(x, w, case.windows, tile, "conv"))),
        ComputeDAG((x, v, blocked_convolution(x, v, case.windows, "conv"))),
    )
    arrays = {x: given, w: moved, v: packed}
    made = (plain_array(computed(dag, arrays, blocked_state, ISA), 64) for dag in dags)
    found, direct = (np.abs(each - expected).max(axis=(1, 2, 3)) for each in made)
    assert np.median(found / direct) <= factor


@pytest.mark.parametrize("isa", [isa for _, isa in SETS], ids=[name for name, _ in SETS])
def test_sums_are_in_registers_and_no_choice_between_rows_is_left(isa: Isa) -> None:
    after = written_out(loops_of(CASES["by blocks"].dag(4, isa)[0], blocked_state, isa))
    visited = [visit.statement for visit in walk(after.body) if visit.event is Event.ENTER]
    kept = [each.buffer for each in visited if isinstance(each, Allocate)]
    assert [each.name for each in kept if each.scope is MemoryScope.REGISTER and "product" in each.name]
    parts = [part for each in visited for root in scalars(each) for part, _ in scalar_post_order(root)]
    assert not any(isinstance(part, Arith) and part.op is ArithOp.SELECT for part in parts)
