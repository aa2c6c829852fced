"""Padded copies that windows read, computed for the rows of one position.

    for channels                              for channels
      pad = all rows                            for rows h
      for rows h                      ->          pad = rows 4 h to 4 h + 2
        for taps; for pixels                      for taps; for pixels
          sum += pad[4 h + tap] ...                 sum += pad[tap] ...

Where strides are longer than windows, rows that no window reads are not copied, and the others once.
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load, LoopVar
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, IterVar, Operation
from intarsia.native.tir.affine import Affine, affine

_LEAST_SAVED: Final = 2
"""Rows of a whole copy for each row that windows read, from which copies by rows pay off. Loads of what has
just been stored wait where they are other vectors: copies of all rows took 1.3 to 2.2 times as long as one
copy (MaxPool 2x2 of 67x56 and 15x15 pixels, Zen 4), copies of 0.2 of them 0.17 of the time."""


def rows_of_copy(state: LoopState, copy: Operation, reader: Operation) -> str | None:
    """Return the innermost loop of a reduction in which a copy that it reads takes half of the work.

    Args:
        state: State in which the reader's loops over positions are as declared, or fused outside.
        copy: Operation that computes its elements from one other tensor, without a sum.
        reader: The only operation that reads the copy.

    Returns:
        Name of the loop; None if windows overlap, or if the operations are others.
    """
    if not isinstance(copy, ComputeOp) or not isinstance(reader, ComputeOp):
        return None
    if copy.combiner is not None or reader.combiner is None or len(copy.inputs) != 1:
        return None
    buffer = copy.buffers[0]
    reads = [
        part
        for body in reader.bodies
        for part, _ in scalar_post_order(body)
        if isinstance(part, Load) and part.buffer == buffer
    ]
    loops = {loop.name for loop in state[reader.name].iters}
    rows = [axis for axis in reader.axes[:-1] if axis.name in loops]
    if len(reads) != 1 or not rows:
        return None
    indices = [affine(index) for index in reads[0].indices]
    for last in range(len(rows), 0, -1):
        if _is_half_copied(indices, buffer.shape, reader, rows[:last]):
            return rows[last - 1].name
    return None


def _is_half_copied(
    indices: list[Affine], shape: tuple[int, ...], reader: ComputeOp, fixed: list[IterVar]
) -> bool:
    """Return whether the boxes that are read at all positions of some loops are half of the copy at most."""
    extents = {axis.var: axis.extent for axis in (*reader.axes, *reader.reduce_axes)}
    outer = {axis.var for axis in fixed}
    read, whole = prod(axis.extent for axis in fixed), 1
    for index, extent in zip(indices, shape, strict=True):
        factors = {term: factor for term, factor in index.terms.items() if isinstance(term, LoopVar)}
        if len(factors) < len(index.terms) or not factors.keys() <= extents.keys():
            return False
        if outer.isdisjoint(factors):
            continue
        inside = [(term, factor) for term, factor in factors.items() if term not in outer]
        width = 1 + sum(abs(factor) * (extents[term] - 1) for term, factor in inside)
        read, whole = read * width, whole * extent
    return read * _LEAST_SAVED <= whole
