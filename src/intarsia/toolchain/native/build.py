"""From the source of a kernel to compiled kernels and the order of their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from intarsia.ir import Function
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.execution.driver import driver_object_code
from intarsia.native.graph import KernelPlan, RegionPlan, RegionValue
from intarsia.native.packing import Packing
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.aligned_memory import aligned_array
from intarsia.support.errors import CompileError
from intarsia.support.garbage_collection import pause_garbage_collection
from intarsia.target import Target
from intarsia.toolchain.native.arena import check_arena
from intarsia.toolchain.native.batches.item_function import carrying_placeholders
from intarsia.toolchain.native.caches import kernel_cache, schedule_folder
from intarsia.toolchain.native.compile import CompiledDag, compile_dags
from intarsia.toolchain.native.plan import planned_region
from intarsia.toolchain.native.region import (
    Argument,
    ArgumentKind,
    NativeRegion,
    RegionCall,
    RegionConstant,
    RegionPort,
)
from intarsia.toolchain.native.shared_packs import packed_weight
from intarsia.toolchain.native.source_context import source_context

if TYPE_CHECKING:
    from intarsia.native.schedule import ScheduleLog

_Kernel: TypeAlias = tuple[ComputeDAG, int]
"""A computation, and the number of threads that it is compiled for."""


def build_region(
    source: KernelSource,
    carrying: Sequence[bool] | None = None,
    program: Function | None = None,
    tables: Sequence[Array] = (),
) -> NativeRegion:
    """Compile a source; kernels that were compiled before come from the user's cache.

    Where the schedule log of the target is missing, as for an artifact from another machine, all kernels
    get their default schedules, which compute the same. Where a library is missing, our own kernels take the
    place of its calls.

    Args:
        source: Source of static shapes.
        carrying: For a region that is to run any number of items, for each parameter whether it has each
            item; the source is that of one item. The first constant is the number of items, 1.
        program: Program that is compiled, of static shapes; that of the source if not given.
        tables: Values of the program's last parameters, which have each item: constants of the region.

    Raises:
        CompileError: An operator has no native kernel, a shape is not known, its arena is larger than the
            machine's memory, or llvmlite does not load.
    """
    with pause_garbage_collection():  # programs and loops are trees, which reference counting frees
        return _built(source, carrying, program, tables)


def _built(
    source: KernelSource,
    carrying: Sequence[bool] | None,
    program: Function | None,
    tables: Sequence[Array],
) -> NativeRegion:
    try:
        log = load_schedule_log(Target(source.target))
    except CompileError:
        log = None
    planned = planned_region(source, in_place=carrying is None, program=program)
    isa, threads, plan = planned.isa, planned.threads, planned.plan
    check_arena(plan.arena_bytes)
    products = {kernel.dag: kernel.product for kernel in plan.kernels if kernel.product is not None}
    cache, context = kernel_cache(), source_context(source)
    repeated = None if carrying is None else carrying_placeholders(planned, carrying, len(tables))
    compiled: dict[_Kernel, CompiledDag] = {}
    for count in dict.fromkeys(kernel.threads or threads for kernel in plan.kernels):
        dags = (kernel.dag for kernel in plan.kernels if (kernel.threads or threads) == count)
        kernels = compile_dags(dags, isa, count, cache, log, planned.options, products, context, repeated)
        compiled |= {(dag, count): kernel for dag, kernel in kernels.items()}
    weights = weights_by_memory(source.weights)
    params = plan.params[: len(plan.params) - len(tables)]
    values = dict(zip(plan.params[len(params) :], tables, strict=True))
    build = RegionBuild(plan, threads, compiled, weights, values, has_items=carrying is not None)
    calls = tuple(build.call(kernel) for kernel in plan.kernels)
    copies = tuple((position, build.argument(root)) for position, root in plan.copied_results)
    return NativeRegion(
        isa,
        driver_object_code(isa.architecture),
        threads,
        tuple(each.kernel for each in compiled.values()),
        calls,
        build.constants,
        tuple(port_of(name, plan.values[value]) for name, value in zip(planned.names, params, strict=False)),
        tuple(port_of(f"result {at}", plan.values[value]) for at, value in enumerate(plan.results)),
        copies,
        plan.arena_bytes,
        planned.counted,
        planned.checks,
    )


def load_schedule_log(target: Target) -> ScheduleLog | None:
    """The schedule log of a target, if it names one.

    Raises:
        CompileError: It is not there, or damaged.
    """
    from intarsia.native.schedule import ScheduleLog

    digest = target.option("schedules")
    return None if digest is None else ScheduleLog.load(schedule_folder(), str(digest))


@dataclass(eq=False)
class RegionBuild:
    """The constants so far.

    Attributes:
        plan: Plan of the region.
        threads: Number of threads of kernels without a number of their own.
        compiled: Its kernels.
        weights: Names of the source's weights by where their elements are.
        tables: Values of parameters that the caller does not pass, by their numbers.
        has_items: Whether kernels run any number of items, their last argument and the first constant.
    """

    plan: RegionPlan
    threads: int
    compiled: Mapping[_Kernel, CompiledDag]
    weights: Mapping[tuple[int, int], str]
    tables: Mapping[int, Array] = field(default_factory=dict)
    has_items: bool = False
    _constants: dict[tuple[int, int, str, Packing | None], tuple[int, RegionConstant]] = field(
        default_factory=dict
    )
    _items: Argument = field(init=False)

    def __post_init__(self) -> None:
        if self.has_items:
            self._items = self.constant(np.ones((), np.int64), None)

    @cached_property
    def _positions(self) -> Mapping[_Kernel, int]:
        return {kernel: position for position, kernel in enumerate(self.compiled)}

    @cached_property
    def _computations(self) -> Mapping[ComputeDAG, str]:
        return {dag: structural_key(dag) for dag, _ in self.compiled}

    @property
    def constants(self) -> tuple[RegionConstant, ...]:
        """All constants, by their numbers."""
        return tuple(constant for _, constant in self._constants.values())

    def call(self, kernel: KernelPlan) -> RegionCall:
        """The call of a kernel."""
        key = kernel.dag, kernel.threads or self.threads
        compiled = self.compiled[key]
        given = [
            self.argument(self.plan.root(kernel.inputs[name]))
            if name in kernel.inputs
            else self.constant(kernel.constants[name], compiled.packings.get(name))
            for name in compiled.reads
        ]
        written = [self.argument(value) for value in kernel.outputs]
        items = (self._items,) if self.has_items else ()
        return RegionCall(
            self._positions[key],
            (*given, *written, *items),
            kernel.rule_group,
            self._computations[kernel.dag],
            kernel.name,
            kernel.nodes,
            kernel.is_conversion,
        )

    def argument(self, root: int) -> Argument:
        """Where a value is that has memory of its own."""
        plan, count = self.plan, len(self.plan.params) - len(self.tables)
        if root in self.tables:
            return self.constant(self.tables[root], None)
        if root in plan.arena:
            return Argument(ArgumentKind.ARENA, plan.arena[root])
        if root in plan.params:
            return Argument(ArgumentKind.SLOT, plan.params.index(root))
        if root in plan.written_results:
            return Argument(ArgumentKind.SLOT, count + plan.written_results[root])
        constant = plan.values[root].constant
        assert constant is not None, "a value that nothing computes"
        return self.constant(constant, None)

    def constant(self, array: Array, packing: Packing | None) -> Argument:
        """The number of a constant, which is added if it is new."""
        key = (array.ctypes.data, array.nbytes, str((array.dtype, array.shape)), packing)
        if key not in self._constants:
            weight = self.weights.get(key[:2])
            packed = (
                aligned_array(array)
                if packing is None
                else packed_weight(array.reshape(packing.shape), packing)
            )
            constant = RegionConstant(packed, weight, packing)
            self._constants[key] = len(self._constants), constant
        return Argument(ArgumentKind.CONSTANT, self._constants[key][0])


def weights_by_memory(weights: Mapping[str, Array]) -> dict[tuple[int, int], str]:
    """The names of weights by the address and the size of their elements."""
    return {
        (array.ctypes.data, array.nbytes): name
        for name, array in weights.items()
        if array.flags.c_contiguous and array.nbytes
    }


def port_of(name: str, value: RegionValue) -> RegionPort:
    """What the caller passes or gets for a value."""
    return RegionPort(name, value.type.static_shape, value.type.dtype.numpy)
