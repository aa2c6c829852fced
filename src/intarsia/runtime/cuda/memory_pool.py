"""Blocks of a GPU's memory that are used again: the driver's allocation waits for all work of the GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_UNIT: Final = 512
"""Size of which blocks are multiples, in bytes: the alignment of the driver's allocations."""


@dataclass(slots=True)
class MemoryPool:
    """Free and used blocks of one stream of a GPU, for all threads.

    A block that is given back may be used again at once: work of a stream is done in order.

    Attributes:
        allocate_block: Function that allocates a block of the given size in bytes and returns its address.
        free_block: Function that frees the block at an address.
    """

    allocate_block: Callable[[int], int]
    free_block: Callable[[int], None]
    _free: dict[int, list[int]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    # Re-entrant: the garbage collector may give blocks back while this thread takes one.
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def allocate(self, size: int) -> int:
        """Return the address of a block of at least `size` bytes.

        Raises:
            MemoryError: There is not enough memory, even without the free blocks.
        """
        size = max(1, -(-size // _UNIT)) * _UNIT
        with self._lock:
            free = self._free.get(size)
            address = free.pop() if free else self._allocate_new(size)
            self._sizes[address] = size
            return address

    def free(self, address: int) -> None:
        """Give back a block of `allocate`, for the next one that needs its size."""
        with self._lock:
            self._free.setdefault(self._sizes.pop(address), []).append(address)

    def trim(self) -> None:
        """Return all free blocks to the driver."""
        with self._lock:
            unused, self._free = self._free, {}
            for addresses in unused.values():
                for address in addresses:
                    self.free_block(address)

    def close(self) -> None:
        """Return all blocks to the driver, those in use as well."""
        with self._lock:
            used, self._sizes = self._sizes, {}
            for address in used:
                self.free_block(address)
            self.trim()

    def _allocate_new(self, size: int) -> int:
        try:
            return self.allocate_block(size)
        except MemoryError:
            self.trim()
            return self.allocate_block(size)
