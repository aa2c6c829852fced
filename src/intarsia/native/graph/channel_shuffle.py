"""Transpositions of whole channels, which share the memory of blocked tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from intarsia.native.graph.straight_line import KernelStep, StraightLine


@dataclass(frozen=True, slots=True)
class ChannelShuffle:
    """A permutation of channels, expressed as Reshape, Transpose and Reshape.

    Attributes:
        source: Number of the value whose channels are permuted.
        results: Numbers of the values that have the permuted channels.
        channels: Channel of the source for each channel of a result.
    """

    source: int
    results: tuple[int, ...]
    channels: tuple[int, ...]


def channel_shuffles(line: StraightLine) -> Mapping[int, ChannelShuffle]:
    """Return the transpositions of a region that permute channels (N, C, spatial ...) only, by step number.

    The values that are read have the shape of the source again. Linear in the region.
    """
    used = {number for step in line.steps for number in step.args} | set(line.results)
    views = defaultdict(list)
    for number, value in enumerate(line.values):
        if number in used:
            views[value.same_as].append(number)
    shuffles: dict[int, ChannelShuffle] = {}
    for position, step in enumerate(line.steps):
        if str(step.op) == "Transpose":
            shuffle = _shuffle(step, line, tuple(views[step.outputs[0]]))
            shuffles |= {position: shuffle} if shuffle else {}
    return shuffles


def _shuffle(step: KernelStep, line: StraightLine, read: tuple[int, ...]) -> ChannelShuffle | None:
    """Return the shuffle of a transposition of (N, factors of C ..., spatial ...), None for other ones.

    Args:
        step: Transposition.
        line: The region.
        read: Numbers of the views of its result that are read.
    """
    assert step.args[0] is not None, "a transposition has an argument"
    value = line.values[step.args[0]]
    source = line.values[value.same_as]
    shape, given = source.type.static_shape, value.type.static_shape
    behind = len(given) - len(shape) + 2
    order = permuted_axes(step, len(given))
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


def permuted_axes(step: KernelStep, rank: int) -> tuple[int, ...]:
    """Return the dimension of the argument of a transposition for each one of its result."""
    order = step.call.attrs.get("perm", tuple(reversed(range(rank))))
    assert isinstance(order, tuple)
    return tuple(axis for axis in order if isinstance(axis, int))
