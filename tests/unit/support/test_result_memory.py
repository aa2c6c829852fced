"""Memory of results, which is used again when their last array is gone."""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest
from tests.pages_taken_ahead import pages_of_test, takes_pages

from intarsia.support.array_address import array_address
from intarsia.support.result_memory import ResultMemory

_MIB = 1 << 20
_FLOAT = np.dtype(np.float32)


def test_memory_is_used_again_after_the_last_view() -> None:
    memory = ResultMemory()
    first = memory.array((3, _MIB), _FLOAT)
    address, view = array_address(first), first[1:, 5]
    del first
    second = memory.array((2, _MIB), _FLOAT)
    assert array_address(second) != address
    del view
    third = memory.array((_MIB,), _FLOAT)
    assert array_address(third) == address


def test_larger_results_grow_in_place() -> None:
    memory = ResultMemory()
    addresses = set()
    for size in range(1, 12):
        result = memory.array((size, _MIB), np.dtype(np.uint8))
        result[:] = 7
        addresses.add(array_address(result))
        del result
    assert len(addresses) == 1


def test_two_free_blocks_are_kept() -> None:
    memory = ResultMemory()
    results = [memory.array((_MIB,), _FLOAT) for _ in range(5)]
    addresses = {array_address(result) for result in results}
    assert len(addresses) == 5
    results.clear()
    kept = [memory.array((_MIB,), _FLOAT) for _ in range(2)]
    assert {array_address(result) for result in kept} <= addresses
    assert not memory._free


def test_memory_ahead_is_for_two_results() -> None:
    memory = ResultMemory(8 * _MIB)
    sizes = [block.array.nbytes for block in memory._free]
    first, second = (memory.array((4, _MIB), np.dtype(np.int8)) for _ in range(2))
    assert sizes == [4 * _MIB] * 2
    assert not np.shares_memory(first, second)
    assert not memory._free


@takes_pages
def test_pages_of_the_largest_results_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch)
    memory = ResultMemory(2 * _MIB, grows=True)
    memory.expect_largest(9 * _MIB)
    thread.wait()
    assert [9 * _MIB <= block.ready < 12 * _MIB for block in memory._free] == [True, True]
    first, second, third = (memory.array((9, _MIB), np.dtype(np.uint8)) for _ in range(3))
    for number, result in enumerate((first, second, third)):
        result[:] = number
    thread.wait()  # the third one begins a block, whose pages are expected as well
    assert [int(result.min()) for result in (first, second, third)] == [0, 1, 2]
    assert [int(result.max()) for result in (first, second, third)] == [0, 1, 2]


@takes_pages
@pytest.mark.parametrize("grows", [False, True])
def test_only_results_that_grow_are_expected_to_double(grows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch)
    memory = ResultMemory(grows=grows)
    result = memory.array((4, _MIB), np.dtype(np.uint8))
    thread.wait()
    del result
    assert (memory._free[0].ready >= 8 * _MIB) == grows


@pytest.mark.parametrize("count", [3, _MIB])
def test_makers_allocate_as_array_does(count: int) -> None:
    memory = ResultMemory()
    new = memory.maker((2, count), _FLOAT)
    first, second = new(), new()
    assert (first.shape, first.dtype) == ((2, count), _FLOAT)
    assert not np.shares_memory(first, second)
    address = array_address(first)
    del first
    if count == _MIB:
        assert array_address(new()) == address


@pytest.mark.parametrize("seed", range(3))
def test_results_that_are_alive_never_share_memory(seed: int) -> None:
    draw = random.Random(seed)
    memory = ResultMemory(draw.choice((0, 6 * _MIB)))
    alive: list[tuple[int, np.ndarray]] = []
    for number in range(60):
        shape = (draw.randrange(5), draw.choice((3, _MIB // 4, _MIB)))
        result = memory.array(shape, np.dtype(np.int16))
        assert result.shape == shape
        assert result.flags.c_contiguous
        result[:] = number
        alive.append((number, result[::2] if draw.random() < 0.5 else result))
        del result
        while len(alive) > draw.randrange(5):
            value, other = alive.pop(draw.randrange(len(alive)))
            assert (other == value).all()
    assert all((result == value).all() for value, result in alive)


def test_results_may_go_in_other_threads_and_in_garbage_collection() -> None:
    memory = ResultMemory()
    for _ in range(20):
        cycle: list[object] = [memory.array((_MIB,), _FLOAT)]
        cycle.append(cycle)
        handed = [memory.array((2 * _MIB,), _FLOAT)]
        thread = threading.Thread(target=handed.clear)
        thread.start()
        memory.array((_MIB,), _FLOAT)[:] = 1
        del cycle
        gc.collect()
        thread.join()
    assert len(memory._free) == 2
