from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.native_workloads import argmax_nm

from intarsia.ir import DType
from intarsia.ir.prim_func import Buffer, For, Load, LoopVar, Store
from intarsia.native import te
from intarsia.native.dag import ComputeDAG, structural_key, workload_key
from intarsia.native.loop_state import LoopState, print_python_code_from_state
from intarsia.native.lowering.naive import lower_naive
from intarsia.native.te.compute import Element
from intarsia.native.te.tensor import ComputeOp, output_names
from intarsia.native.tir.interpret import interpret
from intarsia.support.errors import UsageError

F32, I64 = DType.FLOAT32, DType.INT64
Array = npt.NDArray[Any]


def evaluated(tensor: te.Tensor, **inputs: Array) -> Array:
    out = np.zeros(tensor.shape, tensor.dtype.numpy)
    interpret(lower_naive([tensor]), inputs | {tensor.buffer.name: out})
    return out


def test_an_operation_of_axes_and_a_body() -> None:
    x = te.placeholder((2, 3), name="X")
    y = te.compute((2, 3), lambda i, j: x[i, j] + 1, name="Y", attrs={"FLOP": 6})
    op = y.op
    assert isinstance(op, ComputeOp)
    assert [(axis.name, axis.extent, axis.kind) for axis in op.axes] == [
        ("i", 2, te.IterKind.SPATIAL),
        ("j", 3, te.IterKind.SPATIAL),
    ]
    assert (op.shape, op.dtypes, op.inputs, op.combiner) == ((2, 3), (F32,), (x,), None)
    assert dict(op.attrs) == {"FLOP": 6}
    assert (y.shape, y.dtype, y.buffer) == ((2, 3), F32, Buffer("Y", (2, 3), F32))
    assert y == te.Tensor(op) != te.compute((2, 3), lambda i, j: x[i, j] + 1, name="Y")


def test_names_of_axes() -> None:
    deep = te.compute((1,) * 10, lambda *i: te.const(0.0), name="Y").op
    assert isinstance(deep, ComputeOp)
    assert [axis.name for axis in deep.axes] == [*"ijklmnop", "i8", "i9"]
    with pytest.raises(UsageError, match="Y: found 1 names of axes; expected 2"):
        te.compute((2, 2), lambda i, j: te.const(0.0), name="Y", axis_names=["x"])
    with pytest.raises(UsageError, match="Y: several axes are named x"):
        te.compute((2, 2), lambda i, j: te.const(0.0), name="Y", axis_names=["x", "x"])
    k = te.reduce_axis(4, "i")
    with pytest.raises(UsageError, match="Y: several axes are named i"):
        te.compute((2,), lambda i: te.sum(te.const(1.0), axis=k), name="Y")


def test_every_kind_of_reduction_computes() -> None:
    x = te.placeholder((3, 4), name="X")
    k = te.reduce_axis(4, "k")
    array = np.array([[1, -2, 3, 4], [0, 0, -1, 5], [2, 2, 2, 2]], np.float32)
    for function, expected in (
        (te.sum, array.sum(1)),
        (te.prod, array.prod(1)),
        (te.max, array.max(1)),
        (te.min, array.min(1)),
    ):
        y = te.compute((3,), lambda i, function=function: function(x[i, k], axis=k), name="Y")
        np.testing.assert_array_equal(evaluated(y, X=array), expected)


def test_reductions_of_nothing_are_neutral() -> None:
    k = te.reduce_axis(0, "k")
    for function, expected in ((te.sum, 0), (te.prod, 1), (te.max, -np.inf), (te.min, np.inf)):
        x = te.placeholder((2, 0), name="X")
        y = te.compute((2,), lambda i, function=function, x=x: function(x[i, k], axis=k), name="Y")
        np.testing.assert_array_equal(evaluated(y, X=np.zeros((2, 0), np.float32)), expected)
    n = te.placeholder((0,), I64, name="N")
    least = te.compute((), lambda: te.max(n[k], axis=k), name="Y")
    assert evaluated(least, N=np.zeros(0, np.int64)) == np.iinfo(np.int64).min


def test_several_axes_and_nan() -> None:
    x = te.placeholder((2, 3), name="X")
    axes = [te.reduce_axis(2, "a"), te.reduce_axis(3, "b")]
    y = te.compute((), lambda: te.max(x[axes[0], axes[1]], axis=axes), name="Y")
    array = np.array([[1, np.nan, 2], [3, 4, 5]], np.float32)
    assert np.isnan(evaluated(y, X=array))
    array[0, 1] = 9
    assert evaluated(y, X=array) == 9


def test_an_operation_with_two_results() -> None:
    a, where, largest = argmax_nm(3, 4)
    assert [tensor.buffer.name for tensor in (where, largest)] == ["argmax.v0", "argmax.v1"]
    assert [tensor.dtype for tensor in (where, largest)] == [I64, F32]
    array = np.array([[1, 4, 4, 2], [0, 0, 0, 0], [-1, -2, -3, 5]], np.float32)
    out = np.zeros(3, np.int64), np.zeros(3, np.float32)
    interpret(lower_naive([where, largest]), [array, *out])
    np.testing.assert_array_equal(out[0], array.argmax(1))
    np.testing.assert_array_equal(out[1], array.max(1))
    assert a.op is where.op.inputs[0].op


