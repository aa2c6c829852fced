import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Scalar
from intarsia.native.packing import Packing, Part, is_transposed


def number(scalar: Scalar) -> int:
    match scalar:
        case Literal():
            return int(scalar.value)
        case Arith(op=op, operands=(left, right)):
            values = number(left), number(right)
            made = {
                ArithOp.ADD: values[0] + values[1],
                ArithOp.MUL: values[0] * values[1],
                ArithOp.FLOOR_DIV: values[0] // max(values[1], 1),
                ArithOp.FLOOR_MOD: values[0] % max(values[1], 1),
            }
            return made[op]
        case _:
            raise AssertionError(scalar)


def literals(indices: tuple[int, ...]) -> list[Scalar]:
    return [Literal(index, DType.INT64) for index in indices]


PACKINGS = [
    Packing("B", (6, 8), (Part(1, 2), Part(0, 6), Part(1, 4))),
    Packing("B", (6, 8), (Part(0, 3), Part(1, 8), Part(0, 2))),
    Packing("B", (5, 7), (Part(1, 2), Part(0, 2), Part(1, 4), Part(0, 3))),
    Packing("B", (1, 1), (Part(0, 1), Part(1, 1))),
    Packing("B", (4,), (Part(0, 2), Part(0, 1), Part(0, 2))),
]


@pytest.mark.parametrize("packing", PACKINGS)
def test_places_lead_there_and_back(packing: Packing) -> None:
    array = np.arange(np.prod(packing.shape)).reshape(packing.shape) + 1
    packed = packing.pack(array)
    assert packed.shape == packing.packed_shape
    assert np.count_nonzero(packed) == array.size
    for place in np.ndindex(packing.shape):
        indices = packing.packed_indices(literals(place))
        there = tuple(map(number, indices))
        assert packed[there] == array[place]
        back = packing.original_indices(literals(there))
        assert tuple(map(number, back)) == place


def test_what_stays_where_it_is() -> None:
    assert Packing("B", (6, 8), (Part(0, 2), Part(0, 3), Part(1, 8))).keeps_layout
    assert not Packing("B", (6, 8), (Part(1, 8), Part(0, 6))).keeps_layout
    assert not Packing("B", (5,), (Part(0, 2), Part(0, 3))).keeps_layout
    assert [packing.pads for packing in PACKINGS] == [False, False, True, False, False]


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    """Draw packings of up to three axes, each of up to three digits that may cover more than the axis."""
    parts, shape = [], []
    for axis in range(draw(st.integers(1, 3))):
        extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        shape.append(draw(st.integers(1, math.prod(extents))))
        parts.append([Part(axis, extent) for extent in extents])
    rows = draw(st.permutations([axis for axis, digits in enumerate(parts) for _ in digits]))
    return Packing("B", tuple(shape), tuple(parts[axis].pop(0) for axis in rows))


@given(packings())
def test_packed_elements_are_those_of_a_padded_copy(packing: Packing) -> None:
    array = np.arange(1, math.prod(packing.shape) + 1, dtype=np.int32).reshape(packing.shape)
    covered = [math.prod(p.extent for p in packing.parts if p.axis == axis) for axis in range(array.ndim)]
    padded = np.pad(array, [(0, to - extent) for to, extent in zip(covered, array.shape, strict=True)])
    order = sorted(range(len(packing.parts)), key=lambda position: packing.parts[position].axis)
    digits = padded.reshape([packing.parts[position].extent for position in order])
    np.testing.assert_array_equal(packing.pack(array), digits.transpose(np.argsort(order)))


@given(packings().filter(lambda packing: len(packing.shape) == 2))
def test_a_transposed_matrix_is_packed_from_where_it_is(packing: Packing) -> None:
    matrix = np.arange(1, math.prod(packing.shape) + 1, dtype=np.int32).reshape(packing.shape)
    stored = np.ascontiguousarray(matrix.T)
    np.testing.assert_array_equal(packing.of_transpose().pack(stored), packing.pack(matrix))


def test_only_large_matrices_stay_transposed() -> None:
    assert is_transposed(np.zeros((300, 200), np.float32).T)
    assert not is_transposed(np.zeros((300, 200), np.float32))
    assert not is_transposed(np.zeros((3, 2), np.float32).T)
    assert not is_transposed(np.zeros((2, 300, 200), np.float32).T)


def test_an_axis_of_one_element_may_have_no_part() -> None:
    packing = Packing("B", (1, 3), (Part(1, 2), Part(1, 2)))
    assert packing.pack(np.array([[1, 2, 3]])).tolist() == [[1, 2], [3, 0]]


def test_a_weight_is_packed_without_a_copy() -> None:
    packing = Packing("B", (1001, 1001), (Part(1, 32), Part(0, 1001), Part(1, 32)))
    array = np.ones(packing.shape, np.float32)
    tracemalloc.start()
    try:
        packing.pack(array)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < array.nbytes // 4
