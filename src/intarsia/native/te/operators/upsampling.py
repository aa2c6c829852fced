"""Index arithmetic of transposed convolutions as convolutions with stride 1.

Along a dimension with stride s, result p = s * q + r sums over the taps (r + begin) mod s, that plus s, and
so on, which read neighbouring elements of the input: for each phase r a convolution with taps / s taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.windows import Window


@dataclass(frozen=True, slots=True)
class Upsampling:
    """One dimension of a transposed convolution.

    Attributes:
        extent: Extent of the input.
        count: Extent of the result.
        taps: Extent of the kernel.
        stride: Distance in the result from one element of the input to the next.
        begin: Number of results that are cut off before the first one.
    """

    extent: int
    count: int
    taps: int
    stride: int
    begin: int

    @property
    def phase_taps(self) -> int:
        """The largest number of taps of a phase."""
        return -(-self.taps // self.stride)  # rounded up

    @property
    def steps(self) -> int:
        """The number of results of the longest phase."""
        return -(-self.count // self.stride)  # rounded up

    @property
    def skipped(self) -> int:
        """The number of elements at the beginning of the input that no result reads."""
        return max(self.begin // self.stride - self.phase_taps + 1, 0)

    @property
    def most_shift(self) -> int:
        """The distance at which the last phase reads after the first: 0 or 1."""
        return (self.stride - 1 + self.begin) // self.stride - self.begin // self.stride

    @property
    def window(self) -> Window:
        """The elements that all phases read together, as a window of the input for each step."""
        taps = self.phase_taps + self.most_shift
        begin = max(self.phase_taps - 1 - self.begin // self.stride, 0)
        return Window(self.extent, self.steps + self.skipped, taps, 1, 1, begin, 0)

    def shift(self, phase: Expression) -> Expression | int:
        """Return the distance at which a phase reads after the first; affine where possible."""
        rest = self.begin % self.stride
        # For stride 2 and an odd begin, (phase + 1) // 2 is the phase itself: an affine index.
        if not rest or self.stride == 2:
            return phase if rest else 0
        return (phase + rest) // self.stride

    def tap_index(self, step: Expression, phase: Expression, tap: Expression) -> Expression:
        """Return the index in the padded input of a tap of a phase."""
        return step + tap + self.shift(phase) + self.skipped

    def holds(self, phase: Expression, tap: Expression) -> Expression | None:
        """Return whether a phase has a tap; None if all have all."""
        if self.taps % self.stride == 0:
            return None
        first = (phase + self.begin) % self.stride
        return first + (self.phase_taps - 1 - tap) * self.stride < self.taps

    def weights(self, phase: int) -> tuple[int | None, ...]:
        """Return the kernel taps of a phase, in the order in which the input is read; None for padding."""
        first = (phase + self.begin) % self.stride
        taps = [first + tap * self.stride for tap in reversed(range(self.phase_taps))]
        return tuple(tap if tap < self.taps else None for tap in taps)

    def tap(self, position: Expression, offset: int) -> Expression:
        """Return the tap by which an element reaches a result: one for each offset below `phase_taps`."""
        return (position + self.begin) % self.stride + offset * self.stride

    def element(self, position: Expression, offset: int) -> Expression:
        """Return the element that reaches a result by that tap."""
        return (position + self.begin) // self.stride - offset

    def conditions(self, position: Expression, offset: int) -> list[Expression]:
        """Return the conditions for such a tap and element to exist, without those that always hold."""
        conditions = []
        if (offset + 1) * self.stride > self.taps:
            conditions.append(self.tap(position, offset) < self.taps)
        if self.begin // self.stride < offset:
            conditions.append(self.element(position, offset) >= 0)
        if (self.count - 1 + self.begin) // self.stride - offset >= self.extent:
            conditions.append(self.element(position, offset) < self.extent)
        return conditions


def upsamplings_of(call: ComputeCall, extents: Sequence[int], taps: Sequence[int]) -> tuple[Upsampling, ...]:
    """Return the spatial dimensions of a ConvTranspose. Where they begin to read holds for dilation 1 only.

    Args:
        call: The call, which makes `call.shape`.
        extents: Extents of the spatial dimensions of the input.
        taps: Extents of the kernel.

    Raises:
        NotCoveredError: Engines do not agree where such results begin.
    """
    rank = len(extents)
    strides = call.integers("strides", (1,) * rank) or (1,) * rank
    begins = _begins(call, extents, taps, strides)
    return tuple(map(Upsampling, extents, call.shape[2:], taps, strides, begins))


def dense_upsamplings_of(call: ComputeCall) -> tuple[Upsampling, ...] | None:
    """Return the spatial dimensions of a ConvTranspose with one group and dilation 1; else None."""
    x, weight = call.input(0), call.input(1)
    rank = len(x.shape) - 2
    if rank not in (1, 2, 3) or call.integer("group") != 1 or set(dilations_of(call, rank)) != {1}:
        return None
    return upsamplings_of(call, x.shape[2:], weight.shape[2:])


def dilations_of(call: ComputeCall, rank: int) -> tuple[int, ...]:
    """Return the distance from one tap of the kernel to the next, in each spatial dimension."""
    return call.integers("dilations", (1,) * rank) or (1,) * rank


def _begins(
    call: ComputeCall, extents: Sequence[int], taps: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """Return the number of results cut off before the first one: pads, or what auto_pad implies."""
    dilations = dilations_of(call, len(extents))
    rank, auto_pad = len(extents), call.text("auto_pad", "NOTSET")
    pads = call.integers("pads", ())
    given = pads[:rank] if pads and auto_pad == "NOTSET" else (0,) * rank
    is_same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
    if not is_same and not call.integers("output_shape", ()):
        return given
    more = call.integers("output_padding", ()) or (0,) * rank
    totals = [
        strides[a] * (extents[a] - 1) + more[a] + (taps[a] - 1) * dilations[a] + 1 - call.shape[2 + a]
        for a in range(rank)
    ]
    cut = [max(total, 0) for total in totals]
    begins = tuple(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2 for total in cut)
    if (is_same and cut != totals) or (not is_same and begins != given):
        raise call.not_covered("an output_shape, or auto_pad, for which engines cut off in different places")
    return begins


def weight_of_taps(weight: npt.NDArray[Any], taps: Sequence[Sequence[int | None]]) -> npt.NDArray[Any]:
    """Return weights (C, M, taps ...) as (M, C, some of the taps ...), as a convolution has them.

    Args:
        weight: The weights.
        taps: For each spatial dimension, which taps; None for zeros.
    """
    chosen_weights = np.swapaxes(weight, 0, 1)
    for axis, chosen in enumerate(taps, start=2):
        none = np.zeros_like(chosen_weights.take([0], axis))
        chosen_weights = np.concatenate(
            [none if tap is None else chosen_weights.take([tap], axis) for tap in chosen], axis
        )
    return chosen_weights
