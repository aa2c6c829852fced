"""How much memory this machine has at all: what needs more is refused before it is tried."""

from __future__ import annotations

import functools
import os
from typing import Final

_UNKNOWN: Final = 1 << 44


@functools.cache
def machine_memory() -> int:
    """Return the bytes of physical memory; 16 TiB where the system does not say it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return _UNKNOWN
