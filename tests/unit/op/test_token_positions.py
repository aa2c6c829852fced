"""The operator intarsia::token_positions."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import Call, Constant
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError


def positions(mode: str, x: Array, tokens: int) -> Call:
    like = np.zeros((len(x), tokens), np.int64)
    return call("token_positions", Constant(x), Constant(like), domain=INTARSIA_DOMAIN, mode=mode)


def test_every_mode() -> None:
    mask = np.array([[0, 1, 1, 1], [1, 1, 0, 1]])
    cases = {
        "sum": (mask, [[0, 1, 2, 3], [1, 2, 2, 3]]),
        "tail": (mask, [[1, 1], [0, 1]]),
        "positions": (mask[:, 1:2], [[1, 2], [1, 2]]),
        "start": (mask.sum(1) - 2, [0, 0]),
    }
    for mode, (x, expected) in cases.items():
        result = np.asarray(evaluate_call(positions(mode, x, 2)))
        assert result.tolist() == expected, mode
        assert result.dtype == x.dtype
    assert np.array_equal(np.asarray(evaluate_call(positions("start", np.array([7, 1]), 3))), [4, 0])


def test_other_arguments_are_refused() -> None:
    with pytest.raises(InvalidModelError, match="expected one of sum, tail, positions, start"):
        positions("other", np.zeros((1, 2), np.int64), 1)
    with pytest.raises(InvalidModelError, match="signed integers of rank 1"):
        positions("start", np.zeros((1, 2), np.int64), 1)
    with pytest.raises(InvalidModelError, match="signed integers of rank 2"):
        positions("sum", np.zeros((1, 2), np.float32), 1)
