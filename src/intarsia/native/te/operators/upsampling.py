"""Where transposed convolutions read and write, as convolutions with stride 1.

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
        extent: Of the input.
        count: Of the result.
        taps: Of the kernel.
        stride: From where an element of the input begins to where the next one does.
        begin: How much is cut off before the first result.
    """

    extent: int
    count: int
    taps: int
    stride: int
    begin: int

    @property
    def phase_taps(self) -> int:
        """How many taps a phase has at most."""
        return -(-self.taps // self.stride)

    @property
    def steps(self) -> int:
        """How many results the longest phase has."""
        return -(-self.count // self.stride)

    @property
    def skipped(self) -> int:
        """How many elements at the beginning of the input no result reads, as they are cut off."""
        return max(self.begin // self.stride - self.phase_taps + 1, 0)

    @property
    def most_shift(self) -> int:
        """By how much the last phase reads later than the first: 0 or 1."""
        return (self.stride - 1 + self.begin) // self.stride - self.begin // self.stride

    @property
    def window(self) -> Window:
        """What all phases read together, as a window of the input for each step."""
        taps = self.phase_taps + self.most_shift
        begin = max(self.phase_taps - 1 - self.begin // self.stride, 0)
        return Window(self.extent, self.steps + self.skipped, taps, 1, 1, begin, 0)

    def shift(self, phase: Expression) -> Expression | int:
        """By how much a phase reads later than the first: a sum where it can be."""
        rest = self.begin % self.stride
        if not rest or self.stride == 2:
            return phase if rest else 0
        return (phase + rest) // self.stride

    def place(self, step: Expression, phase: Expression, tap: Expression) -> Expression:
        """Where the tap of a phase is in the padded input."""
        return step + tap + self.shift(phase) + self.skipped

    def holds(self, phase: Expression, tap: Expression) -> Expression | None:
        """Whether a phase has a tap; None if all have all."""
        if self.taps % self.stride == 0:
            return None
        first = (phase + self.begin) % self.stride
        return first + (self.phase_taps - 1 - tap) * self.stride < self.taps

    def weights(self, phase: int) -> tuple[int | None, ...]:
        """Which taps of the kernel a phase has, in the order in which the input is read; None for none."""
        first = (phase + self.begin) % self.stride
        found = [first + tap * self.stride for tap in reversed(range(self.phase_taps))]
        return tuple(tap if tap < self.taps else None for tap in found)

    def tap(self, place: Expression, offset: int) -> Expression:
        """The tap by which an element reaches a result: one for each offset below `phase_taps`."""
        return (place + self.begin) % self.stride + offset * self.stride

    def element(self, place: Expression, offset: int) -> Expression:
        """The element that reaches a result by that tap."""
        return (place + self.begin) // self.stride - offset

    def conditions(self, place: Expression, offset: int) -> list[Expression]:
        """What holds where there are such a tap and such an element; what always holds is left out."""
        found = []
        if (offset + 1) * self.stride > self.taps:
            found.append(self.tap(place, offset) < self.taps)
        if self.begin // self.stride < offset:
            found.append(self.element(place, offset) >= 0)
        if (self.count - 1 + self.begin) // self.stride - offset >= self.extent:
            found.append(self.element(place, offset) < self.extent)
        return found


def upsamplings_of(call: ComputeCall, extents: Sequence[int], taps: Sequence[int]) -> tuple[Upsampling, ...]:
    """The spatial dimensions of a ConvTranspose. Where they begin to read holds for dilation 1 only.

    Args:
        call: The call, which makes `call.shape`.
        extents: Of the spatial dimensions of the input.
        taps: Of the kernel.

    Raises:
        NotCoveredError: Engines do not agree where such results begin.
    """
    rank = len(extents)
    strides = call.integers("strides", (1,) * rank) or (1,) * rank
    begins = _begins(call, extents, taps, strides)
    return tuple(map(Upsampling, extents, call.shape[2:], taps, strides, begins))


def dense_upsamplings_of(call: ComputeCall) -> tuple[Upsampling, ...] | None:
    """The spatial dimensions of a ConvTranspose in one group and with dilation 1; None of another one."""
    x, weight = call.input(0), call.input(1)
    rank = len(x.shape) - 2
    if rank not in (1, 2, 3) or call.integer("group") != 1 or set(dilations_of(call, rank)) != {1}:
        return None
    return upsamplings_of(call, x.shape[2:], weight.shape[2:])


def dilations_of(call: ComputeCall, rank: int) -> tuple[int, ...]:
    """From one tap of the kernel to the next, in each spatial dimension."""
    return call.integers("dilations", (1,) * rank) or (1,) * rank


def _begins(
    call: ComputeCall, extents: Sequence[int], taps: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """How much is cut off before the first result: pads, or what auto_pad makes of the shape."""
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
    found = tuple(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2 for total in cut)
    if (is_same and cut != totals) or (not is_same and found != given):
        raise call.not_covered("an output_shape, or auto_pad, for which engines cut off in different places")
    return found


def weight_of_taps(weight: npt.NDArray[Any], taps: Sequence[Sequence[int | None]]) -> npt.NDArray[Any]:
    """Weights (C, M, taps ...) as (M, C, some of the taps ...), as a convolution has them.

    Args:
        weight: The weights.
        taps: For each spatial dimension, which taps; None for zeros.
    """
    found = np.swapaxes(weight, 0, 1)
    for axis, chosen in enumerate(taps, start=2):
        none = np.zeros_like(found.take([0], axis))
        found = np.concatenate([none if tap is None else found.take([tap], axis) for tap in chosen], axis)
    return found
