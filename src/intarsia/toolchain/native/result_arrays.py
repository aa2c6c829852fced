"""The arrays of results of any size, which share memory from call to call."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.runtime.kernel import Array
from intarsia.support.result_memory import ResultMemory
from intarsia.toolchain.native.region import RegionPort


class ResultArrays:
    """Memory for the results of a kernel that runs one call at a time.

    Args:
        ahead: For each result the bytes that are there before the first call.
    """

    def __init__(self, ahead: Sequence[int]) -> None:
        self._memories = tuple(map(ResultMemory, ahead))

    def given_or_new(self, outputs: Sequence[Array | None], ports: Sequence[RegionPort]) -> list[Array]:
        """Return the caller's arrays, and new ones where there is none.

        Args:
            outputs: Array of each result; None for a new one.
            ports: Shape and type of each result.

        Raises:
            MemoryError: There is not so much memory.
        """
        return [
            memory.array(port.shape, port.dtype) if given is None else given
            for given, port, memory in zip(outputs, ports, self._memories, strict=True)
        ]
