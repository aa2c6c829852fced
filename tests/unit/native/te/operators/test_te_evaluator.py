"""The evaluator of tensor expressions that the tests of compute rules rely on."""

from __future__ import annotations

import numpy as np
import pytest
from tests.te_evaluator import UndefinedElementError, evaluate

from intarsia.ir import DType
from intarsia.native import te

A = te.placeholder((3, 4), name="A")
VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_chain_of_operations() -> None:
    k = te.reduce_axis(4, "k")
    rows = te.compute((3,), lambda i: te.sum(A[i, k], k), name="rows")
    scaled = te.compute((3, 4), lambda i, j: A[i, j] / rows[i], name="scaled")
    found = evaluate([scaled, rows], {"A": VALUES})
    np.testing.assert_array_equal(found[1], VALUES.sum(1))
    np.testing.assert_array_equal(found[0], VALUES / VALUES.sum(1, keepdims=True))


def test_only_the_chosen_value_is_read() -> None:
    shifted = te.compute((3, 6), lambda i, j: te.if_then_else(j < 4, A[i, j], -1.0), name="shifted")
    found = evaluate([shifted], {"A": VALUES})[0]
    np.testing.assert_array_equal(found[:, :4], VALUES)
    assert (found[:, 4:] == -1).all()


def test_reading_outside_is_an_error() -> None:
    wrong = te.compute((3, 5), lambda i, j: te.select(j < 4, A[i, j], -1.0), name="wrong")
    with pytest.raises(UndefinedElementError, match="A is read outside"):
        evaluate([wrong], {"A": VALUES})


@pytest.mark.parametrize("extent", [0, 1, 2, 5])
def test_reductions_of_any_length(extent: int) -> None:
    b = te.placeholder((extent,), DType.INT32, "B")
    k = te.reduce_axis(extent, "k")
    total = te.compute((), lambda: te.sum(b[k], k), name="total")
    largest = te.compute((), lambda: te.max(b[k], k), name="largest")
    values = np.arange(extent, dtype=np.int32) + 7
    found = evaluate([total, largest], {"B": values})
    assert int(found[0]) == int(values.sum())
    assert int(found[1]) == max(values.tolist(), default=np.iinfo(np.int32).min)


def test_what_machines_trap_at_is_an_error() -> None:
    b = te.placeholder((2,), DType.INT32, "B")
    divided = te.compute((2,), lambda i: te.const(1, DType.INT32) // b[i], name="divided")
    shifted = te.compute((2,), lambda i: te.call("shift_left", b[i], b[i]), name="shifted")
    with pytest.raises(UndefinedElementError, match="division by zero"):
        evaluate([divided], {"B": np.array([1, 0], np.int32)})
    with pytest.raises(UndefinedElementError, match="a shift by more than the width"):
        evaluate([shifted], {"B": np.array([1, 32], np.int32)})
