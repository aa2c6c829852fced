"""Orders of axes, and the rules by which a Transpose moves behind an operator."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from intarsia.ir import Constant, DType, TensorType, Var
from intarsia.op import call
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
