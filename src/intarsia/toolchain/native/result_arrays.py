"""The arrays of results of any size, which share memory from call to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.runtime.kernel import Array
from intarsia.support.result_memory import ResultMemory
from intarsia.toolchain.native.region import RegionPort

ResultMaker: TypeAlias = Callable[[], Array]
"""Function that returns a new array for a result; a MemoryError if there is not so much memory."""


class ResultArrays:
    """Memory for the results of a kernel that runs one call at a time.

    Args:
        ahead: For each result the bytes that are there before the first call.
    """

    def __init__(self, ahead: Sequence[int]) -> None:
        self._memories = tuple(ResultMemory(size, grows=True) for size in ahead)

    def expect_largest(self, ports: Sequence[RegionPort]) -> None:
        """Take pages for the largest results, which have these shapes and types, in the background."""
        for port, memory in zip(ports, self._memories, strict=True):
            memory.expect_largest(port.nbytes)

    def makers(self, ports: Sequence[RegionPort]) -> tuple[ResultMaker, ...]:
        """Return a function for each result that allocates it.

        Args:
            ports: Shape and type of each result.
        """
        pairs = zip(ports, self._memories, strict=True)
        return tuple(memory.maker(port.shape, port.dtype) for port, memory in pairs)


def given_or_new(outputs: Sequence[Array | None], makers: Sequence[ResultMaker]) -> list[Array]:
    """Return the caller's arrays, and new ones where there is none.

    Args:
        outputs: Array of each result; None for a new one.
        makers: Functions that allocate each result.

    Raises:
        MemoryError: There is not so much memory.
    """
    return [new() if given is None else given for given, new in zip(outputs, makers, strict=True)]
