"""From the source of a kernel to compiled kernels and the order of their calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.packing import Packing
from intarsia.native.graph import KernelPlan, RegionPlan, RegionValue, plan_region
from intarsia.native.llvm.driver import driver_object_code
from intarsia.native.llvm.isa import Isa
from intarsia.native.llvm.kernel_cache import KernelCache
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.aligned_memory import aligned_array
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native_compile import CompiledDag, compile_dags
from intarsia.toolchain.native_region import (
    Argument,
    NativeRegion,
    Place,
    RegionCall,
    RegionConstant,
    RegionPort,
)
from intarsia.toolchain.native_simplified import simplified
from intarsia.toolchain.native_source import source_function


def build_region(source: KernelSource) -> NativeRegion:
    """Compile a source; kernels that were compiled before come from the user's cache.

    Raises:
        CompileError: An operator has no native kernel, a shape is not known, or llvmlite does not load.
    """
    target = Target(source.target)
    if target.option("optimize", 1) == 0:
        raise CompileError("native cannot switch its optimisations off", help="leave out -optimize=0")
    threads = target.option("threads", usable_cores(Path("/")))
    function, isa = simplified(source_function(source)), Isa.host()
    try:
        plan = plan_region(function, isa)
    except CompileError as error:
        raise CompileError(f"native cannot compile this: {error.problem}", help=error.help) from error
    compiled = compile_dags((kernel.dag for kernel in plan.kernels), isa, threads, kernel_cache())
    build = _Build(plan, compiled, _weights_by_memory(source.weights))
    calls = tuple(build.call(kernel) for kernel in plan.kernels)
    copies = tuple((position, build.argument(root)) for position, root in plan.copied_results)
    names = [param.name for param in function.params]
    return NativeRegion(
        isa,
        driver_object_code(),
        threads,
        tuple(each.kernel for each in compiled.values()),
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


@dataclass(eq=False)
class _Build:
    """The constants so far.

    Attributes:
        plan: Of the region.
        compiled: Its kernels.
        weights: Names of the source's weights by where their elements are.
    """

    plan: RegionPlan
    compiled: Mapping[ComputeDAG, CompiledDag]
    weights: Mapping[tuple[int, int], str]
    _constants: dict[tuple[int, int, str, Packing | None], tuple[int, RegionConstant]] = field(
        default_factory=dict
    )

    @cached_property
    def _positions(self) -> Mapping[ComputeDAG, int]:
        return {dag: position for position, dag in enumerate(self.compiled)}

    @property
    def constants(self) -> tuple[RegionConstant, ...]:
        """All constants, by their numbers."""
        return tuple(constant for _, constant in self._constants.values())

    def call(self, kernel: KernelPlan) -> RegionCall:
        """The call of a kernel."""
        made = self.compiled[kernel.dag]
        given = [
            self.argument(self.plan.root(kernel.inputs[name]))
            if name in kernel.inputs
            else self._constant(kernel.constants[name], made.packings.get(name))
            for name in made.reads
        ]
        written = [self.argument(value) for value in kernel.outputs]
        return RegionCall(self._positions[kernel.dag], (*given, *written))

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
            made = RegionConstant(aligned_array(packed), weight, packing)
            self._constants[key] = len(self._constants), made
        return Argument(Place.CONSTANT, self._constants[key][0])


def _weights_by_memory(weights: Mapping[str, Array]) -> dict[tuple[int, int], str]:
    return {
        (array.ctypes.data, array.nbytes): name
        for name, array in weights.items()
        if array.flags.c_contiguous and array.nbytes
    }


def _port(name: str, value: RegionValue) -> RegionPort:
    return RegionPort(name, value.type.static_shape, value.type.dtype.numpy)
