"""Orders of axes, and the rules by which a Transpose moves behind an operator."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from intarsia.ir import Call, Constant, DType, Expr, Op, TensorType, Var
from intarsia.op import absent, call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.layout import (
    LAYOUT_RULES,
    channels_last,
    compose,
    inverse,
    is_identity,
    permuted_call,
    permuted_type,
)
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import OPERATORS

X = Var("x", checked_type=TensorType((2, 3, 4), DType.FLOAT32))
ORDERS = tuple(permutations(range(3)))


def test_composing_is_transposing_twice() -> None:
    value = np.arange(24).reshape(2, 3, 4)
    for first in ORDERS:
        for then in ORDERS:
            expected = value.transpose(first).transpose(then)
            np.testing.assert_array_equal(value.transpose(compose(first, then)), expected)


@pytest.mark.parametrize("order", ORDERS)
def test_the_inverse_undoes(order: tuple[int, ...]) -> None:
    assert is_identity(compose(order, inverse(order)))
    assert is_identity(compose(inverse(order), order))


def test_channels_last_of_each_rank() -> None:
    assert [channels_last(rank) for rank in (3, 4, 5)] == [(0, 2, 1), (0, 2, 3, 1), (0, 2, 3, 4, 1)]


def test_every_kind_of_layout_has_a_rule_or_says_that_it_has_none() -> None:
    assert set(LAYOUT_RULES) == set(LayoutKind)


def test_types() -> None:
    assert permuted_type(X.checked_type, (2, 0, 1)) == TensorType((4, 2, 3), DType.FLOAT32)
    assert permuted_type(X.checked_type, (1, 0)) is None
    assert permuted_type(None, (1, 0)) is None


def test_an_axis_is_renamed() -> None:
    moved = permuted_call(call("Softmax", X, axis=-1), (1, 2, 0))
    assert moved is not None
    assert moved.attrs["axis"] == 0
    assert moved.order == (1, 2, 0)


def test_axes_that_vanish_leave_an_order_of_the_others() -> None:
    moved = permuted_call(call("ReduceSum", X, Constant(np.array([0])), keepdims=0), (1, 2, 0))
    assert moved is not None
    (axes,) = moved.others
    assert isinstance(axes, Constant)
    assert axes.data.tolist() == [1]
    assert moved.order == (1, 0)


def test_no_rule_for_what_mixes_axes() -> None:
    assert permuted_call(call("Flatten", X), (1, 2, 0)) is None


def ints(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


SCALES = Constant(np.array([0.5, 0.25, 0.125], np.float32))
LEFT_AS_IT_IS = {"LpNormalization": "onnx.reference computes it wrong"}
MOVED: dict[str, tuple[tuple[Expr, ...], dict[str, Any]]] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), ((), {"keepdims": 0})),
    **dict.fromkeys(("CumProd", "CumSum"), ((Constant(np.array(1, np.int64)),), {})),
    **dict.fromkeys(("Dropout", "Hardmax", "LogSoftmax", "Softmax"), ((), {})),
    **dict.fromkeys((name for name in OPERATORS if name.startswith("Reduce")), ((ints(0, 2),), {})),
    "DequantizeLinear": ((SCALES,), {}),
    "Pad": ((ints(1, 0, 0, 2), absent(), ints(0, 2)), {}),
    "QuantizeLinear": ((SCALES,), {}),
    "Resize": ((absent(), Constant(np.array([2.0, 1.0, 3.0], np.float32))), {}),
    "Slice": ((ints(0, 1), ints(2, 3), ints(0, 2)), {}),
    "Split": ((), {"outputs": 2, "num_outputs": 2}),
    "Squeeze": ((ints(1),), {}),
    "TopK": ((ints(2),), {"outputs": 2}),
}
"""A call of each operator that has a rule: its other arguments, its attributes."""


def has_rule(name: str) -> bool:
    return LAYOUT_RULES[OPERATORS[name].layout] is not None


def test_every_operator_with_a_rule_is_tried() -> None:
    assert set(MOVED) | set(LEFT_AS_IT_IS) == set(filter(has_rule, OPERATORS))


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MOVED)
def test_a_transpose_moves_behind_the_operator(name: str, order: tuple[int, ...]) -> None:
    others, attrs = MOVED[name]
    data = np.random.default_rng(1).permutation(60).reshape(4, 3, 5)
    if name == "Squeeze":
        data = data.reshape(12, 1, 5)
    value = data.astype(np.int8 if name == "DequantizeLinear" else np.float32)
    if name in ("DequantizeLinear", "QuantizeLinear"):
        value = value[:3, :, :3]  # three scales, whatever the order
    before = value.transpose(inverse(order))
    expected = values_of(call(name, Constant(value), *others, **attrs))
    seen = call(name, Constant(value), *others, **attrs)
    moved = permuted_call(seen, order)
    assert moved is not None
    assert isinstance(seen.op, Op)
    after = Call(seen.op, (Constant(before), *moved.others), moved.attrs)
    for found, wanted in zip(values_of(after), expected, strict=True):
        np.testing.assert_allclose(found.transpose(moved.order), wanted, rtol=1e-5)


def values_of(call_: Call) -> tuple[Any, ...]:
    value = evaluate_call(call_)
    return value if isinstance(value, tuple) else (value,)
