"""Kernels for any number of items: their loop functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir import DType, PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.item_kind import TEXTS_AND_LENGTH, WITH_KEYS, WITH_PAST
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import ScheduledDag, scheduled, with_state
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.sizes import (
    attention_function,
    filter_function,
    repeat_items,
    repeat_rows,
    row_tiles,
    text_function,
    text_loops_of,
    token_attention_of,
    token_filter_of,
    with_steps,
    without_unit_axes,
)

_USUAL_ITEMS: Final = 8
"""Number of items by which it is decided whether threads share items."""
_USUAL_TOKENS: Final = 64
"""Number of tokens by which it is decided whether threads share the tokens of texts."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemFunction:
    """A loop function for any number of items.

    Attributes:
        function: The loop function; its last parameters are numbers of items.
        schedule: Schedule for one item, or for one row; its packings of constants are those of the function.
        shapes: Shapes of the parameters for one item.
    """

    function: PrimFunc
    schedule: ScheduledDag
    shapes: tuple[tuple[int, ...], ...]


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
        numbers = WITH_KEYS if attention.counts_keys else TEXTS_AND_LENGTH
        return _among_tokens(dag, finished(attention_function(attention, isa, threads)), numbers)
    is_shared = ScheduleTask(dag, isa, threads).is_parallel(_USUAL_TOKENS * max(1, work_of(dag.ops)))
    filtered = token_filter_of(dag)
    if filtered is not None:
        function = filter_function(filtered, isa, is_parallel=is_shared)
        return _among_tokens(dag, finished(function), TEXTS_AND_LENGTH)
    texts = text_loops_of(dag)
    if texts is not None:
        numbers = WITH_PAST if texts.reads_past else WITH_KEYS if texts.reads_keys else TEXTS_AND_LENGTH
        return _among_tokens(dag, finished(text_function(texts, isa, is_parallel=is_shared)), numbers)
    plain = without_unit_axes(dag, carrying)
    tiles = row_tiles(plain, carrying, isa, threads) if state is None else None
    is_parallel = ScheduleTask(dag, isa, threads).is_parallel(_USUAL_ITEMS * work_of(dag.ops))
    if tiles is not None:
        rows = plain.outputs[0].shape[0]
        lanes = isa.vector_bytes // DType.FLOAT32.numpy.itemsize
        functions = [with_steps(lowered(schedule), lanes) for schedule in tiles.schedules]
        function = repeat_rows(functions, with_items, rows, tiles.height, is_parallel=is_parallel)
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


def _among_tokens(dag: ComputeDAG, function: PrimFunc, numbers: Sequence[int]) -> ItemFunction:
    """Return a function that reads or writes several tokens of a text, and is written as loops."""
    shapes = [tensor.shape for tensor in (*dag.placeholders, *dag.outputs)]
    schedule = with_state(dag, LoopState.initial(dag))
    return ItemFunction(function, schedule, (*shapes, *((),) * len(numbers)))


def _constants_are_larger(dag: ComputeDAG, carrying: Collection[str]) -> bool:
    """Return whether a kernel reads more of what items share than of an item."""
    sizes = {True: 0, False: 0}
    for tensor in dag.placeholders:
        sizes[tensor.op.name in carrying] += prod(tensor.shape) * tensor.dtype.numpy.itemsize
    return sizes[False] > sizes[True]
