"""Concats without a kernel: kernels write the parts in place."""

from __future__ import annotations

from collections.abc import Mapping

from intarsia.native.graph.straight_line import KernelStep, StraightLine


def joinable_steps(line: StraightLine) -> frozenset[int]:
    """Return the numbers of the Concat steps whose arguments are consecutive and can be written in place.

    A kernel must write each argument, which may not be a result of the region or part of another Concat.
    Linear in the region.
    """
    computed = {number for step in line.steps for number in step.outputs}
    free = computed - {line.values[number].same_as for number in line.results}
    taken: set[int] = set()
    joinable = set()
    for position, step in enumerate(line.steps):
        if str(step.op) != "Concat" or not _lies_in_order(step, line):
            continue
        roots = {line.values[arg].same_as for arg in step.args if arg is not None}
        is_free = all(number in free and number not in taken for number in (*roots, *step.outputs))
        if is_free and len(roots) == len(step.args):
            joinable.add(position)
            taken |= roots
    return frozenset(joinable)


def locate_in_whole(part_offsets: Mapping[int, tuple[int, int]], value: int) -> tuple[int, int]:
    """Return the outermost whole that a value is or is in, and the offset of the value in bytes.

    Args:
        part_offsets: Number of the whole and offset in bytes of each part. A whole may be a part of another
            one.
        value: Number of the value.
    """
    offset = 0
    while value in part_offsets:
        value, begin = part_offsets[value]
        offset += begin
    return value, offset


def _lies_in_order(step: KernelStep, line: StraightLine) -> bool:
    """Return whether the arguments of a Concat are consecutive in its result."""
    shape = line.values[step.outputs[0]].type.static_shape
    axis = step.call.attrs["axis"]
    assert isinstance(axis, int)
    return all(extent == 1 for extent in shape[: axis % len(shape)])
