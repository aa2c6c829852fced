"""Ansor's eight hardware parameters of a machine."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Final

from intarsia.native.gpu.kernel_list import MOST_SHARED_BYTES, MOST_THREADS
from intarsia.native.gpu.schedule_stages import WARP
from intarsia.native.gpu.static_cost import GpuFacts
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import UsageError

WIDEST_BYTES: Final = 16
"""Bytes of the widest access of a GPU thread."""
LINE_BYTES: Final = 128
"""Bytes of a line of a GPU's caches."""
MOST_REGISTERS: Final = 255
"""Maximum number of registers of a GPU thread."""
REGISTER_BYTES: Final = 4
MOST_VIRTUAL_THREADS: Final = 8
"""Maximum number of virtual threads of a thread (Ansor's)."""
CACHE_LINE_BYTES = 64
"""Bytes of a cache line of x86-64 and of Arm cores that run Linux."""


@dataclass(frozen=True, slots=True)
class HardwareParams:
    """The parameters of a machine that rules and features read (Ansor; seed ansor_minimum).

    Fields are in the order of the v0.6 log; the last five are for GPUs, and 0 on CPUs.

    Attributes:
        num_cores: Number of threads that run kernels.
        vector_unit_bytes: Bytes of a vector register.
        cache_line_bytes: Bytes that a cache loads at once.
        max_shared_memory_per_block: Bytes of shared memory of a thread block.
        max_local_memory_per_block: Bytes of registers of a thread.
        max_threads_per_block: Number of threads of a thread block.
        max_vthread_extent: Maximum extent of a loop over virtual threads.
        warp_size: Number of threads of a warp.

    Raises:
        UsageError: There is no core, or a size is below what it can be.
    """

    num_cores: int
    vector_unit_bytes: int = 64
    cache_line_bytes: int = CACHE_LINE_BYTES
    max_shared_memory_per_block: int = 0
    max_local_memory_per_block: int = 0
    max_threads_per_block: int = 0
    max_vthread_extent: int = 0
    warp_size: int = 0

    def __post_init__(self) -> None:
        for field in fields(self)[:3]:
            if getattr(self, field.name) < 1:
                size = getattr(self, field.name)
                raise UsageError(f"hardware parameter {field.name} is {size}; expected at least 1")

    @property
    def is_gpu(self) -> bool:
        """Whether these are parameters of a GPU: it has thread blocks."""
        return self.max_threads_per_block > 0

    @classmethod
    def of_gpu(cls, facts: GpuFacts) -> HardwareParams:
        """Return the parameters of a GPU; its cores are multiprocessors, its vectors the widest access."""
        return cls(
            facts.multiprocessors,
            WIDEST_BYTES,
            LINE_BYTES,
            MOST_SHARED_BYTES,
            MOST_REGISTERS * REGISTER_BYTES,
            MOST_THREADS,
            MOST_VIRTUAL_THREADS,
            WARP,
        )

    @classmethod
    def of_isa(cls, isa: Isa, threads: int) -> HardwareParams:
        """Return the parameters of a CPU that runs kernels on a number of threads."""
        return cls(threads, isa.vector_bytes, isa.machine.line_bytes)

    @property
    def numbers(self) -> tuple[int, ...]:
        """All eight numbers, in the order of the log."""
        return tuple(map(int, astuple(self)))
