"""Memory for code: first writable, then executable, never both at once."""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import weakref
from typing import Any, Final

from intarsia.support.errors import ArtifactError, IntarsiaError

PAGE: Final = mmap.PAGESIZE
_FAILED: Final = ctypes.c_void_p(-1).value


def round_up(size: int, unit: int = PAGE) -> int:
    """Round a size up to a multiple of `unit`."""
    return -(-size // unit) * unit


class ExecutableMemory:
    """A mapping of whole pages, readable and writable until its parts are protected.

    It lives until `release`, or until this object is collected. On Arm, instruction caches are not coherent
    with memory; Linux brings them up to date when pages become executable.

    Args:
        size: Size in bytes, at least 1.

    Raises:
        ArtifactError: The system gives no such memory.
    """

    def __init__(self, size: int) -> None:
        self.size = round_up(size)
        library = _c_library()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address = library.mmap(None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if address is None or address == _FAILED:
            raise _system_error(f"the system gives no {self.size} bytes of memory for code")
        self.address: int = address
        self._release = weakref.finalize(self, library.munmap, self.address, self.size)
        self._release.atexit = False  # other threads may still run the code; the system frees it at exit

    def write(self, content: bytes | bytearray) -> None:
        """Fill the memory from its start, before any part is protected."""
        if len(content) > self.size:
            raise ValueError(f"{len(content)} bytes into {self.size}")
        source = (ctypes.c_char * len(content)).from_buffer_copy(content)
        ctypes.memmove(self.address, source, len(content))

    def protect(self, start: int, end: int, *, is_code: bool) -> None:
        """Make the pages from `start` to `end` (multiples of PAGE) read-only, and executable or not.

        Raises:
            ArtifactError: The system refuses, e.g. because a security policy forbids new code.
        """
        if start == end:
            return
        protection = mmap.PROT_READ | (mmap.PROT_EXEC if is_code else 0)
        if _c_library().mprotect(self.address + start, end - start, protection):
            raise _system_error("the system does not make memory executable")

    def release(self) -> None:
        """Unmap the memory; nothing in it may be used any more."""
        self._release()


def _system_error(what: str) -> IntarsiaError:
    number = ctypes.get_errno()
    reason = os.strerror(number)
    help_line = "a security policy of this system forbids generated code" if number == errno.EACCES else ""
    return ArtifactError(f"{what}: {reason}", help=help_line)


@functools.cache
def _c_library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
