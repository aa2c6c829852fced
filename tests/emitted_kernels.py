"""Compiling and running what the emitter writes, apart from the toolchain's own loader and thread pool."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import PrimFunc
from intarsia.native.emission.checks import FAILED_INDEX, FAILED_SITE
from intarsia.native.emission.emit import EmittedKernel, emit_llvm
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code

Array = npt.NDArray[Any]

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@cache
def x86_sets() -> dict[str, Isa]:
    """Instruction sets with vectors of several widths that this machine has, and the machine's own."""
    host = Isa.host()
    sets = {"host": host}
    if host.architecture == "x86_64":
        sse2, sse4 = ("cmov", "cx8", "sse", "sse2"), ("sse3", "sse4.1", "sse4.2", "ssse3")
        avx2 = (*sse2, *sse4, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")
        wide = ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
        narrower = {
            "sse2": Isa("x86_64", "x86-64", sse2),
            "avx2": Isa("x86_64", "x86-64-v3", avx2),
            "avx512": Isa("x86_64", "x86-64-v4", (*avx2, *wide)),
        }
        sets |= {name: isa for name, isa in narrower.items() if host.fits(isa)}
    return sets


@dataclass(eq=False)
class RunnableKernel:
    """A kernel in memory.

    Attributes:
        emitted: Result of the emitter.
        failed: Number and index of the check that failed in the last call; (0, 0) if none did.
        ranges: The parts in which parallel loops of the last call ran.
    """

    emitted: EmittedKernel
    prim_func: PrimFunc
    engine: Any
    address: int
    failed: tuple[int, int] = (0, 0)
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, arrays: Sequence[Array]) -> None:
        """Run on contiguous arrays, one for each parameter, which it changes in place."""
        for array, param in zip(arrays, self.prim_func.params, strict=True):
            assert array.flags.c_contiguous
            assert array.shape == param.shape
            assert array.dtype == param.dtype.numpy
        pointers = (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
        record = np.zeros(8, np.int64)
        call = _PARALLEL_FOR(self._parallel_for)
        record[0] = ctypes.cast(call, ctypes.c_void_p).value or 0
        memory, record[1] = self._scratch()
        record[2] = self.emitted.scratch_bytes
        self.ranges = []
        _KERNEL(self.address)(ctypes.addressof(pointers), record.ctypes.data)
        self.failed = (int(record[FAILED_SITE // 8]), int(record[FAILED_INDEX // 8]))
        del memory

    def _scratch(self) -> tuple[Array, int]:
        memory = np.full(self.emitted.scratch_bytes + 64, 0xAB, np.uint8)
        return memory, -(-memory.ctypes.data // 64) * 64

    def _parallel_for(self, runtime: int, body: int, closure: int, extent: int) -> None:
        """Uneven parts, the last one first, each with scratch of its own."""
        cuts = sorted({0, extent // 3, extent // 2, extent})
        for begin, end in reversed(list(pairwise(cuts))):
            memory, address = self._scratch()
            self.ranges.append((begin, end))
            _BODY(body)(closure, begin, end, address)
            del memory


def compile_kernel(
    prim_func: PrimFunc, isa: Isa | None = None, *, bounds_checked: bool = False
) -> RunnableKernel:
    """A verified loop function, compiled for an instruction set of this machine."""
    return load_kernel(
        prim_func, emit_llvm(prim_func, "k", isa or Isa.host(), bounds_checked=bounds_checked), isa
    )


def load_kernel(prim_func: PrimFunc, emitted: EmittedKernel, isa: Isa | None = None) -> RunnableKernel:
    """Emitted text as code in memory."""
    import llvmlite.binding as llvm

    code = generate_object_code(emitted.text, isa or Isa.host())
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return RunnableKernel(emitted, prim_func, engine, engine.get_function_address("k"))
