"""Operands in turns: equal copies elsewhere, as many as their size asks for."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.autoschedule.measuring.loaded_task import LoadedTask
from intarsia.measure.gate import Gate
from intarsia.native.llvm.thread_pool import ThreadPool
from intarsia.support.aligned_memory import ALIGNMENT


def task() -> LoadedTask:
    return LoadedTask({}, {}, Gate((), (), (), "none"), ThreadPool(1))


@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (4800, 1), (4801, 2), (48_000, 10), (10**9, 64)])
def test_there_are_as_many_as_are_needed(size: int, count: int) -> None:
    operands = np.arange(400, dtype=np.float32), np.arange(800, dtype=np.float32).reshape(20, 40)
    turns = task().turns(operands, size)
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
    copies = loaded.turns((first,), 2000)
    assert loaded.turns((first,), 2000)[1][0] is copies[1][0]
    for number in range(20):
        loaded.turns((np.full(100, number, np.float32),), 2000)
    assert len(loaded.copies) <= 8
    assert loaded.turns((first,), 2000)[1][0] is not copies[1][0]


def test_an_array_at_the_address_of_another_is_not_taken_for_it() -> None:
    loaded, array = task(), np.zeros(100, np.float32)
    loaded.turns((array,), 2000)
    other = array[:50]  # the same address
    assert all(each[0].shape == (50,) for each in loaded.turns((other,), 2000))


def test_no_operands_are_one_turn() -> None:
    assert task().turns((), 1000) == [()]
