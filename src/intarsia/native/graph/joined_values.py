"""Concat without a kernel: what is put together is written where it belongs from the start."""

from __future__ import annotations

from collections.abc import Mapping

from intarsia.native.graph.straight_line import Step, StraightLine


def joinable_steps(line: StraightLine) -> frozenset[int]:
    """The places of every Concat whose arguments lie one after the other, and may be written there.

    An argument must be what a kernel writes, no result of the region, and part of no other Concat. Linear in
    the region.
    """
    made = {number for step in line.steps for number in step.outputs}
    free = made - {line.values[number].same_as for number in line.results}
    taken: set[int] = set()
    found = set()
    for place, step in enumerate(line.steps):
        if str(step.op) != "Concat" or not _lies_in_order(step, line):
            continue
        roots = {line.values[arg].same_as for arg in step.args if arg is not None}
        is_free = all(number in free and number not in taken for number in (*roots, *step.outputs))
        if is_free and len(roots) == len(step.args):
            found.add(place)
            taken |= roots
    return frozenset(found)


def within(places: Mapping[int, tuple[int, int]], value: int) -> tuple[int, int]:
    """The outermost whole that a value is in, itself if none, and where in it, in bytes.

    Args:
        places: For a part, the number of the whole and where in it the part begins. A whole may be a part of
            another one.
        value: The number of a value.
    """
    offset = 0
    while value in places:
        value, begin = places[value]
        offset += begin
    return value, offset


def _lies_in_order(step: Step, line: StraightLine) -> bool:
    """Whether a Concat's arguments lie one after the other."""
    shape = line.values[step.outputs[0]].type.static_shape
    axis = step.call.attrs["axis"]
    assert isinstance(axis, int)
    return all(extent == 1 for extent in shape[: axis % len(shape)])
