"""Which slots of a straight-line program get a buffer before the run, and where it lies."""

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

ShapeAndDType: TypeAlias = "tuple[tuple[int, ...], np.dtype[Any]]"

COPIED_RESULT_BYTES: Final = 65536
"""Results up to this size are computed in a lasting buffer and copied for the caller: that is cheaper than
what engines need to bind a new buffer (about 8 us on a laptop CPU). Larger ones get a fresh buffer."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Memory for one executable.

    Attributes:
        arena: The one block in which the lasting buffers lie.
        lasting: Buffers by slot, the same on every call.
        fresh: Shape and dtype by slot of results that need a buffer of their own on every call.
    """

    arena: Array
    lasting: dict[int, Array]
    fresh: dict[int, ShapeAndDType]


def allocate(block: PlanBlock, steps: Sequence[RunKernel], types: Sequence[TensorInfo | None]) -> Buffers:
    """Buffers for all slots that kernels write and whose shape is known; the others the kernels allocate.

    Raises:
        ExecutionError: They do not fit into memory.
    """
    known = known_slots(steps, types)
    fresh = {
        slot: shape_and_dtype
        for slot in block.results
        if (shape_and_dtype := known.get(slot)) and buffer_bytes(*shape_and_dtype) > COPIED_RESULT_BYTES
    }
    lifetimes = {
        slot: Lifetime(buffer_bytes(*known[slot]), *span)
        for slot, span in _spans(block, steps).items()
        if slot in known and slot not in fresh
    }
    plan = plan_arena_by_time(list(lifetimes.values()), ALIGNMENT)
    try:
        arena = allocate_aligned(plan.size)
    except MemoryError as error:
        raise no_memory("intermediate values", plan.size) from error
    lasting = {
        slot: np.ndarray(*known[slot], buffer=arena, offset=offset)
        for slot, offset in zip(lifetimes, plan.offsets, strict=True)
    }
    return Buffers(arena, lasting, fresh)


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Uninitialised memory for a result.

    Raises:
        ExecutionError: There is not so much.
    """
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:  # a ValueError where no machine could address it
        raise no_memory("results", math.prod(shape) * dtype.itemsize) from error


def no_memory(what: str, size: int) -> ExecutionError:
    """The error for memory that the machine does not give; `size` in bytes."""
    return ExecutionError(
        f"the program needs {size / 2**20:,.0f} MiB for its {what}, which this machine does not give",
        help="close other programs, or fix smaller input shapes",
    )


def known_slots(
    steps: Sequence[RunKernel | Copy], types: Sequence[TensorInfo | None]
) -> dict[int, ShapeAndDType]:
    """Shape and dtype of the slots that are written and for which both are known before the run."""
    known = {}
    for slot in (slot for step in steps for slot in step.outputs):
        info = types[slot]
        shape = None if info is None else static_shape(info)
        if info is not None and shape is not None and info.dtype != DType.STRING:
            known[slot] = (shape, DType(info.dtype).numpy)
    return known


def buffer_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Size of a buffer."""
    return math.prod(shape) * dtype.itemsize


def _spans(block: PlanBlock, steps: Sequence[RunKernel]) -> dict[int, tuple[int, int]]:
    """First and last step at which each written slot is in use; results stay to the end."""
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
