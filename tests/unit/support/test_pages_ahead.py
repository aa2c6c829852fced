"""Pages that memory gets in the background."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tests.pages_taken_ahead import FREE, MIB, pages_of_test, takes_pages
from tests.unit.support.test_forks import exit_status_of_child

from intarsia.support import growing_memory, pages_ahead
from intarsia.support.array_address import array_address
from intarsia.support.environment import MEMORY_AHEAD, copy_environment
from intarsia.support.growing_memory import GrowingMemory
from intarsia.support.pages_ahead import THREAD_NAME, PagesAhead

_CHUNK = 2 * MIB
pytestmark = takes_pages


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[PagesAhead]:
    """Return the thread of memory that this test makes, on a machine with 8 GiB that are free."""
    thread = pages_of_test(monkeypatch)
    yield thread
    thread.wait()


def test_pages_of_the_largest_size_are_there(ahead: PagesAhead) -> None:
    memory = GrowingMemory()
    assert memory.expect_largest(21 * MIB + 5)
    ahead.wait()
    assert memory.array.nbytes == 0
    assert 21 * MIB + 5 <= memory.ready <= 23 * MIB + 5
    assert memory.bytes_ahead == memory.ready
    assert not memory.grow(9 * MIB)
    assert not memory.array.any()
    assert memory.bytes_ahead == memory.ready - 9 * MIB
    address = array_address(memory.array)
    assert not memory.grow(20 * MIB)
    assert array_address(memory.array) == address
    assert ahead._thread is None


def test_memory_that_grew_is_expected_to_double(ahead: PagesAhead) -> None:
    memory = GrowingMemory()
    for size in (1, 3 * MIB, 5 * MIB):
        memory.grow(size)
        memory.expect_growth()
        ahead.wait()
        assert memory.ready >= (0 if size == 1 else 2 * size)
    assert memory.ready <= 10 * MIB + _CHUNK
    memory.expect_largest(6 * MIB)
    memory.expect_growth()
    assert ahead._thread is None, "the largest size is there"


def test_growth_is_expected_up_to_the_largest_size(ahead: PagesAhead) -> None:
    memory = GrowingMemory()
    memory.grow(4 * MIB)
    assert not memory.expect_largest(5 * MIB)
    memory.expect_growth()
    ahead.wait()
    assert memory.ready <= 6 * MIB


@pytest.mark.parametrize("seed", range(3))
def test_values_stay_while_pages_are_taken(ahead: PagesAhead, seed: int) -> None:
    draw = random.Random(seed)
    memory = GrowingMemory()
    memory.expect_largest(40 * MIB)
    size = 0
    while size < 40 * MIB:
        before = size
        size += draw.randrange(1, 5 * MIB)
        assert not memory.grow(size)
        memory.array[before:size] = 7
        memory.expect_growth()
    ahead.wait()
    assert (memory.array == 7).all()


def test_memory_that_moves_meanwhile_has_its_own_pages(
    ahead: PagesAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_memory, "_LEAST_RESERVED", 0)
    monkeypatch.setattr(growing_memory, "_TIMES_RESERVED", 1)
    memory = GrowingMemory()
    memory.expect_largest(24 * MIB)
    assert memory.grow(60 * MIB)
    memory.array[:] = 3
    ahead.wait()
    assert memory.ready >= 60 * MIB
    assert (memory.array == 3).all()


def test_pages_ahead_are_bounded_over_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch, most=10 * MIB)
    memories = [GrowingMemory() for _ in range(3)]
    for memory in memories:
        memory.expect_largest(8 * MIB)
    thread.wait()
    assert 10 * MIB <= sum(memory.bytes_ahead for memory in memories) < 10 * MIB + _CHUNK
    memories[0].grow(8 * MIB)  # a value needs it: it no longer counts
    more = GrowingMemory()
    more.expect_largest(4 * MIB)
    thread.wait()
    assert more.bytes_ahead >= 4 * MIB


@pytest.mark.parametrize(("free", "most"), [(0, 64 * MIB), (FREE, 0)])
def test_no_pages_are_taken(free: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch, free=free, most=most)
    memory = GrowingMemory()
    memory.expect_largest(8 * MIB)
    thread.wait()
    assert memory.ready == 0
    assert not memory.grow(8 * MIB)
    memory.array[:] = 1


def test_work_ends_with_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch)
    taken: list[int] = []
    may_begin = threading.Event()
    monkeypatch.setattr("intarsia.support.pages_ahead.time.sleep", lambda _: may_begin.wait())
    memory = GrowingMemory()
    monkeypatch.setattr(GrowingMemory, "take_ahead", lambda _, size: taken.append(size))
    memory.expect_largest(8 * MIB)
    del memory
    may_begin.set()
    thread.wait()
    assert not taken
    assert not thread._memories


def test_a_forked_child_takes_pages_of_its_own(ahead: PagesAhead, monkeypatch: pytest.MonkeyPatch) -> None:
    may_begin = threading.Event()
    monkeypatch.setattr("intarsia.support.pages_ahead.time.sleep", lambda _: may_begin.wait())
    memory = GrowingMemory()
    memory.expect_largest(8 * MIB)

    def use() -> bool:
        may_begin.set()
        memory.grow(8 * MIB)
        memory.array[:] = 1
        other = GrowingMemory()
        other.expect_largest(4 * MIB)
        ahead.wait()
        return other.ready >= 4 * MIB and bool((memory.array == 1).all())

    assert exit_status_of_child(use) == 0
    may_begin.set()


def test_a_process_ends_while_pages_are_taken() -> None:
    code = (
        "from intarsia.support.growing_memory import GrowingMemory\n"
        "import time; memory = GrowingMemory(); memory.expect_largest(200 << 20); time.sleep(0.012)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=copy_environment())


@pytest.mark.parametrize(("text", "expected"), [("", 256), ("0", 0), ("12", 12), ("much", 256)])
def test_the_environment_says_how_much(text: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, MEMORY_AHEAD, text)
    assert pages_ahead._most_ahead() == expected * MIB


def test_the_thread_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = pages_of_test(monkeypatch)
    names = []
    monkeypatch.setattr(GrowingMemory, "take_ahead", lambda *_: names.append(threading.current_thread().name))
    memory = GrowingMemory()
    memory.expect_largest(8 * MIB)
    thread.wait()
    assert names == [THREAD_NAME]
    assert np.asarray(memory.array).nbytes == 0
