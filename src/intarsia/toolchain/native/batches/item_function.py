"""Kernels for any number of items: which of their inputs have each item, and their loop functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from intarsia.ir import PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag, scheduled, with_state
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.sizes import (
    TokenAttention,
    attention_function,
    repeat_items,
    repeat_rows,
    row_tiles,
    token_attention_of,
    without_unit_axes,
)
from intarsia.support.errors import CompileError

if TYPE_CHECKING:
    from intarsia.toolchain.native.plan import PlannedRegion

_USUAL_ITEMS: Final = 8
"""Number of items by which it is decided whether threads share items."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemFunction:
    """A loop function for any number of items.

    Attributes:
        function: The loop function; its last parameter is the number of items.
        schedule: Schedule for one item, or for one row; its packings of constants are those of the function.
        shapes: Shapes of the parameters for one item.
    """

    function: PrimFunc
    schedule: ScheduledDag
    shapes: tuple[tuple[int, ...], ...]


def carrying_placeholders(
    planned: PlannedRegion, carrying: Sequence[bool], tables: int = 0
) -> dict[ComputeDAG, frozenset[str]]:
    """Return the names of the placeholders of each kernel's DAG that have each item.

    All that is computed has each item: where nothing of an item was read, the same for all.

    Args:
        planned: Plan for one item.
        carrying: For each parameter of the region whether it has each item.
        tables: Number of parameters, the last ones, that the caller does not pass.

    Raises:
        CompileError: The plan needs what kernels for any number of items cannot do.
    """
    plan = planned.plan
    if planned.counted or planned.checks:
        raise CompileError("kernels for any batch neither count rows nor check indices")
    if any(kernel.product is not None for kernel in plan.kernels):
        raise CompileError("kernels for any batch call no library")
    fixed = {value for value, carries in zip(plan.params, carrying, strict=True) if not carries}
    fixed |= {number for number, value in enumerate(plan.values) if value.constant is not None}
    not_passed = plan.params[len(plan.params) - tables :]
    for _, root in plan.copied_results:
        if root in fixed or root in not_passed:
            raise CompileError("a result is the same for all items of a batch")
    result: dict[ComputeDAG, frozenset[str]] = {}
    for kernel in plan.kernels:
        names = frozenset(name for name, value in kernel.inputs.items() if plan.root(value) not in fixed)
        if result.setdefault(kernel.dag, names) != names:
            raise CompileError("two equal kernels read different parameters without a batch")
    return result


def item_function(
    dag: ComputeDAG,
    carrying: Collection[str],
    state: LoopState | None,
    isa: Isa,
    threads: int,
    lowered: Callable[[ScheduledDag], PrimFunc],
    finished: Callable[[PrimFunc], PrimFunc],
) -> ItemFunction:
    """Return the loop function of a kernel for any number of items.

    Args:
        dag: Computation for one item.
        carrying: Names of the placeholders that have each item.
        state: State of the loops for one item, from a schedule log; None for that of the rules.
        isa: Instruction set of the code.
        threads: Number of threads.
        lowered: Function that lowers a schedule and runs the passes on its loops.
        finished: Function that runs the passes on the loops of a function.

    Raises:
        CompileError: Attention reads queries, keys or values that are the same for all items.
    """
    outputs = {tensor.buffer.name for tensor in dag.outputs}
    with_items = {*carrying, *outputs}
    attention = token_attention_of(dag, carrying)
    if attention is not None:
        return _attention(dag, attention, isa, finished)
    plain = without_unit_axes(dag, carrying)
    tiles = row_tiles(plain, carrying, isa, threads) if state is None else None
    is_parallel = ScheduleTask(dag, isa, threads).is_parallel(_USUAL_ITEMS * work_of(dag.ops))
    if tiles is not None:
        rows = plain.outputs[0].shape[0]
        functions = [lowered(schedule) for schedule in tiles.schedules]
        function = repeat_rows(functions, with_items, rows, is_parallel=is_parallel)
        schedule = tiles.schedules[0]
    else:
        schedule = scheduled(dag, isa, threads) if state is None else with_state(dag, state)
        is_moved_in = _constants_are_larger(dag, carrying)
        function = repeat_items(
            lowered(schedule), with_items, is_parallel=is_parallel, is_moved_in=is_moved_in
        )
    items = {tensor.buffer.name: tensor.shape for tensor in (*dag.placeholders, *dag.outputs)}
    packed = {tensor.buffer.name: tensor.shape for tensor in schedule.dag.placeholders}
    shapes = tuple(
        items[buffer.name] if buffer.name in with_items else packed[buffer.name]
        for buffer in function.params[:-1]
    )
    return ItemFunction(function, schedule, (*shapes, ()))


def _attention(
    dag: ComputeDAG, form: TokenAttention, isa: Isa, finished: Callable[[PrimFunc], PrimFunc]
) -> ItemFunction:
    """Return the function of attention among items."""
    tensors = (*dag.placeholders, *dag.outputs)
    function = finished(attention_function(form, isa))
    schedule = with_state(dag, LoopState.initial(dag))
    return ItemFunction(function, schedule, (*(tensor.shape for tensor in tensors), ()))


def _constants_are_larger(dag: ComputeDAG, carrying: Collection[str]) -> bool:
    """Return whether a kernel reads more of what items share than of an item."""
    sizes = {True: 0, False: 0}
    for tensor in dag.placeholders:
        sizes[tensor.op.name in carrying] += prod(tensor.shape) * tensor.dtype.numpy.itemsize
    return sizes[False] > sizes[True]
