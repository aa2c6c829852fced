"""Slices without a kernel: a contiguous piece of a value is read in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from intarsia.native.graph.straight_line import KernelStep, StraightLine

_MOST_DIMENSIONS: Final = 3
"""Maximum rank of the source. Images may have blocked channels, whose slices are not contiguous."""


def cut_steps(line: StraightLine, joined: Sequence[int]) -> Mapping[int, int]:
    """Return the offset in elements of every Slice that is a contiguous piece of its source, by step number.

    A kernel must write the source. Neither the source nor the piece may be a result of the region, and the
    piece may not be a part of a Concat. Linear in the region.

    Args:
        line: The region.
        joined: Numbers of Concat steps whose arguments are written in place.
    """
    values = line.values
    computed = {number for step in line.steps for number in step.outputs}
    returned = {values[number].same_as for number in line.results}
    parts = {
        values[arg].same_as for position in joined for arg in line.steps[position].args if arg is not None
    }
    begins = {}
    for position, step in enumerate(line.steps):
        if str(step.op) != "Slice" or step.args[0] is None:
            continue
        source, output = values[step.args[0]].same_as, step.outputs[0]
        is_free = source in computed - returned and output not in returned | parts
        begin = _begin(step, line) if is_free else None
        if begin is not None:
            begins[position] = begin
    return begins


def _begin(step: KernelStep, line: StraightLine) -> int | None:
    """Return the offset in elements of a contiguous Slice; None for other ones."""
    assert step.args[0] is not None
    source = line.values[step.args[0]].type.static_shape
    result = line.values[step.outputs[0]].type.static_shape
    parameters = [None if arg is None else line.values[arg].constant for arg in (*step.args[1:], None, None)]
    starts, axes, steps = parameters[0], parameters[2], parameters[3]
    cut = [axis for axis, pair in enumerate(zip(source, result, strict=True)) if pair[0] != pair[1]]
    if len(cut) != 1 or prod(source[: cut[0]]) != 1 or len(source) > _MOST_DIMENSIONS or starts is None:
        return None
    sliced_axes = range(len(starts)) if axes is None else [int(axis) % len(source) for axis in axes]
    strides = [1] * len(starts) if steps is None else [int(value) for value in steps]
    if any(stride != 1 for stride in strides):
        return None
    first = int(starts[list(sliced_axes).index(cut[0])])
    first = max(0, first + source[cut[0]] if first < 0 else first)
    return first * prod(source[cut[0] + 1 :])
