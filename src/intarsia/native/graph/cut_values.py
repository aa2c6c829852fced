"""Slice without a kernel: what is cut out of a value in one piece is read where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from intarsia.native.graph.straight_line import Step, StraightLine

_MOST_DIMENSIONS: Final = 3
"""Of a value that is cut: images may lie in blocks of channels, out of which nothing is one piece."""


def cut_steps(line: StraightLine, joined: Sequence[int]) -> Mapping[int, int]:
    """The places of every Slice that is one piece of its source, and where it begins there, in elements.

    The source must be what a kernel writes, and no result of the region; nor may the piece be one, or be
    written by whoever makes a part of a Concat. Linear in the region.

    Args:
        line: The region.
        joined: The places of Concats whose arguments may be written where they belong.
    """
    values = line.values
    made = {number for step in line.steps for number in step.outputs}
    returned = {values[number].same_as for number in line.results}
    parts = {values[arg].same_as for place in joined for arg in line.steps[place].args if arg is not None}
    found = {}
    for place, step in enumerate(line.steps):
        if str(step.op) != "Slice" or step.args[0] is None:
            continue
        source, output = values[step.args[0]].same_as, step.outputs[0]
        is_free = source in made - returned and output not in returned | parts
        begin = _begin(step, line) if is_free else None
        if begin is not None:
            found[place] = begin
    return found


def _begin(step: Step, line: StraightLine) -> int | None:
    """Where the elements of a Slice begin that lie one behind the other; None if they do not."""
    assert step.args[0] is not None
    source = line.values[step.args[0]].type.static_shape
    made = line.values[step.outputs[0]].type.static_shape
    given = [None if arg is None else line.values[arg].constant for arg in (*step.args[1:], None, None)]
    starts, axes, steps = given[0], given[2], given[3]
    cut = [axis for axis, pair in enumerate(zip(source, made, strict=True)) if pair[0] != pair[1]]
    if len(cut) != 1 or prod(source[: cut[0]]) != 1 or len(source) > _MOST_DIMENSIONS or starts is None:
        return None
    places = range(len(starts)) if axes is None else [int(axis) % len(source) for axis in axes]
    strides = [1] * len(starts) if steps is None else [int(each) for each in steps]
    if any(stride != 1 for stride in strides):
        return None
    first = int(starts[list(places).index(cut[0])])
    first = max(0, first + source[cut[0]] if first < 0 else first)
    return first * prod(source[cut[0] + 1 :])
