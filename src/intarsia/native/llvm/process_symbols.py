"""Addresses of functions that native code calls: those given, then the C and mathematics libraries."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from typing import Final

from intarsia.support.errors import ArtifactError

# None is the process with all it has loaded; libgcc converts float16 and bfloat16 where no instruction does.
_LIBRARIES: Final = (None, "libm.so.6", "libgcc_s.so.1")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")


def address_of_symbol(name: str, given: Mapping[str, int]) -> int:
    """Where a function is.

    Raises:
        ArtifactError: No library of the process has it.
    """
    if name in given:
        return given[name]
    address = _address_in_libraries(name) if _NAME.fullmatch(name) else None
    if address is None:
        raise ArtifactError(
            f"this object code cannot be loaded: it calls {name!r}, which neither the runtime nor the C "
            "library has"
        )
    return address


@functools.cache
def _address_in_libraries(name: str) -> int | None:
    for library in _LIBRARIES:
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (AttributeError, OSError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None
