"""What a machine's cores have, for features that ask whether loops fit it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.native.machine.isa import Isa


@dataclass(frozen=True, slots=True)
class Machine:
    """A CPU, as far as loops can fit it.

    Attributes:
        vector_bytes: Bytes of a vector register.
        vector_registers: How many there are.
        first_cache: Bytes of a core's first cache of data.
        second_cache: Bytes of a core's second cache.
        threads: How many threads run kernels.
    """

    vector_bytes: int
    vector_registers: int
    first_cache: int
    second_cache: int
    threads: int

    @classmethod
    def of_isa(cls, isa: Isa, threads: int) -> Machine:
        """The machine of an instruction set, with kernels on a number of threads."""
        caches = isa.caches
        return cls(isa.vector_bytes, isa.vector_registers, caches.first, caches.second, threads)
