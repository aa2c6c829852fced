"""The channel blocks in which native computes convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir import TensorType
from intarsia.native.graph.blocked_steps import CONVOLUTIONS
from intarsia.transform import register_pass
from intarsia.tune.kernels import KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.kernels.kernel_question import question_on

_SIZES: Final = (4, 8, 16)
"""Sizes of blocks that native has schedules for."""
_MUCH_PADDING: Final = 1.15
"""Ratio of positions to channels from which smaller blocks may pay: they use a part of a vector only."""


@register_pass
@dataclass(frozen=True)
class TuneChannelBlocks(TuneKernels, opt_level=0):
    """Decides how many channels native keeps together for each convolution, and so where layouts change.

    By rule a block is a vector, and few channels are plain. Smaller blocks have less padding where the number
    of channels, or of those of a group, does not fit; the plain layout needs no conversion before and behind.
    """

    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return a question for each group with a convolution."""
        questions = []
        for group in groups:
            sizes = _sizes(group)
            if sizes:
                settings = {str(size) if size else "plain": {"lanes": str(size)} for size in sizes}
                questions.append(question_on(group, "channel block", settings, target))
        return questions


def _sizes(group: KernelGroup) -> list[int]:
    """Return block sizes other than the rule's; 0 for the plain layout."""
    channels = _channels(group)
    if not channels:
        return []
    if not group.lanes:
        return [size for size in _SIZES if size <= min(group.vector_lanes, max(channels))]
    padding = _padding(channels, group.lanes)
    smaller = [size for size in _SIZES if size < group.lanes]
    return [*(size for size in smaller if padding >= _MUCH_PADDING * _padding(channels, size)), 0]


def _channels(group: KernelGroup) -> tuple[int, ...]:
    """Return the numbers of channels that a group of the convolution reads and writes; none without one.

    A depthwise convolution counts as one group: its blocks hold channels of many.
    """
    for call in group.rule.calls:
        if str(call.op) in CONVOLUTIONS:
            types = [expr.checked_type for expr in (call.args[0], call)]
            channels = [type_.static_shape[1] for type_ in types if isinstance(type_, TensorType)]
            groups = call.attrs.get("group", 1)
            parts = groups if isinstance(groups, int) and groups < min(channels) else 1
            return tuple(count // parts for count in channels)
    return ()


def _padding(channels: Sequence[int], size: int) -> float:
    """Return the ratio of positions to channels, over all pairs of read and written channels."""
    return prod(-(-count // size) * size / count for count in channels)
