"""Memory for results of any size, which is used again once nothing refers to a result.

Allocated anew, a larger result touches all of its pages for the first time: 6.6 MB of logits for 33 tokens of
GPT-2 cost 2 ms on Zen 4, and 12 ms on a virtual machine whose host has to find them. Here only what is larger
than before has new pages. Results are handed out again as by `malloc`: when their last array is gone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from intarsia.support.array_address import array_address
from intarsia.support.growing_memory import GrowingMemory

Array = np.ndarray[Any, np.dtype[Any]]

_SMALLEST: Final = 1 << 19
"""Bytes from which on results are from here: the heap keeps the pages of smaller ones, too."""
_BLOCKS: Final = 2
"""Free blocks that are kept: a loop still has the result of the call before while the next one runs."""


class ResultMemory:
    """Memory for one result of a kernel that runs one call at a time.

    Args:
        ahead: Bytes that are there before the first result.
        grows: Whether results may get larger.
    """

    def __init__(self, ahead: int = 0, *, grows: bool = False) -> None:
        self._grows = grows
        self._largest: int | None = None
        # Appending is atomic, and may happen in any thread and in garbage collection; a full deque lets the
        # block go that it has had for longest.
        self._free: deque[GrowingMemory] = deque(maxlen=_BLOCKS)
        if ahead >= _SMALLEST * _BLOCKS:
            for _ in range(_BLOCKS):
                memory = GrowingMemory()
                memory.grow(ahead // _BLOCKS)
                self._free.append(memory)

    def expect_largest(self, size: int) -> None:
        """Take pages for results of the largest size in the background."""
        self._largest = size
        if size < _SMALLEST:
            return
        blocks = [self._largest_free() for _ in range(_BLOCKS)]
        for block in blocks:
            block.expect_largest(size)
        self._free.extend(blocks)

    def maker(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Callable[[], Array]:
        """Return a function that does what `array` does for one shape."""
        if math.prod(shape) * dtype.itemsize < _SMALLEST:
            return partial(np.empty, shape, dtype)
        return partial(self.array, shape, dtype)

    def array(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return an uninitialised array, whose memory is used again after its last reference.

        Raises:
            MemoryError: There is not so much memory.
        """
        size = math.prod(shape) * dtype.itemsize
        if size < _SMALLEST:
            return np.empty(shape, dtype)
        memory = self._largest_free()
        memory.grow(size)
        if self._grows:
            memory.expect_growth()
        lent = _Lent(memory, self._free)
        array: Array = np.asarray(lent)[:size].view(dtype).reshape(shape)
        return array

    def _largest_free(self) -> GrowingMemory:
        """Take the largest free block, or begin one."""
        blocks = []
        while self._free:  # other threads append, none takes away
            blocks.append(self._free.pop())
        if not blocks:
            memory = GrowingMemory()
            if self._largest is not None:
                memory.expect_largest(self._largest)
            return memory
        largest = max(blocks, key=lambda block: block.ready)
        self._free.extendleft(block for block in blocks if block is not largest)
        return largest


class _Lent:
    """The base of a result and its views; when they are gone, the memory is free."""

    __slots__ = ("__array_interface__", "_free", "_memory")

    def __init__(self, memory: GrowingMemory, free: deque[GrowingMemory]) -> None:
        self._memory, self._free = memory, free
        self.__array_interface__ = {
            "data": (array_address(memory.array), False),
            "shape": (memory.array.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        self._free.append(self._memory)
