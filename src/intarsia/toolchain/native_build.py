"""From the source of a kernel to compiled kernels and the order of their calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from intarsia.ir import GlobalVar, IRModule
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.packing import Packing
from intarsia.native.graph import KernelPlan, RegionPlan, RegionValue, plan_region
from intarsia.native.llvm.compile_kernel import SYMBOL, compile_kernel
from intarsia.native.llvm.driver import driver_object_code
from intarsia.native.llvm.isa import Isa
from intarsia.native.llvm.kernel_cache import KernelCache
from intarsia.native.schedule import scheduled
from intarsia.native.tir import default_tir
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native_region import (
    Argument,
    NativeRegion,
    Place,
    RegionCall,
    RegionConstant,
    RegionKernel,
    RegionPort,
)
from intarsia.toolchain.native_source import source_function
from intarsia.transform import PassContext


def build_region(source: KernelSource) -> NativeRegion:
    """Compile a source; kernels that were compiled before come from the user's cache.

    Raises:
        CompileError: An operator has no native kernel, a shape is not known, or llvmlite does not load.
    """
    target = Target(source.target)
    if target.option("optimize", 1) == 0:
        raise CompileError("native cannot switch its optimisations off", help="leave out -optimize=0")
    threads = target.option("threads", usable_cores(Path("/")))
    function, isa = source_function(source), Isa.host()
    try:
        plan = plan_region(function, isa)
    except CompileError as error:
        raise CompileError(f"native cannot compile this: {error.problem}", help=error.help) from error
    build = _Build(isa, threads, plan, _weights_by_memory(source.weights))
    calls = tuple(build.call(kernel) for kernel in plan.kernels)
    copies = tuple((position, build.argument(root)) for position, root in plan.copied_results)
    names = [param.name for param in function.params]
    return NativeRegion(
        isa,
        driver_object_code(),
        threads,
        tuple(build.kernels),
        calls,
        build.constants,
        tuple(_port(name, plan.values[value]) for name, value in zip(names, plan.params, strict=True)),
        tuple(_port(f"result {at}", plan.values[value]) for at, value in enumerate(plan.results)),
        copies,
        plan.arena_bytes,
    )


def kernel_cache() -> KernelCache:
    """The user's own cache, where the XDG base directory specification wants it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():  # the specification says to ignore a relative one
        folder = Path.home() / ".cache"
    return KernelCache(folder / "intarsia" / "kernels")


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """A compiled kernel: its position, the placeholders of what it computes, and how some are packed."""

    position: int
    names: tuple[str, ...]
    packings: Mapping[str, Packing]


@dataclass(eq=False)
class _Build:
    """What is compiled so far.

    Attributes:
        isa: What code may use.
        threads: How many threads will run it.
        plan: Of the region.
        weights: Names of the source's weights by where their elements are.
    """

    isa: Isa
    threads: int
    plan: RegionPlan
    weights: Mapping[tuple[int, int], str]
    kernels: list[RegionKernel] = field(default_factory=list)
    _cache: KernelCache = field(default_factory=kernel_cache)
    _made: dict[ComputeDAG, _Made] = field(default_factory=dict)
    _constants: dict[tuple[int, int, str, Packing | None], tuple[int, RegionConstant]] = field(
        default_factory=dict
    )

    @property
    def constants(self) -> tuple[RegionConstant, ...]:
        """All constants, by their numbers."""
        return tuple(constant for _, constant in self._constants.values())

    def call(self, kernel: KernelPlan) -> RegionCall:
        """The call of a kernel, which is compiled if it is new."""
        made = self._made.get(kernel.dag) or self._compiled(kernel)
        given = [
            self.argument(self.plan.root(kernel.inputs[name]))
            if name in kernel.inputs
            else self._constant(kernel.constants[name], made.packings.get(name))
            for name in made.names
        ]
        written = [self.argument(value) for value in kernel.outputs]
        return RegionCall(made.position, (*given, *written))

    def argument(self, root: int) -> Argument:
        """Where a value is that has memory of its own."""
        plan, count = self.plan, len(self.plan.params)
        if root in plan.arena:
            return Argument(Place.ARENA, plan.arena[root])
        if root in plan.params:
            return Argument(Place.SLOT, plan.params.index(root))
        if root in plan.written_results:
            return Argument(Place.SLOT, count + plan.written_results[root])
        constant = plan.values[root].constant
        assert constant is not None, "a value that nothing computes"
        return self._constant(constant, None)

    def _constant(self, array: Array, packing: Packing | None) -> Argument:
        key = (array.ctypes.data, array.nbytes, str((array.dtype, array.shape)), packing)
        if key not in self._constants:
            weight = self.weights.get(key[:2])
            packed = array if packing is None else packing.pack(array.reshape(packing.shape))
            made = RegionConstant(np.require(packed, requirements=["C", "A"]), weight, packing)
            self._constants[key] = len(self._constants), made
        return Argument(Place.CONSTANT, self._constants[key][0])

    def _compiled(self, kernel: KernelPlan) -> _Made:
        chosen = scheduled(kernel.dag, self.isa, self.threads)
        passes = default_tir(self.isa.vector_bytes, self.isa.vector_registers)
        lowered = IRModule({GlobalVar("kernel"): chosen.lowered()})
        # In a context of its own: what is switched off for the program is not meant for loops.
        function = passes(lowered, PassContext()).prim_func("kernel")
        packings = {packing.tensor_name: packing for packing in chosen.packings}
        names = tuple(tensor.op.name for tensor in chosen.dag.placeholders)
        made = _Made(len(self.kernels), names, packings)
        kept = compile_kernel(function, self.isa, cache=self._cache)
        self.kernels.append(RegionKernel(kept.object_code, SYMBOL, kept.parameters, kept.scratch_bytes))
        self._made[kernel.dag] = made
        return made


def _weights_by_memory(weights: Mapping[str, Array]) -> dict[tuple[int, int], str]:
    return {
        (array.ctypes.data, array.nbytes): name
        for name, array in weights.items()
        if array.flags.c_contiguous and array.nbytes
    }


def _port(name: str, value: RegionValue) -> RegionPort:
    return RegionPort(name, value.type.static_shape, value.type.dtype.numpy)
