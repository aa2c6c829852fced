"""Addresses of the functions that native code calls: those of the caller, then those of allowed libraries."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from intarsia.support.errors import ArtifactError

# None is the process with all its libraries; libgcc converts float16 and bfloat16 on CPUs without
# instructions for it.
_LIBRARIES: Final = (None, "libm.so.6", "libgcc_s.so.1")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")


@dataclass(eq=False)
class ForbiddenSymbolError(ArtifactError):
    """Object code calls a function that no kernel needs, so Intarsia did not compile it."""


def address_of_symbol(name: str, given: Mapping[str, int], allowed: AbstractSet[str]) -> int:
    """Return the address of a function that object code calls.

    Args:
        name: Name of the function.
        given: Addresses of functions that the caller provides, by name.
        allowed: Names of the functions of the process that the object code may call.

    Raises:
        ForbiddenSymbolError: The function is not allowed.
        ArtifactError: No library of the process has it.
    """
    if name in given:
        return given[name]
    if name not in allowed:
        raise ForbiddenSymbolError(
            f"this object code cannot be loaded: it calls {name!r}, which no kernel of Intarsia needs",
            help="load the artifact with trusted=False (--untrusted), which compiles it from its source",
        )
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
