"""Functions of the process that object code may call: what our code generator can emit, and no others.

Object code out of an artifact is linked against this list, so that it cannot name `system` or `dlopen`. The
list is a second line of defence and no sandbox: machine code can contain system calls. To load an untrusted
artifact, use `trusted=False`, which runs none of its object code.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from intarsia.ir.scalar_types import INTRINSICS, Kind

_C_NAMES: Final = {"round_even": "roundeven", "abs": "fabs"}
_LIBRARY_MATH: Final = tuple(
    _C_NAMES.get(name, name)
    for name, signature in INTRINSICS.items()
    if signature.kind not in (Kind.INTEGER, Kind.SINGLE, Kind.WORD) and name != "flushed"
)
# LLVM writes these calls by itself: `frem`, rounding without SSE 4.1, and what it makes of exp2(int),
# sin beside cos, and comparisons of minimum and maximum.
_LOWERED_MATH: Final = ("fmod", "round", "rint", "nearbyint", "ldexp", "sincos", "fmin", "fmax")
# Loops that copy or fill become these at -llvm_passes=O2.
_MEMORY: Final = ("memcpy", "memmove", "memset", "memcmp", "bcmp")
# Conversions of float16 and bfloat16 in libgcc, where the CPU has no instruction for them.
_CONVERSIONS: Final = (
    "__extendhfsf2",
    "__extendhfdf2",
    "__truncsfhf2",
    "__truncdfhf2",
    "__truncsfbf2",
    "__truncdfbf2",
    "__gnu_h2f_ieee",
    "__gnu_f2h_ieee",
)

KERNEL_SYMBOLS: Final = frozenset(
    (
        *_MEMORY,
        *_CONVERSIONS,
        *(name + suffix for name in (*_LIBRARY_MATH, *_LOWERED_MATH) for suffix in ("", "f")),
    )
)
"""Symbols that kernels may call."""

OPENBLAS: Final = "openblas"

LIBRARY_SYMBOLS: Final = MappingProxyType({OPENBLAS: ("cblas_sgemm",)})
"""Functions of optional libraries that a kernel may call if it names the library, by the library's name."""

DRIVER_SYMBOLS: Final = frozenset((*_MEMORY, "syscall", "clock_gettime", "aligned_alloc", "free", "abort"))
"""Symbols that the driver may call: threads wait by futex, and the driver allocates scratch memory itself."""
