"""CPUs that code can be generated for by name, on whatever machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from intarsia.native.machine.isa import Isa
from intarsia.target.machine_families import family_model

_SSE: Final = ("cmov", "cx8", "cx16", "popcnt", "sahf", "sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2")
_AVX2: Final = (*_SSE, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_AVX512: Final = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_BYTES: Final = ("avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512bitalg")
_VNNI: Final = (*_AVX512, *_BYTES, "avx512vpopcntdq", "avx512ifma", "gfni")

NAMED_CPUS: Final[Mapping[str, Isa]] = MappingProxyType(
    {
        "nehalem": Isa("x86_64", "nehalem", _SSE),
        "sandybridge": Isa("x86_64", "sandybridge", (*_SSE, "avx")),
        "haswell": Isa("x86_64", "haswell", _AVX2),
        "skylake-avx512": Isa("x86_64", "skylake-avx512", _AVX512),
        "znver3": Isa("x86_64", "znver3", (*_AVX2, "sse4a")),
        "znver4": Isa("x86_64", "znver4", (*_VNNI, "avx512bf16", "sse4a")),
        "sapphirerapids": Isa("x86_64", "sapphirerapids", (*_VNNI, "avx512bf16", "avx512fp16", "avxvnni")),
        "neoverse-n1": Isa("aarch64", "neoverse-n1", ("neon", "fullfp16", "dotprod", "lse")),
    }
)
"""By LLVM's names, with the features that `Isa` keeps: instructions for cryptography (vaes, sha) are none."""


def named_cpu(name: str, cores: int) -> Isa:
    """Return the instruction set of a CPU of `NAMED_CPUS`, with the machine model of its family.

    Args:
        name: Name of the CPU.
        cores: Number of cores that run the code.
    """
    return replace(NAMED_CPUS[name], cores=cores, machine=family_model(name))
