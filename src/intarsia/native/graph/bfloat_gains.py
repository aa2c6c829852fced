"""Whether blocks of channels hold so few zeros that words of bfloat16 numbers are faster than float32."""

from __future__ import annotations

import math
from typing import Final

from intarsia.ir import Call
from intarsia.native.graph.bfloat_steps import PAIR
from intarsia.native.graph.blocked_steps import costs_of_groups
from intarsia.native.graph.channels_first import has_plain_kernel
from intarsia.native.graph.group_form import MOST_WASTE, GroupForm
from intarsia.native.graph.straight_line import KernelStep

_MOST_MULTIPLICATIONS: Final = 1.5
"""Maximum ratio of the multiplications of a convolution, zeros included, to those in float32: of 2, nothing
would be gained. Of 24 layers of 2 to 16 groups, those beyond it took 1.15 to 2.4 times as long as in float32
(Zen 4, `-multiply_in=bfloat16`, one thread)."""


def is_gain_in_groups(call: Call, weight: tuple[int, ...], lanes: int, *, has_dot: bool) -> bool:
    """Return whether a grouped convolution is faster by words of channels than in float32.

    In float32, a convolution of several taps has transforms or a kernel on plain tensors, without zeros.

    Args:
        call: The convolution.
        weight: Shape of its weights, (M, C / groups, taps ...).
        lanes: Number of channels of a block.
        has_dot: Whether one instruction sums products of words, so that they may begin at any channel.
    """
    of_words = dict(costs_of_groups(call, weight, lanes, PAIR))
    of_floats = costs_of_groups(call, weight, lanes) if has_dot and math.prod(weight[2:]) == 1 else {}
    if not has_dot:
        of_words.pop(GroupForm.TABLE, None)
    best = min(max(1.0, min(of_floats.values(), default=1.0)), MOST_WASTE)
    return min(of_words.values(), default=math.inf) <= _MOST_MULTIPLICATIONS * best


def is_gain_in_blocks(step: KernelStep, weight: tuple[int, ...], lanes: int) -> bool:
    """Return whether a dense convolution is faster by words, or has no kernel without zeros in float32.

    Args:
        step: The convolution.
        weight: Shape of its weights, (M, C, taps ...).
        lanes: Number of channels of a block.
    """
    filters, channels = (-(-count // lanes) * lanes / count for count in weight[:2])
    return filters * channels <= _MOST_MULTIPLICATIONS or not has_plain_kernel(step, lanes)
