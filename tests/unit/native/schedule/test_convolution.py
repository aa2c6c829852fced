"""Blocked convolutions compiled with their schedule compute what ONNX's reference does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.emitted_kernels import x86_sets
from tests.emulated_cpus import CPUS
from tests.scheduled_kernels import Array, computed, loops_of, normal, reference, state_of

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Allocate, ForKind, IfThenElse, MemoryScope
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.schedule.blocked_chain import blocked_chain
from intarsia.native.schedule.convolution import convolution_choice, convolution_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators.blocked_convolution import (
    blocked_convolution,
    blocks_of_groups,
    convolution_of_plain,
    pack_weight,
    pack_weight_of_plain,
)
from intarsia.native.te.operators.blocked_layout import blocked_array, blocked_bias, from_blocked, plain_array
from intarsia.native.te.operators.windows import Window
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel

pytestmark = pytest.mark.quick_tests(7)


@dataclass(frozen=True)
class Case:
    """A convolution of 2 dimensions; pads are top, left, bottom, right."""

    channels: int
    made: int
    size: tuple[int, int]
    taps: tuple[int, int] = (3, 3)
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    groups: int = 1
    batch: int = 1

    def windows(self) -> tuple[Window, ...]:
        found = []
        for axis in range(2):
            begin, end = self.pads[axis], self.pads[axis + 2]
            reach = (self.taps[axis] - 1) * self.dilation + 1
            count = (self.size[axis] + begin + end - reach) // self.stride + 1
            found.append(
                Window(self.size[axis], count, self.taps[axis], self.stride, self.dilation, begin, end)
            )
        return tuple(found)

    def arrays(self) -> tuple[Array, Array, Array]:
        weight = normal(self.made, self.channels // self.groups, *self.taps, seed=1)
        return normal(self.batch, self.channels, *self.size), weight, normal(self.made, seed=2)

    def expected(self) -> Array:
        both = [self.stride] * 2, [self.dilation] * 2
        return reference(
            "Conv", list(self.arrays()), strides=both[0], dilations=both[1], pads=self.pads, group=self.groups
        )


CASES = {
    "whole tiles": Case(16, 32, (8, 14)),
    "channels that fill no block": Case(19, 21, (5, 9)),
    "rows with a tail": Case(8, 24, (3, 37), taps=(1, 3), pads=(0, 1, 0, 1)),
    "strides": Case(16, 16, (9, 23), stride=2),
    "dilations": Case(16, 16, (11, 13), dilation=2, pads=(2, 2, 2, 2)),
    "one-sided padding": Case(16, 16, (7, 6), pads=(0, 2, 1, 0)),
    "no padding": Case(16, 48, (6, 7), pads=(0, 0, 0, 0)),
    "one tap": Case(33, 40, (7, 7), taps=(1, 1), pads=(0, 0, 0, 0), batch=2),
    "one tap, strided": Case(16, 32, (7, 9), taps=(1, 1), stride=2, pads=(0, 0, 0, 0)),
    "one tap, strided, many filters": Case(19, 75, (7, 9), taps=(1, 1), stride=2, pads=(0, 0, 0, 0)),
    "bands of one tap, strided": Case(16, 64, (61, 10), taps=(1, 1), stride=3, pads=(0, 0, 0, 0), batch=2),
    "one pixel": Case(16, 16, (3, 3), pads=(0, 0, 0, 0)),
    "groups of whole blocks": Case(64, 64, (5, 7), groups=2),
    "groups within a block": Case(32, 32, (5, 7), groups=8),
    "large": Case(64, 512, (5, 5)),
    "bands of rows": Case(32, 48, (30, 11), batch=2),
    "bands of rows, strided": Case(16, 24, (61, 9), stride=2),
    "bands of a row, long strides": Case(32, 16, (50, 90), taps=(5, 5), stride=4, pads=(0, 0, 1, 1)),
    "bands of rows, dilated": Case(16, 16, (31, 12), dilation=2, pads=(2, 2, 2, 2)),
}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("name", CASES)
def test_blocked_convolution(name: str, isa: Isa, threads: int) -> None:
    case, lanes = CASES[name], isa.vector_bytes // 4
    data, weights, bias = case.arrays()
    packed = pack_weight(weights, lanes, lanes, case.groups)
    given = blocked_array(data, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    b = te.placeholder((packed.shape[0], lanes), name="b")
    reads = blocks_of_groups(case.channels, case.made, case.groups, lanes, lanes)
    assert reads is not None
    y = blocked_bias(blocked_convolution(x, w, case.windows(), "conv", reads), b, "y")
    arrays = {x: given, w: packed, b: blocked_array(bias, lanes, axis=0)}
    found = computed(ComputeDAG((x, w, b, y)), arrays, blocked_state, isa, threads)
    _assert_same(plain_array(found, case.made), case.expected())
    assert np.isfinite(found).all()


@pytest.mark.parametrize(("stride", "pads_bands"), [(1, 0), (2, 0), (4, 1)])
def test_bands_of_a_row_are_padded_where_few_rows_are_copied_twice(stride: int, pads_bands: int) -> None:
    case = Case(64, 32, (96, 200), taps=(5, 5), stride=stride)
    machine = MachineModel(caches=CacheSizes(64 << 10, 256 << 10, 1 << 24))
    isa = replace(CPUS["haswell"], machine=machine)
    x, w = te.placeholder((1, 8, *case.size, 8), name="x"), te.placeholder((4, 8, 5, 5, 8, 8), name="w")
    y = blocked_convolution(x, w, case.windows(), "conv", (0, 8))
    chain = blocked_chain(ScheduleTask(ComputeDAG((x, w, y)), isa, 1))
    assert chain is not None
    assert convolution_choice(chain, ScheduleTask(ComputeDAG((x, w, y)), isa, 1)).pads_bands == pads_bands


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("second", [4096, 1 << 20], ids=["bands", "blocks"])
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize(
    "case",
    [
        Case(80, 40, (13, 9)),
        Case(90, 20, (9, 14), taps=(1, 1), pads=(0, 0, 0, 0), batch=2),
        Case(130, 48, (61, 7), taps=(3, 1), stride=2, pads=(1, 0, 1, 0)),
        Case(160, 64, (9, 8), groups=2),
    ],
    ids=str,
)
def test_sums_are_cut_where_the_weights_of_a_tile_exceed_the_cache(
    case: Case, isa: Isa, second: int, threads: int
) -> None:
    machine = MachineModel(caches=CacheSizes(256, second, 1 << 20))
    small, lanes = replace(isa, machine=machine), isa.vector_bytes // 4
    data, weights, bias = case.arrays()
    packed, given = pack_weight(weights, lanes, lanes, case.groups), blocked_array(data, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    b = te.placeholder((packed.shape[0], lanes), name="b")
    reads = blocks_of_groups(case.channels, case.made, case.groups, lanes, lanes)
    assert reads is not None
    y = blocked_bias(blocked_convolution(x, w, case.windows(), "conv", reads), b, "y")
    dag = ComputeDAG((x, w, b, y))
    chain = blocked_chain(ScheduleTask(dag, small, threads))
    assert chain is not None
    choice = convolution_choice(chain, ScheduleTask(dag, small, threads))
    assert choice.piece == (2 if packed.shape[1] >= 4 else 0)
    arrays = {x: given, w: packed, b: blocked_array(bias, lanes, axis=0)}
    found = computed(dag, arrays, blocked_state, small, threads)
    _assert_same(plain_array(found, case.made), case.expected())


@pytest.mark.parametrize("second", [4096, 1 << 20])
@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@pytest.mark.parametrize("stride", [1, 3])
def test_sums_of_one_dimension_are_cut(stride: int, isa: Isa, second: int, threads: int) -> None:
    small, lanes = (
        replace(isa, machine=MachineModel(caches=CacheSizes(256, second, 1 << 20))),
        isa.vector_bytes // 4,
    )
    data, weights = normal(2, 80, 37, seed=1), normal(40, 80, 3, seed=2)
    count = (37 + 2 - 3) // stride + 1
    given, packed = blocked_array(data, lanes), pack_weight(weights, lanes, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    dag = ComputeDAG((x, w, blocked_convolution(x, w, [Window(37, count, 3, stride, 1, 1, 1)], "conv")))
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1)))
    read = np.stack([padded[..., tap : tap + stride * count : stride][..., :count] for tap in range(3)])
    found = computed(dag, {x: given, w: packed}, blocked_state, small, threads)
    _assert_same(plain_array(found, 40), np.einsum("tncp,mct->nmp", read, weights))


@pytest.mark.parametrize(
    ("size", "second", "is_by_piece"),
    [((33, 29), 1 << 20, True), ((33, 29), 4096, False), ((13, 9), 1 << 20, False)],
    ids=["large input", "small cache", "large weights"],
)
def test_a_piece_of_the_input_is_padded_where_its_sums_are_added_up(
    size: tuple[int, int], second: int, is_by_piece: bool
) -> None:
    """Where all results of an image wait in a cache, nothing of the padded input has to be kept."""
    case, isa = Case(80, 40, size), CPUS["haswell"]
    isa, lanes = replace(isa, machine=MachineModel(caches=CacheSizes(256, second, 1 << 20))), 8
    x = te.placeholder((1, case.channels // lanes, *case.size, lanes), name="x")
    w = te.placeholder(pack_weight(case.arrays()[1], lanes, lanes).shape, name="w")
    dag = ComputeDAG((x, w, blocked_convolution(x, w, case.windows(), "conv")))
    chain = blocked_chain(ScheduleTask(dag, isa, 1))
    assert chain is not None
    state = convolution_state(chain, ScheduleTask(dag, isa, 1))
    place = state.attach_map.positions.get(state.stage_id("conv.pad"))
    assert (place == (state.stage_id(chain.anchor), 1)) == is_by_piece


@pytest.mark.parametrize("case", [Case(3, 20, (17, 19), (7, 7), 2, 1, (3, 3, 3, 3)), Case(1, 16, (6, 6))])
def test_convolution_of_a_plain_input(case: Case) -> None:
    isa = Isa.host()
    lanes = isa.vector_bytes // 4
    data, weights, bias = case.arrays()
    packed = pack_weight_of_plain(weights, lanes)
    x, w = te.placeholder(data.shape, name="x"), te.placeholder(packed.shape, name="w")
    b = te.placeholder((packed.shape[0], lanes), name="b")
    y = blocked_bias(convolution_of_plain(x, w, case.windows(), "conv"), b, "y")
    arrays = {x: data, w: packed, b: blocked_array(bias, lanes, axis=0)}
    found = computed(ComputeDAG((x, w, b, y)), arrays, blocked_state, isa, 2)
    _assert_same(plain_array(found, case.made), case.expected())


def test_epilogue_of_residual_and_activation_then_a_plain_result() -> None:
    case, isa = Case(16, 16, (5, 9)), Isa.host()
    lanes = isa.vector_bytes // 4
    data, weights, _ = case.arrays()
    packed, residual = pack_weight(weights, lanes, lanes), normal(1, 16, 5, 9, seed=5)
    given = blocked_array(data, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    r = te.placeholder(given.shape, name="r")
    conv = blocked_convolution(x, w, case.windows(), "conv")
    added = te.compute(conv.shape, lambda *i: conv[i] + r[i], "added")
    hard = te.compute(
        conv.shape,
        lambda *i: added[i] * te.maximum(te.minimum(added[i] * (1 / 6) + 0.5, 1.0), 0.0),
        "hard",
    )
    y = from_blocked(hard, case.made, "y")
    arrays = {x: given, w: packed, r: blocked_array(residual, lanes)}
    found = computed(ComputeDAG((x, w, r, y)), arrays, blocked_state, isa)
    plain = reference("Conv", [data, weights], pads=case.pads) + residual
    _assert_same(found, reference("HardSwish", [plain]))


def test_two_input_blocks_of_another_width() -> None:
    case, isa = Case(24, 16, (5, 6)), Isa.host()
    lanes = isa.vector_bytes // 4
    data, weights, _ = case.arrays()
    packed, given = pack_weight(weights, 8, lanes), blocked_array(data, 8)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    y = blocked_convolution(x, w, case.windows(), "conv")
    found = computed(ComputeDAG((x, w, y)), {x: given, w: packed}, blocked_state, isa)
    _assert_same(plain_array(found, 16), reference("Conv", [data, weights], pads=case.pads))


@pytest.mark.parametrize("size", [(19,), (3, 5, 6)])
def test_one_and_three_spatial_dimensions(size: tuple[int, ...], threads: int) -> None:
    isa, rank = Isa.host(), len(size)
    lanes = isa.vector_bytes // 4
    data, weights = normal(2, 20, *size), normal(35, 20, *(3 for _ in size), seed=1)
    packed, given = pack_weight(weights, lanes, lanes), blocked_array(data, lanes)
    windows = [Window(extent, (extent - 1) // 2 + 1, 3, 2, 1, 1, 1) for extent in size]
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    dag = ComputeDAG((x, w, blocked_convolution(x, w, windows, "conv")))
    expected = reference("Conv", [data, weights], strides=(2,) * rank, pads=(1,) * (2 * rank))
    found = computed(dag, {x: given, w: packed}, blocked_state, isa, threads)
    _assert_same(plain_array(found, 35), expected)


@pytest.mark.parametrize("size", [(19,), (7, 8), (3, 5, 6)])
@pytest.mark.parametrize(("filters", "copies"), [(48, False), (64, True)])
def test_many_filters_read_pixels_that_were_copied_together(
    size: tuple[int, ...], filters: int, copies: bool, threads: int
) -> None:
    isa, rank, lanes = Isa.host(), len(size), Isa.host().vector_bytes // 4
    data, weights = normal(2, 20, *size), normal(filters, 20, *(1 for _ in size), seed=1)
    packed, given = pack_weight(weights, lanes, lanes), blocked_array(data, lanes)
    windows = [Window(extent, (extent - 1) // 2 + 1, 1, 2, 1, 0, 0) for extent in size]
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    conv = blocked_convolution(x, w, windows, "conv")
    assert (x in conv.op.inputs) is not copies
    expected = reference("Conv", [data, weights], strides=(2,) * rank)
    found = computed(ComputeDAG((x, w, conv)), {x: given, w: packed}, blocked_state, isa, threads)
    _assert_same(plain_array(found, filters), expected)


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
def test_sums_are_in_registers_and_inner_loops_have_no_guards(isa: Isa) -> None:
    lanes = isa.vector_bytes // 4
    x = te.placeholder((1, 2, 14, 14, lanes), name="x")
    w = te.placeholder((4, 2, 3, 3, lanes, lanes), name="w")
    window = Window(14, 14, 3, 1, 1, 1, 1)
    dag = ComputeDAG((x, w, blocked_convolution(x, w, (window, window), "conv")))
    after = loops_of(dag, blocked_state, isa)
    visited = [visit.statement for visit in walk(after.body) if visit.event is Event.ENTER]
    tiles = [one.buffer for one in visited if isinstance(one, Allocate)]
    held = [each for each in tiles if each.scope is MemoryScope.REGISTER]
    assert held
    vectors = max(int(np.prod(each.shape[:-1])) for each in held)
    assert isa.vector_registers // 2 <= vectors <= isa.vector_registers - 3
    guards = [one for one in visited if isinstance(one, IfThenElse)]
    assert len(guards) <= 4


def test_threads_get_parallel_loops_only_where_there_are_threads() -> None:
    isa = Isa.host()
    lanes = isa.vector_bytes // 4
    x = te.placeholder((1, 2, 14, 14, lanes), name="x")
    w = te.placeholder((4, 2, 3, 3, lanes, lanes), name="w")
    window = Window(14, 14, 3, 1, 1, 1, 1)
    dag = ComputeDAG((x, w, blocked_convolution(x, w, (window, window), "conv")))
    assert ForKind.PARALLEL.value not in str(state_of(dag, blocked_state, isa, 1))
    assert "\nparallel h.0" in str(state_of(dag, blocked_state, isa, 2))


def test_other_dags_are_left_to_other_rules() -> None:
    x = te.placeholder((4, 4), name="x")
    dag = ComputeDAG((x, te.compute((4, 4), lambda i, j: x[i, j] * 2.0, "y")))
    assert blocked_state(ScheduleTask(dag, Isa.host(), 1)) is None


def _assert_same(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
