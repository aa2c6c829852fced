"""What tests of kernels of any size share."""

from __future__ import annotations

import pytest

from intarsia.runtime.kernel import Array
from intarsia.support.growing_memory import GrowingMemory


@pytest.fixture
def arenas(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """The arenas of kernels of any size as they grow from now on."""
    kept: list[Array] = []
    grow = GrowingMemory.grow

    def grow_and_keep(memory: GrowingMemory, size: int) -> bool:
        before = memory.array
        has_moved = grow(memory, size)
        if memory.array is not before:
            kept.append(memory.array)
        return has_moved

    monkeypatch.setattr(GrowingMemory, "grow", grow_and_keep)
    return kept
