"""Sets of operands: equal copies in other memory, as many as the wanted size needs."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.measure.judge.difference import sure_limit
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.tolerance import tolerance_for
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.schedules.loaded_task import GuardedOutput, LoadedTask
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.support.aligned_memory import ALIGNMENT


def task() -> LoadedTask:
    return LoadedTask({}, {}, Gate((), (), (), "none"), ThreadPool(1))


@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (4800, 1), (4801, 2), (48_000, 10), (10**9, 64)])
def test_there_are_as_many_as_are_needed(size: int, count: int) -> None:
    operands = np.arange(400, dtype=np.float32), np.arange(800, dtype=np.float32).reshape(20, 40)
    turns = task().operand_sets(operands, size)
    assert len(turns) == count
    assert turns[0][0] is operands[0]
    assert turns[0][1] is operands[1]
    places = {array.ctypes.data for each in turns for array in each}
    assert len(places) == 2 * count
    for each in turns[1:]:
        assert all(array.ctypes.data % ALIGNMENT == 0 for array in each)
        for array, original in zip(each, operands, strict=True):
            np.testing.assert_array_equal(array, original)


def test_copies_are_kept_and_others_forgotten() -> None:
    loaded, first = task(), np.ones(100, np.float32)
    copies = loaded.operand_sets((first,), 2000)
    assert loaded.operand_sets((first,), 2000)[1][0] is copies[1][0]
    for number in range(20):
        loaded.operand_sets((np.full(100, number, np.float32),), 2000)
    assert len(loaded.copies) <= 8
    assert loaded.operand_sets((first,), 2000)[1][0] is not copies[1][0]


def test_an_array_at_the_address_of_another_is_not_taken_for_it() -> None:
    loaded, array = task(), np.zeros(100, np.float32)
    loaded.operand_sets((array,), 2000)
    other = array[:50]  # the same address
    assert all(each[0].shape == (50,) for each in loaded.operand_sets((other,), 2000))


def test_no_operands_are_one_turn() -> None:
    assert task().operand_sets((), 1000) == [()]


@pytest.mark.parametrize(("error", "is_right"), [(0.0, True), (1e-6, True), (1e-2, False), (np.nan, False)])
def test_results_are_checked_the_same_with_and_without_a_sure_limit(error: float, is_right: bool) -> None:
    expected = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    gate = Gate.by_tolerance(("y",), (expected,), (tolerance_for("float32", 100),), "given")
    limit = sure_limit(expected, tolerance_for("float32", 100))
    assert limit is not None
    found = []
    for limits in ((), (None,), (limit,)):
        output = GuardedOutput.of(expected)
        loaded = LoadedTask({}, {"y": output}, gate, ThreadPool(1), limits=limits)
        loaded.spoil_outputs()
        output.array[...] = expected
        output.array[17, 3] += np.float32(error)
        found.append(loaded.check_outputs())
    assert found[0] == found[1] == found[2]
    assert (found[0].error is MeasureError.OK) == is_right
