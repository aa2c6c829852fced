"""Families of CPUs: which one a machine belongs to, and what is true of all its members.

Sources of the defaults, where a comment names no other:

* AMD: "Software Optimization Guide for AMD EPYC", 56305 (Zen 2), 56665 (Zen 3), 57647 (Zen 4), 58455 (Zen 5).
* Intel: "64 and IA-32 Architectures Optimization Reference Manual", chapter 2.
* Arm: "Neoverse N1 Software Optimization Guide", PJDOC-466751330-9707.

Bandwidths of caches are peaks by these; loops reach less, which `doctor --calibrate` measures. No manual says
how fast memory, a shared cache or a barrier is: where a comment names no measurement, their defaults are
those of the generic model, measured on one Zen 3 server.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Final

from intarsia.target.machine_model import GENERIC, MachineModel

FAMILIES: Final[Mapping[str, MachineModel]] = MappingProxyType(
    {
        # FMA: 5 cycles, two pipes of 32 bytes. L2: 32 bytes per cycle.
        "znver2": MachineModel("znver2", fma_latency=5, fma_bytes=64),
        # FMA: 4 cycles, two pipes of 32 bytes. `intarsia doctor --calibrate` on an EPYC of this family gave
        # all other defaults, which are therefore those of the generic model as well.
        "znver3": MachineModel("znver3", fma_bytes=64),
        # Two pipes of 32 bytes, which a vector of 64 bytes takes both. L2: 32 bytes per cycle.
        "znver4": MachineModel("znver4", fma_bytes=64),
        # Two pipes and two loads of 64 bytes, L2: 64 bytes per cycle. L1: 48 KiB in 12 ways. `doctor
        # --calibrate` on an EPYC of this family gave 3.99 cycles, and 124 and 62 bytes per cycle, 28.6 to
        # 30.3 from the last-level cache, and 12.8 to 13.2 from memory (three runs). What all cores load
        # together was not measured, as neighbours were busy. Members for laptops have pipes of 32 bytes,
        # and are left out.
        "znver5": MachineModel(
            "znver5",
            first_ways=12,
            first_bandwidth=128.0,
            second_bandwidth=64.0,
            third_bandwidth=29.0,
            memory_bandwidth=13.0,
        ),
        # FMA: 5 cycles, two pipes of 32 bytes; Broadwell as well. L2: a line of 64 bytes per cycle, of which
        # loops get no more than 32 (Travis Downs, uarch-bench wiki, "How much bandwidth does the L2 have").
        "haswell": MachineModel("haswell", fma_latency=5, fma_bytes=64),
        # FMA: 4 cycles. L2: 64 bytes per cycle, of which table 2-5 of the manual says that loops get 29.
        "skylake": MachineModel("skylake", fma_bytes=64, second_bandwidth=29.0),
        # Two pipes of 64 bytes; models with one exist, which only a measurement shows. L1: two loads of 64
        # bytes. L2: 64 bytes per cycle at most.
        "skylake-avx512": MachineModel("skylake-avx512", first_bandwidth=128.0, second_bandwidth=64.0),
        # As before, with a first-level cache of 48 KiB in 12 ways.
        "icelake-server": MachineModel(
            "icelake-server", first_ways=12, first_bandwidth=128.0, second_bandwidth=64.0
        ),
        "sapphirerapids": MachineModel(
            "sapphirerapids", first_ways=12, first_bandwidth=128.0, second_bandwidth=64.0
        ),
        # Two pipes and two loads of 16 bytes. A multiply-add takes 4 cycles; the accumulator of the next one
        # is forwarded after 2. The bandwidth of L2, 19 of 32 bytes, is a measurement (chipsandcheese.com,
        # "Deep Diving Neoverse N1", 2021). L1: 64 KiB in 4 ways.
        "neoverse-n1": MachineModel(
            "neoverse-n1", first_ways=4, fma_bytes=32, first_bandwidth=32.0, second_bandwidth=19.0
        ),
    }
)
"""Defaults by family, by LLVM's name of its first member."""

# Model numbers by `cpu family` of /proc/cpuinfo; a range for each family of ours. Sources: Linux's
# arch/x86/include/asm/intel-family.h and arch/x86/kernel/cpu/amd.c.
_Members = Mapping[int, tuple[tuple[str, Container[int]], ...]]
_AMD: Final[_Members] = {
    23: (("znver2", range(0x30, 0xB0)),),
    25: (
        ("znver3", range(0x10)),
        ("znver4", range(0x10, 0x20)),
        ("znver3", range(0x20, 0x60)),
        ("znver4", range(0x60, 0x80)),
        ("znver4", range(0xA0, 0xB0)),
    ),
    26: (("znver5", (*range(0x20), *range(0x40, 0x50))),),
}
_INTEL: Final[_Members] = {
    6: (
        ("haswell", (0x3C, 0x3D, 0x3F, 0x45, 0x46, 0x47, 0x4F, 0x56)),
        ("skylake", (0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6)),
        ("skylake-avx512", (0x55,)),
        ("icelake-server", (0x6A, 0x6C, 0x7D, 0x7E)),
        ("sapphirerapids", (0x8F, 0xCF)),
    ),
}
_VENDORS: Final = {"AuthenticAMD": _AMD, "GenuineIntel": _INTEL}
_ARM: Final = {("0x41", "0xd0c"): "neoverse-n1"}


def machine_family(cpuinfo: Mapping[str, str]) -> str:
    """Return the name of the family of a CPU in `FAMILIES`; "generic" if it is none of them.

    Args:
        cpuinfo: Fields of a processor in /proc/cpuinfo.
    """
    if "CPU part" in cpuinfo:
        return _ARM.get((cpuinfo.get("CPU implementer", ""), cpuinfo["CPU part"]), GENERIC)
    numbers = cpuinfo.get("cpu family", ""), cpuinfo.get("model", "")
    if not all(number.isdigit() for number in numbers):
        return GENERIC
    family, model = map(int, numbers)
    members = _VENDORS.get(cpuinfo.get("vendor_id", ""), {}).get(family, ())
    return next((name for name, models in members if model in models), GENERIC)


def family_model(family: str) -> MachineModel:
    """Return the defaults of a family, those of any machine if its name is unknown."""
    return FAMILIES.get(family, MachineModel())
