"""Copies between the host and a GPU through pinned memory, which the GPU reads and writes by itself.

A copy from pageable memory goes through such memory too, but the driver's waits for all work of the stream
before. Here an array is cut into pieces; while the GPU copies one, the host copies the next.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy.typing as npt

PIECE: Final = 1 << 20
"""Bytes of a piece: some 50 us of a bus."""
PIECES: Final = 4
"""Pieces that are on their way at a time."""
_WITHOUT_TIME: Final = 2
"""Flag of events without a time."""

Array = npt.NDArray[Any]
DriverCall = Callable[..., None]
"""Function that calls a function of the driver by name, with the GPU current in the calling thread."""


@dataclass(slots=True)
class _Piece:
    """Pinned memory for one piece.

    Attributes:
        address: Address of the memory.
        copied: Event behind the last copy from or to it.
        is_busy: Whether nothing has waited for that copy yet.
    """

    address: int
    copied: ctypes.c_void_p
    is_busy: bool = False


@dataclass(slots=True)
class StagingRing:
    """Pinned memory for the copies of one stream, allocated by the first one.

    Attributes:
        call: Function that calls the driver.
        stream: The driver's handle of the stream.
    """

    call: DriverCall
    stream: ctypes.c_void_p
    _memory: int = 0
    _ring: deque[_Piece] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def upload(self, address: int, array: Array) -> None:
        """Copy a C-contiguous array to the GPU; the array may change once this returns.

        Raises:
            MemoryError: There is no pinned memory.
            ExecutionError: The driver failed.
        """
        source = array.ctypes.data
        with self._lock:
            for start in range(0, array.nbytes, PIECE):
                piece, size = self._next(), min(PIECE, array.nbytes - start)
                ctypes.memmove(piece.address, source + start, size)
                self.call("cuMemcpyHtoDAsync_v2", address + start, piece.address, size, self.stream)
                self._mark(piece)

    def download(self, array: Array, address: int) -> None:
        """Copy memory of the GPU into a C-contiguous array, once all work before is done.

        Raises:
            MemoryError: There is no pinned memory.
            ExecutionError: The driver failed, or a kernel before.
        """
        target = array.ctypes.data
        pending: deque[tuple[_Piece, int, int]] = deque()
        with self._lock:
            for start in range(0, array.nbytes, PIECE):
                if len(pending) == PIECES:
                    self._finish(target, *pending.popleft())
                piece, size = self._next(), min(PIECE, array.nbytes - start)
                self.call("cuMemcpyDtoHAsync_v2", piece.address, address + start, size, self.stream)
                self._mark(piece)
                pending.append((piece, start, size))
            for copied in pending:
                self._finish(target, *copied)

    def close(self) -> None:
        """Free the pinned memory.

        Raises:
            ExecutionError: The driver failed.
        """
        with self._lock:
            while self._ring:
                self.call("cuEventDestroy_v2", self._ring.pop().copied)
            if self._memory:
                memory, self._memory = self._memory, 0
                self.call("cuMemFreeHost", memory)

    def _next(self) -> _Piece:
        """Return the piece that was used longest ago, once nothing is copied from or to it."""
        if not self._ring:
            self._allocate()
        piece = self._ring[0]
        self._wait(piece)
        self._ring.rotate(-1)
        return piece

    def _finish(self, target: int, piece: _Piece, start: int, size: int) -> None:
        self._wait(piece)
        ctypes.memmove(target + start, piece.address, size)

    def _mark(self, piece: _Piece) -> None:
        self.call("cuEventRecord", piece.copied, self.stream)
        piece.is_busy = True

    def _wait(self, piece: _Piece) -> None:
        if piece.is_busy:
            self.call("cuEventSynchronize", piece.copied)
            piece.is_busy = False

    def _allocate(self) -> None:
        events = [ctypes.c_void_p() for _ in range(PIECES)]
        for event in events:
            self.call("cuEventCreate", ctypes.byref(event), _WITHOUT_TIME)
        memory = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(memory), PIECE * PIECES, 0)
        self._memory = memory.value or 0
        # All pieces or none: a download counts on so many before the first one is used again.
        self._ring.extend(_Piece(self._memory + number * PIECE, event) for number, event in enumerate(events))
