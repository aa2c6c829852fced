"""The operator intarsia::token_filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import Call, Constant
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError


def filtered(x: Array, taps: Array, first: int, step: int = 1) -> Call:
    return call("token_filter", Constant(x), Constant(taps), domain=INTARSIA_DOMAIN, first=first, step=step)


@given(st.integers(0, 6), st.integers(-8, 8), st.integers(1, 4), st.integers(1, 3))
def test_neighbours_are_summed_channel_by_channel(tokens: int, first: int, count: int, step: int) -> None:
    rng = np.random.default_rng(tokens)
    x, taps = rng.standard_normal((2, tokens, 3)), rng.standard_normal((count, 3))
    result = np.asarray(evaluate_call(filtered(x, taps, first, step)))
    assert result.shape == x.shape
    for token in range(tokens):
        near = [(at, token + first + at * step) for at in range(count)]
        expected = sum(
            (taps[at] * x[:, beside] for at, beside in near if 0 <= beside < tokens), np.zeros((2, 3))
        )
        np.testing.assert_allclose(result[:, token], expected)


def test_other_arguments_are_refused() -> None:
    with pytest.raises(InvalidModelError, match="expected integers, the last one positive"):
        filtered(np.zeros((1, 2, 3)), np.zeros((2, 3)), 0, 0)
    for x, taps in ((np.zeros((1, 2)), np.zeros((2, 3))), (np.zeros((1, 2, 3), np.int64), np.zeros((2, 3)))):
        with pytest.raises(InvalidModelError, match="of one floating-point type, not"):
            filtered(x, taps, 0)
