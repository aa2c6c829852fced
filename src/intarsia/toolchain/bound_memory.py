"""Whether an array lies where an engine's tensor was bound last, without keeping the array alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.support.array_address import array_address


class BoundMemory:
    """Place and type of the array that one input or output of an engine is bound to.

    A binding stays right while address, shape and element type stay the same and the array is contiguous;
    the array object says little, because its owner may reshape or resize it between two calls. An array
    that does not own its memory cannot be resized: if it comes again, its address is not read, which
    takes a microsecond. Such arrays are all those that an executable passes between its kernels.
    """

    __slots__ = ("_address", "_dtype", "_shape", "_view")

    def __init__(self) -> None:
        self._view: Callable[[], Array | None] = _nothing
        self._address = -1
        self._shape: tuple[int, ...] = ()
        self._dtype: np.dtype[Any] | None = None

    def is_at(self, value: Value) -> bool:
        """Whether the binding fits this value as it is."""
        return (
            isinstance(value, np.ndarray)
            and (value is self._view() or self._is_there(value))
            and value.shape == self._shape
            and value.dtype is self._dtype
            and value.flags.c_contiguous
        )

    def note(self, array: Array, address: int) -> None:
        """Remember what was bound: a contiguous array, and the address of its first element."""
        self._address = address
        self._shape = array.shape
        self._dtype = array.dtype
        self._note_view(array)

    def _is_there(self, array: Array) -> bool:
        if array_address(array) != self._address:
            return False
        self._note_view(array)
        return True

    def _note_view(self, array: Array) -> None:
        """A weak reference to an array that owns its memory would keep its user from resizing it."""
        self._view = _nothing if array.base is None else ref(array)

    def forget(self) -> None:
        """Nothing is bound, or what the engine chooses."""
        self._view = _nothing
        self._address = -1


def _nothing() -> None:
    return None
