"""What tests of kernels of any size share."""

from __future__ import annotations

import pytest

from intarsia.runtime.kernel import Array
from intarsia.toolchain.native import region_table
from intarsia.toolchain.native.batches import item_kernel


@pytest.fixture
def arenas(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """The arenas of kernels of any size that are allocated from now on."""
    kept: list[Array] = []
    allocate = region_table.allocate_arena

    def allocate_and_keep(size: int) -> Array:
        kept.append(allocate(size))
        return kept[-1]

    monkeypatch.setattr(item_kernel, "allocate_arena", allocate_and_keep)
    return kept
