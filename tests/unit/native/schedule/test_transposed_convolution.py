"""Transposed convolutions on blocks, compiled with their schedules, compute what ONNX's reference does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.emitted_kernels import x86_sets
from tests.scheduled_kernels import Array, computed, loops_of, normal, reference, state_of

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Allocate, IfThenElse, MemoryScope, Store
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.te.operators.blocked_layout import blocked_array, blocked_bias, plain_array
from intarsia.native.te.operators.blocked_transposed_convolution import (
    blocked_transposed_convolution,
    pack_transposed_weight,
)
from intarsia.native.te.operators.narrow_transposed_convolution import (
    pack_weight_of_pixel,
    pack_weight_to_few,
    transposed_convolution_of_pixel,
    transposed_convolution_to_few,
)
from intarsia.native.te.operators.upsampling import Upsampling

pytestmark = pytest.mark.quick_tests(5)

SETS = x86_sets()


@dataclass(frozen=True)
class Case:
    """A transposed convolution; one entry for each spatial dimension, pads are (begin, end)."""

    channels: int
    made: int
    size: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    more: tuple[int, ...] = (0, 0)
    batch: int = 1

    @property
    def dimensions(self) -> tuple[Upsampling, ...]:
        found = []
        for at, extent in enumerate(self.size):
            whole = (extent - 1) * self.strides[at] + self.taps[at] + self.more[at]
            begin, end = self.pads[at]
            found.append(Upsampling(extent, whole - begin - end, self.taps[at], self.strides[at], begin))
        return tuple(found)

    def arrays(self) -> tuple[Array, Array, Array]:
        weight = normal(self.channels, self.made, *self.taps, seed=1)
        return normal(self.batch, self.channels, *self.size), weight, normal(self.made, seed=2)

    def expected(self) -> Array:
        pads = [pad[0] for pad in self.pads] + [pad[1] for pad in self.pads]
        attrs = {"strides": self.strides, "pads": pads, "output_padding": self.more}
        return reference("ConvTranspose", list(self.arrays()), **attrs)


CASES = {
    "stride 2, 4 taps": Case(16, 32, (5, 7), (4, 4), (2, 2), ((1, 1), (1, 1))),
    "phases of 2 and 1 taps": Case(19, 21, (4, 9), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "an odd count": Case(16, 16, (4, 6), (3, 3), (2, 2), ((1, 1), (0, 0))),
    "stride 1": Case(16, 40, (6, 6), (3, 3), (1, 1), ((1, 1), (0, 2))),
    "stride 3, where phases shift unevenly": Case(16, 16, (4, 5), (5, 4), (3, 3), ((1, 1), (2, 0)), (2, 0)),
    "fewer taps than strides": Case(16, 16, (4, 5), (2, 1), (3, 4), ((0, 0), (0, 0))),
    "more cut off than a window has": Case(16, 16, (7, 6), (2, 3), (2, 1), ((5, 1), (4, 0))),
    "each dimension its own": Case(33, 20, (3, 8), (2, 5), (1, 2), ((0, 1), (2, 1)), (0, 1), batch=2),
    "a row that fills a tile": Case(16, 64, (3, 16), (4, 4), (2, 2), ((1, 1), (1, 1))),
    "many channels": Case(64, 128, (4, 4), (4, 4), (2, 2), ((1, 1), (1, 1))),
}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("name", CASES)
def test_blocked_transposed_convolution(name: str, isa: Isa, threads: int) -> None:
    _check_blocked(CASES[name], isa, threads)


@pytest.mark.parametrize(
    "case",
    [
        Case(20, 24, (9,), (4,), (2,), ((1, 1),), (0,)),
        Case(16, 16, (3, 2, 5), (3, 2, 4), (2, 1, 2), ((1, 0), (0, 0), (1, 1)), (1, 0, 0)),
    ],
)
def test_one_and_three_spatial_dimensions(case: Case, threads: int) -> None:
    _check_blocked(case, Isa.host(), threads)


def _check_blocked(case: Case, isa: Isa, threads: int) -> None:
    dag, arrays = _blocked(case, isa)
    found = computed(dag, arrays, blocked_state, isa, threads)
    _assert_same(plain_array(found, case.made), np.maximum(case.expected(), 0))
    assert np.isfinite(found).all()


def _blocked(case: Case, isa: Isa) -> tuple[ComputeDAG, dict[te.Tensor, Array]]:
    lanes = isa.vector_bytes // 4
    data, weights, bias = case.arrays()
    packed = pack_transposed_weight(weights, case.dimensions, lanes, lanes)
    given, blocks = blocked_array(data, lanes), blocked_array(bias, lanes, axis=0)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    b = te.placeholder(blocks.shape, name="b")
    y = blocked_bias(blocked_transposed_convolution(x, w, case.dimensions, "conv"), b, "biased")
    return ComputeDAG((x, w, b, _relu(y))), {x: given, w: packed, b: blocks}


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize(
    "case",
    [
        Case(100, 48, (1, 1), (4, 4), (1, 1), ((0, 0), (0, 0))),
        Case(7, 20, (1, 1), (5, 3), (2, 3), ((1, 0), (0, 0)), (1, 2)),
        Case(7, 20, (1, 1), (7, 7), (2, 3), ((1, 2), (0, 0)), batch=2),
    ],
)
def test_one_pixel(case: Case, isa: Isa, threads: int) -> None:
    lanes = isa.vector_bytes // 4
    data, weights, bias = case.arrays()
    packed = pack_weight_of_pixel(weights, case.dimensions, lanes)
    blocks = blocked_array(bias, lanes, axis=0)
    x, w = te.placeholder(data.shape, name="x"), te.placeholder(packed.shape, name="w")
    b = te.placeholder(blocks.shape, name="b")
    y = _relu(blocked_bias(transposed_convolution_of_pixel(x, w, "conv"), b, "biased"))
    arrays = {x: data, w: packed, b: blocks}
    found = computed(ComputeDAG((x, w, b, y)), arrays, blocked_state, isa, threads)
    _assert_same(plain_array(found, case.made), np.maximum(case.expected(), 0))


@pytest.mark.slow
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize(
    "case",
    [
        Case(64, 3, (6, 8), (4, 4), (2, 2), ((1, 1), (1, 1))),
        Case(20, 1, (5, 5), (3, 3), (2, 2), ((0, 0), (1, 0)), (1, 1)),
        Case(20, 2, (5, 7), (3, 5), (3, 2), ((4, 0), (3, 1)), batch=2),
        Case(16, 3, (6,), (5,), (3,), ((1, 1),), (0,)),
    ],
)
def test_few_channels(case: Case, isa: Isa) -> None:
    lanes = isa.vector_bytes // 4
    data, weights, bias = case.arrays()
    packed = pack_weight_to_few(weights, lanes, lanes)
    given = blocked_array(data, lanes)
    x, w = te.placeholder(given.shape, name="x"), te.placeholder(packed.shape, name="w")
    y = _relu(transposed_convolution_to_few(x, w, case.made, case.dimensions, "conv"))
    expected = case.expected() - bias.reshape(-1, *(1 for _ in case.size))
    for threads in (1, 2):
        found = computed(ComputeDAG((x, w, y)), {x: given, w: packed}, blocked_state, isa, threads)
        _assert_same(found, np.maximum(expected, 0))


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
def test_sums_are_in_registers_and_results_are_written_where_they_belong(isa: Isa) -> None:
    dag, _ = _blocked(CASES["a row that fills a tile"], isa)
    statements = [v.statement for v in walk(loops_of(dag, blocked_state, isa).body) if v.event is Event.ENTER]
    kept = [each.buffer for each in statements if isinstance(each, Allocate)]
    assert [each.name for each in kept if each.scope is not MemoryScope.REGISTER] == ["conv.pad"]
    assert len(kept) > 1
    guarded = [
        visit.statement.buffer.scope
        for each in statements
        if isinstance(each, IfThenElse)
        for visit in walk(each)
        if isinstance(visit.statement, Store)
    ]
    assert set(guarded) == {MemoryScope.REGISTER}  # only products with padding are skipped


def test_one_loop_is_parallel_where_there_are_threads() -> None:
    dag, _ = _blocked(CASES["many channels"], Isa.host())
    states = [str(state_of(dag, blocked_state, Isa.host(), threads)) for threads in (1, 2)]
    assert [state.count("parallel") for state in states] == [0, 1]


def test_a_nan_in_the_weights_stays_in_its_channel() -> None:
    case, isa = CASES["phases of 2 and 1 taps"], Isa.host()
    dag, arrays = _blocked(case, isa)
    lanes = isa.vector_bytes // 4
    _, weights, _ = case.arrays()
    weights[:, 5] = np.nan
    arrays[dag.placeholders[1]] = pack_transposed_weight(weights, case.dimensions, lanes, lanes)
    found = plain_array(computed(dag, arrays, blocked_state, isa), case.made)
    assert np.isnan(found[:, 5]).any()
    assert np.isfinite(np.delete(found, 5, axis=1)).all()


def _relu(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: te.maximum(x[i], 0.0), "y")


def _assert_same(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
