"""The machine model: facts of a core, its caches and its memory that rules, estimates and bounds read."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

from intarsia.target.cache_sizes import CacheSizes

GENERIC: Final = "generic"
"""Family of a CPU without defaults of its own."""


@dataclass(frozen=True, slots=True)
class MachineModel:
    """Facts of a machine that decide how fast code runs, but not whether it runs.

    Times are in cycles of the core, so that they do not change with its frequency. The defaults are the
    values of AMD's Zen 3, on which the costs in schedule rules were measured, with wider multiply-adds: code
    for wider vectors is generated only if its features are present.

    Attributes:
        family: Name of the CPU family that unmeasured values are taken from, by LLVM ("znver3").
        caches: Sizes of the caches.
        first_ways: Number of lines in a set of the first-level data cache.
        line_bytes: Size of a cache line, in bytes.
        page_bytes: Size of a page of memory, in bytes.
        fma_latency: Number of cycles from a multiply-add to the next one that adds to its result.
        fma_pipes: Maximum number of multiply-adds that a core starts in a cycle, of vectors of any width.
        fma_bytes: Maximum size of the results of multiply-adds that a core starts in a cycle, in bytes.
        first_bandwidth: Bytes per cycle that a core loads from its first-level cache.
        second_bandwidth: Bytes per cycle that a core loads from its second-level cache.
        third_bandwidth: Bytes per cycle that a core loads from the last-level cache while others are idle.
        busy_third_bandwidth: Bytes per cycle that each core loads from it while all cores load.
        memory_bandwidth: Bytes per cycle that a core loads from memory while others are idle.
        busy_memory_bandwidth: Bytes per cycle that each core loads from it while all cores load.
        huge_page_speedup: Bandwidth of memory in huge pages relative to memory in pages of `page_bytes`.
        barrier_cycles: Number of cycles that a parallel loop takes beyond its iterations: all threads start,
            and the caller waits for the last one.
    """

    family: str = GENERIC
    caches: CacheSizes = field(default_factory=CacheSizes)
    first_ways: int = 8
    line_bytes: int = 64
    page_bytes: int = 4096
    fma_latency: int = 4
    fma_pipes: int = 2
    fma_bytes: int = 128
    first_bandwidth: float = 64.0
    second_bandwidth: float = 32.0
    third_bandwidth: float = 20.0
    busy_third_bandwidth: float = 14.0
    memory_bandwidth: float = 6.0
    busy_memory_bandwidth: float = 4.2
    huge_page_speedup: float = 1.0
    barrier_cycles: int = 512

    def __post_init__(self) -> None:
        for item in fields(self)[2:]:
            value = getattr(self, item.name)
            if not value > 0:
                raise ValueError(f"{item.name} of a machine is {value}; expected a positive number")

    @property
    def set_bytes(self) -> int:
        """Distance in bytes at which elements share a set of the first-level cache."""
        return max(self.line_bytes, self.caches.first // self.first_ways)

    def fmas_per_cycle(self, vector_bytes: int) -> int:
        """Return the number of multiply-adds of vectors that a core starts in a cycle; at least 1.

        Args:
            vector_bytes: Size of a vector, in bytes.
        """
        return max(1, min(self.fma_pipes, self.fma_bytes // vector_bytes))

    def independent_sums(self, vector_bytes: int) -> int:
        """Return the minimum number of independent sums that keep the multiply-add pipes of a core busy.

        Args:
            vector_bytes: Size of a vector, in bytes.
        """
        return self.fma_latency * self.fmas_per_cycle(vector_bytes)

    def memory_share(self, threads: int, cores: int) -> float:
        """Return the bytes per cycle that each of several threads loads from memory.

        Args:
            threads: Number of threads that load at the same time.
            cores: Number of cores of the machine.
        """
        if threads == 1:
            return self.memory_bandwidth
        return min(self.memory_bandwidth, self.busy_memory_bandwidth * max(cores, threads) / threads)

    def __str__(self) -> str:
        """The values that rules and bounds read, such as "caches=32K/512K/32768K ... barrier_cycles=2048".

        Models with one text give the same kernels. The family is left out, since only its values count.
        """
        # No rule places tensors in huge pages, so their speedup changes no kernel.
        names = [item.name for item in fields(self)[2:] if item.name != "huge_page_speedup"]
        values = (f"{name}={getattr(self, name):g}" for name in names)
        return " ".join([f"caches={str(self.caches).replace(' ', '/')}", *values])
