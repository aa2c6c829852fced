"""Costs of loads on a machine, relative to the machine on which the constants of rules were measured.

Schedule rules and estimates count in multiply-adds. Their constants were measured on AMD's Zen 3 with AVX2.
On another machine a load costs as many multiply-adds more as a core computes more of them while the same
vector arrives.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from intarsia.native.machine.isa import Isa
from intarsia.target.machine_families import family_model
from intarsia.target.machine_model import MachineModel

_MEASURED_ON: Final = family_model("znver3")
_VECTOR_BYTES: Final = 32
"""Size of AVX2's vectors, in bytes."""
_CACHE_SHARE: Final = 2
"""Divisor of the size of the last-level cache that gives the bytes of weights that stay in it from one run to
the next: transforms enlarge weights, and values pass through it as well."""


class RelativeCosts(NamedTuple):
    """What a core computes while it loads, relative to Zen 3 with AVX2; the defaults are that machine.

    Attributes:
        sums: Minimum number of vectors of independent sums that keep the pipes busy (an absolute number).
        first: Cost of loading a vector from the first-level cache, in multiply-adds of vectors.
        second: The cost from the second-level cache.
        third: The cost from the last-level cache.
        memory: The cost from memory.
        weights: The cost of loading weights that the run before has loaded last: from the last-level cache
            if it keeps all weights of a network, else from memory.
    """

    sums: int = 8
    first: float = 1.0
    second: float = 1.0
    third: float = 1.0
    memory: float = 1.0
    weights: float = 1.0


REFERENCE_COSTS: Final = RelativeCosts()


def relative_costs(isa: Isa, threads: int = 1, weight_bytes: float = inf) -> RelativeCosts:
    """Return the costs of the machine of an instruction set.

    Args:
        isa: Instruction set, with the model of its machine and its number of cores.
        threads: Number of threads that load at the same time.
        weight_bytes: Bytes of all weights of the network.
    """
    machine, size = isa.machine, isa.vector_bytes
    fmas = machine.fmas_per_cycle(size)
    # Costs were measured with one thread and with two on two cores, so that all cores loaded.
    third, memory = _shared(_MEASURED_ON, threads, min(threads, 2))
    own_third, own_memory = _shared(machine, threads, isa.cores)
    while_measured = _MEASURED_ON.fmas_per_cycle(_VECTOR_BYTES) * _VECTOR_BYTES
    keeps_weights = weight_bytes <= isa.caches.third // _CACHE_SHARE
    return RelativeCosts(
        isa.independent_sums,
        *(
            (fmas * size / here) / (while_measured / there)
            for here, there in (
                (machine.first_bandwidth, _MEASURED_ON.first_bandwidth),
                (machine.second_bandwidth, _MEASURED_ON.second_bandwidth),
                (own_third, third),
                (own_memory, memory),
                # What reads of weights cost was measured on networks that no cache keeps.
                (own_third if keeps_weights else own_memory, memory),
            )
        ),
    )


def _shared(machine: MachineModel, threads: int, cores: int) -> tuple[float, float]:
    """Return the bytes per cycle that each thread loads from the last-level cache and from memory."""
    third = machine.third_bandwidth if threads == 1 else machine.busy_third_bandwidth
    return third, machine.memory_share(threads, cores)
