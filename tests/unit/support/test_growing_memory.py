"""Memory that grows without a move."""

from __future__ import annotations

import mmap
import random

import numpy as np
import pytest

from intarsia.support import growing_memory
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.array_address import array_address
from intarsia.support.growing_memory import GrowingMemory

_MIB = 1 << 20
reserves = pytest.mark.skipif(not hasattr(mmap, "MAP_PRIVATE"), reason="the system reserves no address space")


@pytest.mark.parametrize("seed", range(4))
def test_memory_is_aligned_and_moves_only_where_it_says_so(seed: int) -> None:
    draw = random.Random(seed)
    memory, size, address = GrowingMemory(), 0, 0
    for _ in range(12):
        wanted = draw.choice(
            (1, 100, 5000, 1 << 18, (1 << 18) + 1, _MIB + 7, 5 * _MIB, draw.randrange(9 * _MIB))
        )
        kept = memory.array[:size].copy()
        has_moved = memory.grow(wanted)
        size = max(size, wanted)
        assert memory.array.nbytes >= size
        assert array_address(memory.array) % ALIGNMENT == 0
        if address and not has_moved:
            assert array_address(memory.array) == address
            assert np.array_equal(memory.array[: kept.nbytes], kept)
        address = array_address(memory.array)
        memory.array[:] = draw.randrange(256)


@reserves
def test_memory_grows_in_place() -> None:
    memory = GrowingMemory()
    assert memory.grow(_MIB)
    before = memory.array
    before[:] = 5
    for size in range(2, 60, 3):
        assert not memory.grow(size * _MIB)
        memory.array[before.nbytes :] = 7
    assert array_address(memory.array) == array_address(before)
    assert (before == 5).all()


@reserves
def test_memory_moves_where_the_reserved_space_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_memory, "_LEAST_RESERVED", 0)
    monkeypatch.setattr(growing_memory, "_TIMES_RESERVED", 1)
    memory = GrowingMemory()
    assert memory.grow(3 * _MIB)
    before = memory.array
    assert memory.grow(30 * _MIB)
    memory.array[:] = 1
    before[:] = 2  # the memory before stays as long as an array refers to it
    assert (memory.array == 1).all()


def test_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = GrowingMemory()
    monkeypatch.setattr(growing_memory, "machine_memory", lambda: 1000)
    assert memory.grow(999)
    with pytest.raises(MemoryError):
        memory.grow(1025)
