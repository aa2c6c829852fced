"""The machine that features and the draft model compare loops with."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.native.machine.isa import Isa
from intarsia.target.machine_model import MachineModel


@dataclass(frozen=True, slots=True)
class Machine:
    """Vector registers, caches and threads of a CPU.

    Attributes:
        vector_bytes: Bytes of a vector register.
        vector_registers: Number of vector registers.
        first_cache: Bytes of the L1 data cache of a core.
        second_cache: Bytes of the L2 cache of a core.
        threads: Number of threads that run kernels.
        model: Model of the machine, for estimates of cycles.
    """

    vector_bytes: int
    vector_registers: int
    first_cache: int
    second_cache: int
    threads: int
    model: MachineModel = field(default_factory=MachineModel)

    @classmethod
    def of_isa(cls, isa: Isa, threads: int) -> Machine:
        """Return the machine of an instruction set, with kernels on a number of threads."""
        caches = isa.caches
        return cls(isa.vector_bytes, isa.vector_registers, caches.first, caches.second, threads, isa.machine)
