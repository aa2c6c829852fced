"""Values of operators that NumPy computes as onnx's reference does, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from intarsia.ir import Constant
from intarsia.op import call, evaluate
from intarsia.op.evaluate import evaluate_call
from intarsia.op.plain_values import plain_value
from intarsia.support.errors import ExecutionError

_ODD = np.array([[0.0, -0.0, 1.5], [np.inf, -np.inf, np.nan]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("Add", ([[-1.0], [np.inf]],)),
        ("Sub", ([0.1, 1e30, np.inf],)),
        ("Mul", ([0.1, 1e30, 0.0],)),
        ("Div", ([0.0, 3.0, -0.0],)),
        ("Sqrt", ()),
    ],
)
def test_floating_operators(
    name: str, others: tuple[Any, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = [Constant(np.array(value, dtype)) for value in (_ODD, *others)]
    _check_as_reference(call(name, *args), monkeypatch)


@pytest.mark.parametrize("axes", [[0], [2, 0], [-1], []])
def test_new_axes(axes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    _check_as_reference(call("Unsqueeze", Constant(_ODD), Constant(np.array(axes, np.int64))), monkeypatch)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [0, [1, -1], [[0], [1]]])
def test_gathered_elements(axis: int, indices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    args = Constant(_ODD), Constant(np.array(indices, np.int64))
    _check_as_reference(call("Gather", *args, axis=axis), monkeypatch)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("extents", [(3, 40), (40, 3), (33, 33)])
def test_elements_of_a_long_axis(axis: int, extents: tuple[int, int]) -> None:
    """ONNX's reference fails here; exporters write token types as such a Gather of a table of positions."""
    data = np.arange(extents[0] * extents[1]).reshape(extents)
    rows, columns = min(2, extents[0]), min(3, extents[1])
    indices = np.array([[-1, 0, 2], [1, 2, 0]])[:rows, :columns]
    value = evaluate_call(call("GatherElements", Constant(data), Constant(indices), axis=axis))
    for row, column in np.ndindex(indices.shape):
        at = (indices[row, column], column) if axis == 0 else (row, indices[row, column])
        assert isinstance(value, np.ndarray)
        assert value[row, column] == data[at]


def test_an_index_out_of_range_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="cannot be evaluated"):
        evaluate_call(call("Gather", Constant(_ODD), Constant(np.array(2, np.int64))))


@pytest.mark.parametrize(("name", "dtype"), [("Div", np.int64), ("Add", np.float16)])
def test_other_types_are_left_to_the_reference(name: str, dtype: Any) -> None:
    values = [np.array([7, -7], dtype), np.array([2, 2], dtype)]
    assert plain_value(call(name, *map(Constant, values)), values) is None


def _check_as_reference(expr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [arg.data for arg in expr.args]
    with np.errstate(all="ignore"):
        assert plain_value(expr, values) is not None
    plain = evaluate_call(expr)
    monkeypatch.setattr(evaluate, "plain_value", lambda *_: None)
    reference = evaluate_call(expr)
    assert isinstance(plain, np.ndarray)
    assert isinstance(reference, np.ndarray)
    assert (plain.dtype, plain.shape) == (reference.dtype, reference.shape)
    assert plain.tobytes() == reference.tobytes()
