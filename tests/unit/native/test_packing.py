import numpy as np
import pytest

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Scalar
from intarsia.native.packing import Packing, Part


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
