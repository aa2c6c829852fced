"""Arguments that have to be constants, against ONNX's schemas."""

import numpy as np
import pytest

from intarsia.ir import Constant, TensorType, Var
from intarsia.op import absent, call
from intarsia.op.constant_argument import CONSTANT_ARGUMENTS, has_open_shape
from intarsia.op.opset import schema_of
from intarsia.op.pattern import TOP_PATTERN

DATA = {
    ("Attention", 6): "lengths of rows, not of the result",
    ("NonMaxSuppression", 2): "decides how many are found, not the type",
    ("ReverseSequence", 1): "lengths of rows, not of the result",
    ("ScatterND", 1): "indices",
    ("GatherND", 1): "indices",
    ("TensorScatter", 2): "where to write",
}
"""Arguments of whole numbers that are data."""


def integer_arguments() -> set[tuple[str, int]]:
    return {
        (name, position)
        for name in TOP_PATTERN
        for position, formal in enumerate(schema_of(name, "").inputs)
        if formal.type_str == "tensor(int64)"
    }


def test_every_argument_of_64_bit_integers_is_listed_or_data() -> None:
    listed = {(name, position) for name, some in CONSTANT_ARGUMENTS.items() for position in some}
    assert integer_arguments() - listed == DATA.keys()
    assert listed.isdisjoint(DATA)


@pytest.mark.parametrize("name", CONSTANT_ARGUMENTS)
def test_listed_arguments_exist(name: str) -> None:
    assert max(CONSTANT_ARGUMENTS[name]) < len(schema_of(name, "").inputs)


def test_a_shape_is_open_unless_it_is_a_constant() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((2, 3), np.float32)))
    shape = Var("s", checked_type=TensorType.of(np.zeros(1, np.int64)))
    assert has_open_shape(call("Reshape", x, shape))
    assert has_open_shape(call("Reshape", x, call("Shape", call("Flatten", x))))
    assert not has_open_shape(call("Reshape", x, Constant(np.array([6]))))
    assert not has_open_shape(call("Slice", x, *(Constant(np.array([1])),) * 2, absent(), absent()))
    assert has_open_shape(call("Slice", x, *(Constant(np.array([1])),) * 2, absent(), shape))
    assert not has_open_shape(call("Add", x, x))
