"""Array parameters of kernels, with fixed shape and type, and the check of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import PrimFunc, Store
from intarsia.support.array_address import array_address
from intarsia.support.errors import InputError

_C_CONTIGUOUS: Final = 0x1
_WRITABLE: Final = 0x400


@dataclass(frozen=True)
class ArrayParameter:
    """An array that a kernel reads or writes.

    Attributes:
        name: Name of the array, for messages.
        shape: Extents of the array.
        dtype: Element type.
        is_written: Whether the kernel writes to it.
        alignment: Alignment of its address in bytes; the minimum is the alignment of the element type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_written: bool = False
    alignment: int = 1

    def address_of(self, array: np.ndarray[Any, Any]) -> int:
        """Return the address of an array, after checking that it fits.

        Raises:
            InputError: The array has another type or shape, is not C-contiguous, is not aligned, or is
                read-only although the kernel writes to it.
        """
        if isinstance(array, np.ndarray) and array.dtype == self.dtype and array.shape == self.shape:
            flags = array.flags.num
            address = array_address(array)
            if (
                flags & _C_CONTIGUOUS
                and not address % max(self.alignment, self.dtype.alignment)
                and (not self.is_written or flags & _WRITABLE)
            ):
                return address
        raise InputError(f"array {self.name!r} of a native kernel {self._complaint(array)}")

    def _complaint(self, array: object) -> str:
        if not isinstance(array, np.ndarray):
            return f"is a {type(array).__name__}, and no NumPy array"
        if array.dtype != self.dtype or array.shape != self.shape:
            return f"is {array.dtype} {array.shape}, expected {self.dtype} {self.shape}"
        if not array.flags.c_contiguous:
            return "is not C-contiguous"
        if self.is_written and not array.flags.writeable:
            return "is read-only, and the kernel writes to it"
        return f"is not aligned to {max(self.alignment, self.dtype.alignment)} bytes"


def parameters_of(function: PrimFunc) -> tuple[ArrayParameter, ...]:
    """Return the parameters of the kernel of a loop function, in order."""
    written = {
        visit.statement.buffer
        for visit in walk(function.body)
        if visit.event is Event.ENTER and isinstance(visit.statement, Store)
    }
    alignment = function.attrs.get("alignment", 1)
    return tuple(
        ArrayParameter(
            buffer.name,
            buffer.shape,
            buffer.dtype.numpy,
            buffer in written,
            alignment if isinstance(alignment, int) else 1,
        )
        for buffer in function.params
    )
