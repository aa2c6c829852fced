"""What a machine has, in the eight numbers of the field."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

from intarsia.native.machine.isa import Isa
from intarsia.support.errors import UsageError

CACHE_LINE_BYTES = 64
"""Of x86-64 and of the Arm cores that run Linux."""


@dataclass(frozen=True, slots=True)
class HardwareParams:
    """The parameters of a machine that rules and features read (Ansor; seed ansor_minimum).

    The fields stand in the order of the v0.6 log; the last five are of GPUs, and 0 on CPUs.

    Attributes:
        num_cores: How many threads run kernels.
        vector_unit_bytes: Bytes of a vector register.
        cache_line_bytes: Bytes that a cache loads at once.
        max_shared_memory_per_block: Bytes.
        max_local_memory_per_block: Bytes.
        max_threads_per_block: Threads.
        max_vthread_extent: Iterations of a loop over virtual threads.
        warp_size: Threads that run in step.

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
                found = getattr(self, field.name)
                raise UsageError(f"hardware parameter {field.name} is {found}; expected at least 1")

    @classmethod
    def of_isa(cls, isa: Isa, threads: int) -> HardwareParams:
        """The parameters of a CPU whose kernels run on a number of threads."""
        return cls(threads, isa.vector_bytes, CACHE_LINE_BYTES)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The eight numbers, as the log has them."""
        return tuple(map(int, astuple(self)))
