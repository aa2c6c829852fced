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
from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.graph import KernelPlan, RegionPlan, RegionValue
from intarsia.native.packing import Packing, is_transposed
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.aligned_memory import aligned_array
from intarsia.support.errors import CompileError
from intarsia.support.garbage_collection import pause_garbage_collection
from intarsia.target import Target
from intarsia.toolchain.native.arena import check_arena
from intarsia.toolchain.native.caches import kernel_cache, schedule_folder
from intarsia.toolchain.native.compile import CompiledDag, compile_dags
from intarsia.toolchain.native.plan import PlannedRegion, planned_region
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
    from intarsia.toolchain.native.batches.item_plan import ItemPlan

_Kernel: TypeAlias = tuple[ComputeDAG, int]
"""A computation, and the number of threads that it is compiled for."""


def build_region(source: KernelSource, program: Function | None = None) -> NativeRegion:
    """Compile a source; kernels that were compiled before come from the user's cache.

    Where the schedule log of the target is missing, as for an artifact from another machine, all kernels
    get their default schedules, which compute the same. Where a library is missing, our own kernels take the
    place of its calls.

    Args:
        source: Source of static shapes.
        program: Its program; default: it is read from the source.

    Raises:
        CompileError: An operator has no native kernel, a shape is not known, its arena is larger than the
            machine's memory, or llvmlite does not load.
    """
    with pause_garbage_collection():  # programs and loops are trees, which reference counting frees
        return _built(source, planned_region(source, program=program), None, ())


def build_item_region(
    source: KernelSource,
    kinds: Sequence[ItemKind | None],
    program: Function | None = None,
    tables: Sequence[Array] = (),
    results: Sequence[ItemKind] | None = None,
) -> tuple[NativeRegion, int]:
    """Compile a source as `build_region`, for any number of items.

    Returns the region for one item, and the offset in its arena from which on values have an item for each
    key. The first constants are the numbers of items, 1, of each `ItemKind`.

    Args:
        source: Source; of static shapes, those of one item, if there is no other program.
        kinds: Kind of the items of each parameter; None if it has none.
        program: Program that is compiled, of static shapes; that of the source if not given.
        tables: Values of the program's last parameters, which have items: constants of the region.
        results: Kind of the items of each result; tokens if not given.

    Raises:
        CompileError: As `build_region`, or kernels for any number of items cannot do what the program needs.
    """
    from intarsia.toolchain.native.batches.item_plan import item_plan

    with pause_garbage_collection():
        planned = planned_region(source, in_place=False, program=program)
        items = item_plan(planned, kinds, len(tables), results)
        return _built(source, planned, items, tables), items.long_begin


def _built(
    source: KernelSource, planned: PlannedRegion, items: ItemPlan | None, tables: Sequence[Array]
) -> NativeRegion:
    try:
        log = load_schedule_log(Target(source.target))
    except CompileError:
        log = None
    isa, threads = planned.isa, planned.threads
    plan = planned.plan if items is None else items.plan
    check_arena(plan.arena_bytes)
    products = {kernel.dag: kernel.product for kernel in plan.kernels if kernel.product is not None}
    cache, context = kernel_cache(), source_context(source)
    repeated = None if items is None else items.carrying
    compiled: dict[_Kernel, CompiledDag] = {}
    for count in dict.fromkeys(kernel.threads or threads for kernel in plan.kernels):
        dags = (kernel.dag for kernel in plan.kernels if (kernel.threads or threads) == count)
        kernels = compile_dags(dags, isa, count, cache, log, planned.options, products, context, repeated)
        compiled |= {(dag, count): kernel for dag, kernel in kernels.items()}
    weights = weights_by_memory(source.weights)
    params = plan.params[: len(plan.params) - len(tables)]
    values = dict(zip(plan.params[len(params) :], tables, strict=True))
    build = RegionBuild(plan, threads, compiled, weights, values, items)
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
    digest = target.option("schedules")
    if digest is None:
        return None
    from intarsia.native.schedule import ScheduleLog

    return ScheduleLog.load(schedule_folder(), str(digest))


@dataclass(eq=False)
class RegionBuild:
    """The constants so far.

    Attributes:
        plan: Plan of the region.
        threads: Number of threads of kernels without a number of their own.
        compiled: Its kernels.
        weights: Names of the source's weights by where their elements are.
        tables: Values of parameters that the caller does not pass, by their numbers.
        items: For kernels of any number of items, which numbers each is given; they are the first constants.
    """

    plan: RegionPlan
    threads: int
    compiled: Mapping[_Kernel, CompiledDag]
    weights: Mapping[tuple[int, int], str]
    tables: Mapping[int, Array] = field(default_factory=dict)
    items: ItemPlan | None = None
    _constants: dict[tuple[int, int, str, Packing | None], tuple[int, RegionConstant]] = field(
        default_factory=dict
    )
    _numbers: Sequence[Array] = ()

    def __post_init__(self) -> None:
        if self.items is not None:
            self._numbers = [np.ones((), np.int64) for _ in NUMBER_OF]
            for number in self._numbers:
                self.constant(number, None)

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
        numbers = () if self.items is None else self.items.numbers[kernel]
        items = (self.constant(self._numbers[number], None) for number in numbers)
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
        if packing is not None and packing.shape == array.shape and is_transposed(array):
            array, packing = array.T, packing.of_transpose()
        key = (array.ctypes.data, array.nbytes, str((array.dtype, array.shape, array.strides)), packing)
        if key not in self._constants:
            weight = self.weights.get(key[:2]) if array.flags.c_contiguous else None
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
