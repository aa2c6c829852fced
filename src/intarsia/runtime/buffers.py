"""Preallocate the buffers of a straight-line program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.runtime.kernel import Array
from intarsia.runtime.plan import Copy, PlanBlock, RunKernel, TensorInfo
from intarsia.runtime.tensor_info import static_shape
from intarsia.support.aligned_memory import ALIGNMENT, allocate_aligned
from intarsia.support.arena import Lifetime, plan_arena_by_time
from intarsia.support.errors import ExecutionError
from intarsia.support.result_memory import ResultMemory

ShapeAndDType: TypeAlias = "tuple[tuple[int, ...], np.dtype[Any]]"

COPIED_RESULT_BYTES: Final = 65536
"""Size in bytes up to which results are computed in a lasting buffer and copied for the caller.

The copy is cheaper than binding a new buffer to an engine (about 8 us on a laptop CPU). Larger results get
a fresh buffer.
"""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Memory for one executable.

    Attributes:
        arena: Block of bytes that contains the lasting buffers.
        lasting: Buffers by slot, the same on every call.
        fresh: Shape and dtype by slot of results that need a new buffer on every call.
    """

    arena: Array
    lasting: dict[int, Array]
    fresh: dict[int, ShapeAndDType]


def allocate(block: PlanBlock, steps: Sequence[RunKernel], types: Sequence[TensorInfo | None]) -> Buffers:
    """Allocate buffers for all written slots of known shape; kernels allocate the values of the others.

    Raises:
        ExecutionError: They do not fit into memory.
    """
    forms = known_slots(steps, types)
    fresh = {
        slot: shape_and_dtype
        for slot in block.results
        if (shape_and_dtype := forms.get(slot)) and buffer_bytes(*shape_and_dtype) > COPIED_RESULT_BYTES
    }
    lifetimes = {
        slot: Lifetime(buffer_bytes(*forms[slot]), *span)
        for slot, span in _spans(block, steps).items()
        if slot in forms and slot not in fresh
    }
    plan = plan_arena_by_time(list(lifetimes.values()), ALIGNMENT)
    try:
        arena = allocate_aligned(plan.size)
    except MemoryError as error:
        raise no_memory("intermediate values", plan.size) from error
    lasting = {
        slot: np.ndarray(*forms[slot], buffer=arena, offset=offset)
        for slot, offset in zip(lifetimes, plan.offsets, strict=True)
    }
    return Buffers(arena, lasting, fresh)


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any], memory: ResultMemory | None = None) -> Array:
    """Return uninitialised memory for a result.

    Args:
        shape: Shape of the result.
        dtype: Element type of the result.
        memory: Memory that results of earlier calls had; None for new memory.

    Raises:
        ExecutionError: There is not enough memory.
    """
    try:
        return np.empty(shape, dtype) if memory is None else memory.array(shape, dtype)
    except (MemoryError, ValueError) as error:  # a ValueError where no machine could address it
        raise no_memory("results", math.prod(shape) * dtype.itemsize) from error


def no_memory(what: str, size: int) -> ExecutionError:
    """Return the error for an allocation of `size` bytes that failed."""
    return ExecutionError(
        f"the program needs {size / 2**20:,.0f} MiB for its {what}, which this machine does not give",
        help="close other programs, or fix smaller input shapes",
    )


def known_slots(
    steps: Sequence[RunKernel | Copy], types: Sequence[TensorInfo | None]
) -> dict[int, ShapeAndDType]:
    """Return shape and dtype of the written slots for which both are known before the run."""
    forms = {}
    for slot in (slot for step in steps for slot in step.outputs):
        info = types[slot]
        shape = None if info is None else static_shape(info)
        if info is not None and shape is not None and info.dtype != DType.STRING:
            forms[slot] = (shape, DType(info.dtype).numpy)
    return forms


def buffer_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the size of a buffer in bytes."""
    return math.prod(shape) * dtype.itemsize


def _spans(block: PlanBlock, steps: Sequence[RunKernel]) -> dict[int, tuple[int, int]]:
    """Return the live range of each written slot as first and last step; results live to the end."""
    spans: dict[int, tuple[int, int]] = {}
    for index, step in enumerate(steps):
        for slot in step.inputs:
            if slot in spans:
                spans[slot] = (spans[slot][0], index)
        for slot in step.outputs:
            spans[slot] = (index, index)
    for slot in block.results:
        if slot in spans:
            spans[slot] = (spans[slot][0], len(steps))
    return spans
