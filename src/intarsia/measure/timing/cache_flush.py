"""Flush the caches of the CPU between repeats, so that each reads its data from memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from intarsia.target import Host

UNKNOWN_CACHE_BYTES = 32 << 20
"""Assumed size in bytes of the last level cache where the system does not report it."""


class CacheFlush:
    """Evicts what the caches hold by reading and writing a buffer of twice their last level.

    A write brings the line into the cache of the core and invalidates it in all others; twice the size evicts
    all earlier lines even where the replacement policy is not LRU. Call it to flush.

    Args:
        cache_bytes: Size of the last level cache.

    Raises:
        ValueError: The size is not positive.
    """

    def __init__(self, cache_bytes: int) -> None:
        if cache_bytes <= 0:
            raise ValueError(f"a cache of {cache_bytes} bytes cannot be flushed")
        self._buffer = np.zeros(-(-2 * cache_bytes // 8), np.int64)

    @classmethod
    def of_host(cls, host: Host) -> CacheFlush:
        """The flush for a machine, by its largest cache."""
        return cls(max(host.l1d_bytes, host.l2_bytes, host.l3_bytes) or UNKNOWN_CACHE_BYTES)

    @property
    def buffer_bytes(self) -> int:
        """Bytes that each flush reads and writes."""
        return self._buffer.nbytes

    def __call__(self) -> None:
        """Flush; 30 MiB take some milliseconds, the large caches of servers a tenth of a second."""
        self._buffer += 1


@cache
def cache_flush_of_this_machine() -> Callable[[], None]:
    """The flush for the machine that this process runs on; the buffer is made once, at the first use."""
    return CacheFlush.of_host(Host.detect())