def test_several_values_without_a_reduction() -> None:
    x = te.placeholder((3,), name="X")
    up, down = te.compute_many((3,), lambda i: (x[i] + 1, x[i] - 1), name="Y")
    out = np.zeros(3, np.float32), np.zeros(3, np.float32)
    interpret(lower_naive([up, down]), [np.arange(3, dtype=np.float32), *out])
    np.testing.assert_array_equal(out, [[1, 2, 3], [-1, 0, 1]])
    with pytest.raises(UsageError, match="Y: an element is 2 values; expected 1"):
        te.compute((3,), lambda i: (x[i], x[i]), name="Y")


def test_only_one_value_of_a_choice_is_evaluated() -> None:
    x = te.placeholder((4,), name="X")
    y = te.compute((6,), lambda i: te.if_then_else(te.logical_and(i >= 1, i < 5), x[i - 1], 0.0), name="Y")
    np.testing.assert_array_equal(evaluated(y, X=np.arange(4, dtype=np.float32) + 1), [0, 1, 2, 3, 4, 0])


def test_an_own_combiner_must_fit_its_values() -> None:
    k = te.reduce_axis(4, "k")
    combiner = te.Combiner.of("sum", [(0, F32)], lambda lhs, rhs: (lhs[0] + rhs[0],))
    with pytest.raises(UsageError, match="combiner sum: found values of int64; expected float32"):
        te.reduce(combiner, [k.expression], axis=k)
    with pytest.raises(UsageError, match="combiner sum: found values of float32, float32; expected float32"):
        te.reduce(combiner, [te.const(1.0)] * 2, axis=k)


def test_what_a_statement_writes() -> None:
    x, y, i = te.placeholder((3,), name="X"), Buffer("Y", (3,), F32), LoopVar("i")
    (out,) = te.extern([y], [x, x], For(i, 3, Store(y, (i,), Load(x.buffer, (i,)))), "Y")
    assert out.op.inputs == (x,)
    np.testing.assert_array_equal(evaluated(out, X=np.arange(3, dtype=np.float32)), [0, 1, 2])


def test_names_of_results() -> None:
    assert output_names("C", 1) == ("C",)
    assert output_names("C", 2) == ("C.v0", "C.v1")


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(F32, -np.inf, np.inf), (DType.INT8, -128, 127), (DType.UINT16, 0, 65535), (DType.BOOL, 0, 1)],
)
def test_the_limits_of_types(dtype: DType, least: float, most: float) -> None:
    assert (te.lowest(dtype), te.highest(dtype)) == (least, most)


def test_axes_are_operands_of_index_arithmetic() -> None:
    x = te.placeholder((12,), name="X")
    k = te.reduce_axis(3, "k")
    y = te.compute((2,), lambda i: te.sum(x[k * 4 + i] + x[11 - k] + x[k % 2 + k // 2], axis=k), name="Y")
    array = np.arange(12, dtype=np.float32) ** 2
    expected = [
        sum(array[k * 4 + i] + array[11 - k] + array[k % 2 + k // 2] for k in range(3)) for i in (0, 1)
    ]
    np.testing.assert_array_equal(evaluated(y, X=array), expected)
    assert (2 * k + (1 + k)).dtype is (k - 1).dtype is I64


def axis_names(element: Callable[..., Element], rank: int = 2) -> list[str]:
    op = te.compute((3,) * rank, element, name="Y").op
    assert isinstance(op, ComputeOp)
    return [axis.name for axis in op.axes]


def test_axes_have_the_names_of_the_arguments() -> None:
    x = te.placeholder((3, 3), name="X")
    assert axis_names(lambda row, column: x[row, column]) == ["row", "column"]
    assert axis_names(lambda row, column, scale=2.0: x[row, column] * scale) == ["row", "column"]


def test_axes_without_names_are_letters() -> None:
    x, k = te.placeholder((3, 3), name="X"), te.reduce_axis(3, "k")
    assert axis_names(lambda *at: x[at]) == ["i", "j"]
    assert axis_names(lambda row, *rest: x[(row, *rest)]) == ["i", "j"]
    assert axis_names(lambda _, j: x[j, j]) == ["i", "j"]
    assert axis_names(lambda k_, k: te.sum(x[k_, k_], axis=te.reduce_axis(3, "k"))) == ["i", "j"]
    assert axis_names(lambda row, column: te.sum(x[row, k], axis=k)) == ["row", "column"]


def test_keys_are_the_same_whatever_the_arguments_are_called() -> None:
    x, k = te.placeholder((3, 3), name="X"), te.reduce_axis(3, "k")
    rows = te.compute((3, 3), lambda row, column: te.sum(x[row, k] * x[k, column], axis=k), name="Y")
    letters = te.compute((3, 3), lambda i, j: te.sum(x[i, k] * x[k, j], axis=k), name="Y")
    named, plain = ComputeDAG((x, rows)), ComputeDAG((x, letters))
    assert workload_key(named) == workload_key(plain)
    assert structural_key(named) == structural_key(plain)
    assert "Y(row, column) += (X[row, k]*X[k, column])" in str(named)
    code = print_python_code_from_state(LoopState.initial(named).split("Y", "column", [2]))
    assert "Y_row, Y_column, Y_k" in code
