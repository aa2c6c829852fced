"""Slice."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import front, scaled
from intarsia.native.te.tensor import Tensor


@compute_rule("Slice")
def slice_(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a slice with constant bounds and steps, which may be negative."""
    x = call.input(0)
    rank = len(x.shape)
    starts = call.known_ints(1) or ()
    axes = call.known_ints(3)
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = call.known_ints(4) or (1,) * len(starts)
    firsts, strides = [0] * rank, [1] * rank
    call.known_ints(2)  # the ends are in the result's shape
    for axis, start, step in zip(axes, starts, steps, strict=True):
        at = front(axis, rank)
        firsts[at], strides[at] = _first(start, step, x.shape[at]), step
    return [compute(call.shape, lambda *i: x[tuple(map(scaled, i, strides, firsts))], call.name)]


def _first(start: int, step: int, extent: int) -> int:
    """Return where a slice begins; unlike in Python, one with a negative step begins at 0 at the least."""
    last = extent - 1 if step < 0 else extent
    return max(0, min(front(start, extent), last))
