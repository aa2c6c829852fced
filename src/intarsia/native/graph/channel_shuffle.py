"""Transpositions that move whole channels only: of blocked tensors they are the same memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from intarsia.native.graph.straight_line import Step, StraightLine


@dataclass(frozen=True, slots=True)
class ChannelShuffle:
    """A tensor with the channels of another one, as Reshape, Transpose and Reshape say it.

    Attributes:
        source: The number of the other one.
        results: The numbers of the values that have the permuted channels.
        channels: For each channel of a result, that of the source.
    """

    source: int
    results: tuple[int, ...]
    channels: tuple[int, ...]


def channel_shuffles(line: StraightLine) -> Mapping[int, ChannelShuffle]:
    """By their places, the transpositions of a region that move channels (N, C, spatial ...) only.

    What is read of the result has the shape of the source again. Linear in the region.
    """
    used = {number for step in line.steps for number in step.args} | set(line.results)
    views = defaultdict(list)
    for number, value in enumerate(line.values):
        if number in used:
            views[value.same_as].append(number)
    found: dict[int, ChannelShuffle] = {}
    for place, step in enumerate(line.steps):
        if str(step.op) == "Transpose":
            shuffle = _shuffle(step, line, tuple(views[step.outputs[0]]))
            found |= {place: shuffle} if shuffle else {}
    return found


def _shuffle(step: Step, line: StraightLine, read: tuple[int, ...]) -> ChannelShuffle | None:
    """The transposition of (N, factors of C ..., spatial ...), if it is one of these.

    Args:
        step: A transposition.
        line: The region.
        read: The numbers of what is read of its result.
    """
    assert step.args[0] is not None, "a transposition has an argument"
    value = line.values[step.args[0]]
    source = line.values[value.same_as]
    shape, given = source.type.static_shape, value.type.static_shape
    behind = len(given) - len(shape) + 2
    order = _axes(step, len(given))
    is_factored = behind > 2 and (given[0], prod(given[1:behind]), *given[behind:]) == shape
    if len(shape) < 3 or not is_factored or source.constant is not None:
        return None
    if order[0] != 0 or order[behind:] != tuple(range(behind, len(given))):
        return None
    if any(line.values[number].type.static_shape != shape for number in read):
        return None
    numbers = np.arange(shape[1]).reshape(given[1:behind])
    channels = numbers.transpose([axis - 1 for axis in order[1:behind]]).ravel()
    return ChannelShuffle(value.same_as, read, tuple(map(int, channels)))


def _axes(step: Step, rank: int) -> tuple[int, ...]:
    order = step.call.attrs.get("perm", tuple(reversed(range(rank))))
    assert isinstance(order, tuple)
    return tuple(axis for axis in order if isinstance(axis, int))
