"""The physical memory of this machine: the limit beyond which requests are refused up front."""

from __future__ import annotations

import functools
import os
from typing import Final

_UNKNOWN: Final = 1 << 44
"""Bytes assumed where the system does not report its memory: large enough that nothing is refused."""


@functools.cache
def machine_memory() -> int:
    """Return the bytes of physical memory; 16 TiB where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return _UNKNOWN
