"""The value of one call on constants."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from intarsia.ir import Attrs, Call, Constant, DType, Expr, Function, Op, TensorType, Var, with_fields
from intarsia.op import absent, call
from intarsia.op.evaluate import can_evaluate, evaluate_call
from intarsia.op.onnx_types import elem_type_of
from intarsia.support.errors import ExecutionError, UsageError

Array = npt.NDArray[Any]


def constant(value: Any, dtype: Any = np.float32) -> Constant:
    return Constant(np.array(value, dtype))


def value_of(name: str, *args: Expr, **attrs: Any) -> Array:
    found = evaluate_call(call(name, *args, **attrs))
    assert not isinstance(found, tuple)
    return found


def test_one_result() -> None:
    found = value_of("Add", constant([1, 2]), constant(0.5))
    np.testing.assert_array_equal(found, np.array([1.5, 2.5], np.float32), strict=True)


def test_several_results() -> None:
    found = evaluate_call(call("TopK", constant([3, 9, 5]), constant([2], np.int64), outputs=2))
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[0], np.array([9, 5], np.float32), strict=True)
    np.testing.assert_array_equal(found[1], np.array([1, 2]), strict=True)


def test_a_variable_number_of_results_of_which_there_is_one() -> None:
    found = evaluate_call(call("Split", constant([1, 2]), num_outputs=1, outputs=1))
    assert isinstance(found, tuple)
    assert [item.tolist() for item in found] == [[1, 2]]


def test_absent_arguments_are_left_out() -> None:
    assert value_of("Clip", constant([-1, 9]), absent(), constant(6)).tolist() == [-1, 6]


def test_an_operator_that_is_defined_by_others() -> None:
    assert value_of("Mish", constant([0.0])).tolist() == [0]
    loss = call("SoftmaxCrossEntropyLoss", constant([[0.0, 0]]), constant([1], np.int64))
    np.testing.assert_allclose(evaluate_call(loss), np.log(2), rtol=1e-6)


def test_the_element_type_is_the_inferred_one() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        found = value_of("Softmax", constant([0, 0], dtype))
        assert found.dtype == dtype
        assert found.astype(np.float32).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "dtype",
    [DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.INT4, DType.UINT4, DType.FLOAT16],
)
def test_narrow_types_there_and_back(dtype: DType) -> None:
    narrow = value_of("Cast", constant([0, 1, 2, 7]), to=elem_type_of(dtype))
    assert DType.of(narrow) is dtype
    wide = value_of("Cast", Constant(narrow), to=elem_type_of(DType.FLOAT32))
    np.testing.assert_array_equal(wide, np.array([0, 1, 2, 7], np.float32), strict=True)


def test_scalars_and_empty_arrays_keep_their_shape() -> None:
    assert value_of("Neg", constant(2.0)).shape == ()
    assert value_of("ReduceSum", constant([1, 2]), keepdims=0).shape == ()
    assert value_of("Transpose", constant(np.zeros((0, 3))), perm=(1, 0)).shape == (3, 0)


def test_strings_are_objects() -> None:
    found = value_of("StringConcat", constant(["a", "b"], object), constant("c", object))
    assert found.dtype == object
    assert found.tolist() == ["ac", "bc"]


def test_results_are_contiguous_and_read_only_and_arguments_stay_as_they_are() -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name, attrs in (("Transpose", {"perm": (1, 0)}), ("Identity", {}), ("Neg", {})):
        found = value_of(name, Constant(data), **attrs)
        assert found.flags.c_contiguous
        assert not found.flags.writeable
    assert data.flags.writeable


def test_reshaping_copies_nothing() -> None:
    data = np.arange(6, dtype=np.float32)
    assert np.shares_memory(value_of("Reshape", Constant(data), constant([2, 3], np.int64)), data)


def test_infinities_are_values(recwarn: pytest.WarningsRecorder) -> None:
    assert value_of("Div", constant([1, -1]), constant(0)).tolist() == [np.inf, -np.inf]
    assert not recwarn.list


def test_tables_in_attributes() -> None:
    table = np.arange(2000, dtype=np.int64)
    scorer = call("Constant", value=Constant(table))
    np.testing.assert_array_equal(evaluate_call(scorer), table, strict=True)
    filled = value_of("ConstantOfShape", constant([2], np.int64), value=constant([7], np.int32))
    np.testing.assert_array_equal(filled, np.array([7, 7], np.int32), strict=True)


def test_a_layout_transform() -> None:
    data = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    moved = call("layout_transform", Constant(data), domain="intarsia", src_layout="NCHW", dst_layout="NHWC")
    found = evaluate_call(moved)
    np.testing.assert_array_equal(found, data.transpose(0, 2, 3, 1), strict=True)


def test_what_cannot_be_evaluated() -> None:
    x = Var("x", checked_type=TensorType((2,), DType.FLOAT32))
    body = Function((x,), x)
    for made in (call("Relu", x), Call(body, (constant([1, 2]),)), Call(Op("Scan"), (constant([1]), body))):
        assert not can_evaluate(made)
        with pytest.raises(UsageError, match="only operators applied to constants"):
            evaluate_call(made)


def test_a_failure_is_an_error_of_ours() -> None:
    wrong = call("Gather", constant([1, 2]), constant([5], np.int64))
    with pytest.raises(ExecutionError, match="operator 'Gather' cannot be evaluated: IndexError"):
        evaluate_call(wrong)


def test_a_result_of_another_type_than_inferred_is_refused() -> None:
    wrong = with_fields(call("Relu", constant([1, 2])), checked_type=TensorType((3,), DType.FLOAT32))
    with pytest.raises(ExecutionError, match="expected Tensor"):
        evaluate_call(wrong)


def test_sequences_are_no_tensors() -> None:
    with pytest.raises(ExecutionError, match="operator 'SplitToSequence' returned no tensor"):
        evaluate_call(call("SplitToSequence", constant([1, 2])))


def test_a_call_that_nobody_typed() -> None:
    untyped = Call(Op("TopK"), (constant([3, 9]), constant([1], np.int64)), Attrs({"outputs": 2}))
    found = evaluate_call(untyped)
    assert isinstance(found, tuple)
    assert [item.tolist() for item in found] == [[9], [1]]
