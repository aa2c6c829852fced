"""The roofline of this machine: the least time that a kernel can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from intarsia.native.host_rates import host_bandwidth, host_peak
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.relative_costs import relative_costs

_CACHED: Final = 4.0
"""Bandwidth of the last-level cache relative to memory on Zen 3, at most: tensors may be closer."""
_CALL_SECONDS: Final = 5e-6
"""Seconds to start the threads of a kernel; `benchmarks/dispatch.py` measures 1 to 5 us on 2 cores.

It is no barrier of the machine model: most of it is the call from Python, and waking threads that sleep.
"""


@dataclass(frozen=True, slots=True)
class Roofline:
    """Peak and bandwidth of a machine (Williams et al., CACM 2009).

    Attributes:
        peak: Floating-point operations per second of multiply-adds in registers.
        bandwidth: Bytes per second that are read from memory.
        cached_bytes: Size of the last-level cache in bytes.
        cached_speedup: Bandwidth of the last-level cache relative to `bandwidth`.
    """

    peak: float
    bandwidth: float
    cached_bytes: int
    cached_speedup: float = _CACHED

    @classmethod
    def measured(cls, isa: Isa, threads: int) -> Self:
        """Measure the roofline of this machine, once per process; it takes about a second."""
        costs = relative_costs(isa, threads)
        peak, bandwidth = host_peak(isa, threads), host_bandwidth(isa, threads)
        return cls(peak, bandwidth, isa.caches.third, _CACHED * costs.memory / costs.third)

    def bound(self, flop_count: int, bytes_moved: int) -> float:
        """Return a lower bound of the seconds per call of a kernel.

        Args:
            flop_count: Number of its floating-point operations; negative if it is not known.
            bytes_moved: Bytes of the tensors that it reads and writes.
        """
        return _CALL_SECONDS + self.seconds(flop_count, bytes_moved)

    def seconds(self, flop_count: float, bytes_moved: int) -> float:
        """Return the least seconds of a kernel's arithmetic or of its reads and writes, without its start."""
        return max(max(0.0, flop_count) / self.peak, self.seconds_of_bytes(bytes_moved))

    def seconds_of_bytes(self, bytes_moved: int) -> float:
        """Return the least seconds in which a kernel reads and writes its tensors, without its start."""
        is_cached = bytes_moved <= self.cached_bytes
        return bytes_moved / (self.bandwidth * (self.cached_speedup if is_cached else 1.0))
