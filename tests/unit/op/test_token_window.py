"""The operator intarsia::token_window."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import Call, Constant, DType, SymbolicDim, TensorType, Var
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError


def window(x: Array, first: int, count: int, step: int = 1) -> Call:
    return call("token_window", Constant(x), domain=INTARSIA_DOMAIN, first=first, count=count, step=step)


@given(st.integers(0, 6), st.integers(-8, 8), st.integers(1, 4), st.integers(1, 3))
def test_neighbours_lie_side_by_side(tokens: int, first: int, count: int, step: int) -> None:
    x = np.random.default_rng(tokens).integers(1, 9, (2, tokens, 3))
    result = np.asarray(evaluate_call(window(x, first, count, step)))
    assert result.shape == (2, tokens, count, 3)
    for token in range(tokens):
        for at in range(count):
            near = token + first + at * step
            expected = x[:, near] if 0 <= near < tokens else np.zeros((2, 3))
            assert np.array_equal(result[:, token, at], expected)


def test_the_type_has_an_axis_of_neighbours() -> None:
    x = Var("x", checked_type=TensorType((1, SymbolicDim("length"), 8), DType.FLOAT32))
    result = call("token_window", x, domain=INTARSIA_DOMAIN, first=-1, count=3, step=1)
    assert result.checked_type == TensorType((1, SymbolicDim("length"), 3, 8), DType.FLOAT32)


def test_other_arguments_are_refused() -> None:
    with pytest.raises(InvalidModelError, match="expected integers, the last two positive"):
        window(np.zeros((1, 2)), 0, 0)
    with pytest.raises(InvalidModelError, match=r"is for \(texts, tokens, ...\), not"):
        window(np.zeros(3), 0, 1)
