"""Errors of loops that only a run can find, in plans without a compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from intarsia.runtime.kernel import Value
from intarsia.runtime.plan import Repeat
from intarsia.runtime.repetition import Repetition
from intarsia.support.errors import ExecutionError

LOOP = Repeat("body", (0,), (1,), (2,), (), (), (), ((0, False),), (3,), (4, 5))
SCAN = Repeat("body", (), (), (), (0, 1), (), ((0, False), (1, True)), ((1, True),), (2,), (3,))


def slots(*values: Any) -> list[Value]:
    """The given values, then two free slots."""
    return [*values, None, None]


def test_a_loop_hands_states_on_and_stacks_rows() -> None:
    values = slots(np.array(2), np.array(True), np.array(1.0), np.empty(0))
    loop = Repetition(LOOP, values, (2,))
    seen = []
    while (arguments := loop.next_arguments()) is not None:
        number, condition, state = (np.asarray(value) for value in arguments)
        seen.append((int(number), bool(condition), float(state)))
        loop.returned[:] = [np.array(True), np.asarray(state * 2), np.asarray(state)]
    loop.finish()
    assert seen == [(0, True, 1.0), (1, True, 2.0)]
    assert values[2] is None
    assert float(np.asarray(values[4])) == 4.0
    np.testing.assert_array_equal(np.asarray(values[5]), [1.0, 2.0])


def test_a_scan_takes_slices_from_either_end() -> None:
    values = slots(np.arange(4).reshape(2, 2), np.arange(6).reshape(3, 2), np.empty((2, 0)))
    scan = Repetition(SCAN, values, ())
    seen = []
    while (arguments := scan.next_arguments()) is not None:
        first, second = (np.asarray(value) for value in arguments)
        assert second.flags.c_contiguous
        seen.append((first.tolist(), second.tolist()))
        scan.returned[:] = [first]
    scan.finish()
    assert seen == [([0, 1], [1, 3, 5]), ([2, 3], [0, 2, 4])]
    np.testing.assert_array_equal(np.asarray(values[3]), [[2, 0], [3, 1]])


def test_slices_of_vectors_are_scalars() -> None:
    step = Repeat("body", (), (), (), (0,), (), ((0, False),), (), (), ())
    arguments = Repetition(step, slots(np.arange(2)), ()).next_arguments()
    assert arguments is not None
    (value,) = arguments
    assert isinstance(value, np.ndarray)
    assert value.shape == ()


def test_what_a_run_refuses() -> None:
    def problem(step: Repeat, *values: Any) -> str:
        with pytest.raises(ExecutionError) as caught:
            Repetition(step, slots(*values), ())
        return caught.value.problem

    empty = np.empty(0)
    assert problem(LOOP, np.array([1, 2]), np.array(True), empty, empty) == (
        "the trip count of a Loop has shape (2,), expected one element"
    )
    assert problem(LOOP, np.array(1), [], empty, empty) == (
        "the condition of a Loop has no array, expected one element"
    )
    assert problem(SCAN, np.empty((2, 2)), np.empty((3, 4)), empty) == (
        "a Scan goes through values of 2 and 4 slices"
    )
    assert problem(SCAN, np.empty((2, 2)), np.empty(3), empty) == (
        "a value that a Scan goes through along axis 1 has shape (3,)"
    )
