"""The operator intarsia::token_append."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import Call, Constant, DType, SymbolicDim, TensorType, Var
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError


def append(*given: Array) -> Call:
    return call("token_append", *map(Constant, given), domain=INTARSIA_DOMAIN)


def test_new_tokens_are_behind_the_past() -> None:
    past, new = np.zeros((2, 3, 4, 5), np.float32), np.ones((2, 3, 1, 5), np.float32)
    expression = append(past, new)
    assert expression.checked_type == TensorType((2, 3, 5, 5), DType.FLOAT32)
    assert np.array_equal(np.asarray(evaluate_call(expression)), np.concatenate([past, new], 2))


def test_a_symbolic_number_of_tokens_is_not_added_up() -> None:
    past, new = (
        Var(name, checked_type=TensorType((1, 2, SymbolicDim(name), 4), DType.FLOAT32)) for name in "pn"
    )
    type_ = call("token_append", past, new, domain=INTARSIA_DOMAIN).checked_type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    assert (*type_.shape[:2], type_.shape[3]) == (1, 2, 4)
    assert not type_.is_static


def test_other_arguments_are_refused() -> None:
    past = np.zeros((2, 3, 4, 5), np.float32)
    for new in (past[0], past.astype(np.float64)):
        with pytest.raises(InvalidModelError, match="cannot append"):
            append(past, new)


def test_new_tokens_are_where_each_text_says() -> None:
    past, new = np.ones((3, 1, 3, 2), np.float32), np.full((3, 1, 2, 2), 2, np.float32)
    result = np.asarray(evaluate_call(append(past, new, np.array([0, 3, 9]))))
    expected = np.array([[2, 2, 1, 0, 0], [1, 1, 1, 2, 2], [1, 1, 1, 2, 2]])
    assert np.array_equal(result[:, 0, :, 0], expected)
    with pytest.raises(InvalidModelError, match="expected int64"):
        append(past, new, np.zeros(3, np.int32))
