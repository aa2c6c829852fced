from typing import Any

import numpy as np
import pytest

from intarsia import op
from intarsia.ir import Call, Constant, DType, Span, TensorType, TupleType, Var
from intarsia.op.node import OUTPUTS
from intarsia.support.errors import InvalidModelError

F32 = TensorType((2, 6), DType.FLOAT32)
X = Var("x", checked_type=F32)


def test_the_type_is_inferred() -> None:
    assert op.call("Transpose", X, perm=(1, 0)).checked_type == TensorType((6, 2), DType.FLOAT32)


def test_lists_become_tuples() -> None:
    axes: Any = [1, 0]
    assert op.call("Transpose", X, perm=axes).attrs["perm"] == (1, 0)


def test_absent_arguments_at_the_end_are_dropped() -> None:
    assert len(op.call("Clip", X, op.absent(), op.absent()).args) == 1
    high = Constant(np.array(1, np.float32))
    assert len(op.call("Clip", X, op.absent(), high, op.absent()).args) == 3


def test_one_result_is_no_tuple() -> None:
    call = op.call("Relu", X)
    assert OUTPUTS not in call.attrs
    assert call.checked_type == F32


def test_several_results_are_a_tuple() -> None:
    call = op.call("TopK", X, Constant(np.array([3])), outputs=2)
    assert call.attrs[OUTPUTS] == 2
    three = TensorType((2, 3), DType.FLOAT32)
    assert call.checked_type == TupleType((three, TensorType((2, 3), DType.INT64)))
    assert op.tuple_get(call, 0).checked_type == three


def test_a_variable_number_of_results_is_always_a_tuple() -> None:
    assert op.call("Split", X, axis=1, num_outputs=1, outputs=1).checked_type == TupleType((F32,))


def test_the_span_is_kept() -> None:
    span = Span("model.onnx", "node", "Relu")
    call = op.call("TopK", X, Constant(np.array([3])), outputs=2, span=span)
    assert call.span is span
    assert op.tuple_get(call, 1).span is span


def test_an_unknown_argument_makes_the_type_unknown() -> None:
    call = op.call("Relu", Var("y"))
    assert isinstance(call, Call)
    assert call.checked_type is None


def test_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="operator 'Relu' has no attribute 'slope'"):
        op.call("Relu", X, slope=1.0)
