"""Channelwise operations between convolutions, whose rows threads share as those of the convolutions.

Threads share bands of rows of convolutions of large images. A depthwise convolution or a pool between them is
fastest alone with blocks of channels, but then half of what a core reads lies in the cache of another one,
and so does half of what the next convolution reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.dag.respliced import respliced
from intarsia.native.graph.region_plan import KernelPlan, RegionValue
from intarsia.native.machine.isa import Isa
from intarsia.native.te import ComputeOp, Tensor
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    CHANNELWISE,
    CONVOLUTION,
    GROUPED,
    SHARES_ROWS,
    WINOGRAD,
)

_WITH_ROWS: Final = frozenset({CONVOLUTION, GROUPED, WINOGRAD})
_FIRST_ROW: Final = 2
"""Number of the first dimension of rows of a blocked tensor: behind batch and blocks of channels."""
_LAST_ROW: Final = -2
"""Number of the dimension behind them: columns, followed by lanes."""


def with_shared_rows(
    kernels: Sequence[KernelPlan],
    values: Sequence[RegionValue],
    joined: Mapping[int, Sequence[int]],
    cut: Mapping[int, tuple[int, int]],
    isa: Isa,
    threads: int,
) -> list[KernelPlan]:
    """Return kernels of which channelwise ones between convolutions by rows say so (`SHARES_ROWS`).

    All kernels that write what such a kernel reads, and all that read what it writes, are channelwise, or
    convolutions whose rows threads share by rule, of which there is one.

    Args:
        kernels: Kernels in the order in which they run.
        values: Tensors of the region.
        joined: Numbers of the values that are written side by side into the memory of a value.
        cut: For a value that is a part of another one, the number of that, first.
        isa: Instruction set of the machine.
        threads: Number of threads of the region.
    """
    wholes = {part: whole for whole, parts in joined.items() for part in parts}
    wholes |= {part: whole for part, (whole, *_) in cut.items()}

    def memory(number: int) -> int:
        """Return the number of the outermost value that a value is a part of."""
        root = values[number].same_as
        while root in wholes:
            root = values[wholes[root]].same_as
        return root

    kinds = [_kinds(kernel.dag) for kernel in kernels]
    by_rows: dict[int, bool] = {}

    def has_rows(number: int) -> bool:
        """Return whether a kernel is a convolution whose rows threads share."""
        dag = kernels[number].dag
        if id(dag) not in by_rows:
            by_rows[id(dag)] = not kinds[number].isdisjoint(_WITH_ROWS) and _shares_rows(dag, isa, threads)
        return by_rows[id(dag)]

    def is_between(number: int) -> bool:
        """Return whether a kernel is channelwise between convolutions by rows."""
        if CHANNELWISE not in kinds[number]:
            return False
        used = {memory(value) for value in (*kernels[number].inputs.values(), *kernels[number].outputs)}
        around = {user for root in used for user in users[root]} - {number}
        others = {user for user in around if CHANNELWISE not in kinds[user]}
        return bool(others) and all(map(has_rows, others))

    users: defaultdict[int, set[int]] = defaultdict(set)
    for number, kernel in enumerate(kernels):
        for value in (*kernel.inputs.values(), *kernel.outputs):
            if values[value].constant is None:
                users[memory(value)].add(number)
    marked: dict[int, ComputeDAG] = {}
    return [
        _marked(kernel, marked) if is_between(number) else kernel for number, kernel in enumerate(kernels)
    ]


def _shares_rows(dag: ComputeDAG, isa: Isa, threads: int) -> bool:
    """Return whether threads share rows of the result of a computation by rule."""
    # Schedules are imported on use: builds whose kernels are all known make none for one thread.
    from intarsia.native.loop_state import IteratorAnnotation, LoopState
    from intarsia.native.schedule.default_schedule import default_state

    op = dag.outputs[0].op
    if not isinstance(op, ComputeOp):
        return False
    rows = {loop.name for loop in LoopState.initial(dag)[op.name].iters[_FIRST_ROW:_LAST_ROW]}
    loops = default_state(dag, isa, threads)[op.name].iters
    shared = (loop.name for loop in loops if loop.annotation is IteratorAnnotation.PARALLEL)
    return any(name.partition(".")[0] in rows for name in shared)


def _kinds(dag: ComputeDAG) -> frozenset[str]:
    """Return the kinds of blocked operations in a computation."""
    return frozenset(str(op.attrs[BLOCKED]) for op in dag.ops if BLOCKED in op.attrs)


def _marked(kernel: KernelPlan, marked: dict[int, ComputeDAG]) -> KernelPlan:
    """Return a kernel whose channelwise operation says that rows are shared; equal kernels have one DAG."""
    dag = marked.get(id(kernel.dag))
    if dag is None:
        dag = marked[id(kernel.dag)] = _with_mark(kernel.dag)
    stem, _, key = kernel.name.rpartition("_")
    return replace(kernel, dag=dag, name=f"{stem}_{structural_key(dag)[: len(key)]}")


def _with_mark(dag: ComputeDAG) -> ComputeDAG:
    number = next(at for at, op in enumerate(dag.ops) if op.attrs.get(BLOCKED) == CHANNELWISE)
    op = dag.ops[number]
    assert isinstance(op, ComputeOp), "it is a window over an image"
    changed = replace(op, attrs=op.attrs.updated(**{SHARES_ROWS: 1}))
    return respliced(dag, number, (changed,), {Tensor(op): Tensor(changed)}, {})
