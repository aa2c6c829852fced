"""Windows that slide over spatial dimensions: strides, dilations and padding of Conv and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression, Operand
from intarsia.native.te.functions import if_then_else, logical_and, maximum, minimum
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.tensor import Tensor

_MOST_COUNTED: Final = 1 << 16
"""Most window positions that are counted at build time, where no window is inside the dimension."""

_LETTERS = {1: "w", 2: "hw", 3: "dhw"}


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one dimension.

    Attributes:
        extent: Extent of the dimension that it slides over.
        count: Number of positions.
        taps: Number of elements of the window.
        stride: Distance from one position to the next.
        dilation: Distance from one tap to the next.
        begin: Padding before the first element.
        end: Padding behind the last one, as the attributes say; windows may reach beyond in ceil_mode.
    """

    extent: int
    count: int
    taps: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def reach(self) -> int:
        """The extent from the first tap of the first window to the last tap of the last."""
        return max((self.count - 1) * self.stride + (self.taps - 1) * self.dilation + 1, 0)

    @property
    def is_inside(self) -> bool:
        """Whether all taps are elements."""
        return self.begin == 0 and self.reach <= self.extent

    def tap_index(self, position: Expression, tap: Expression) -> Expression:
        """Return the index of a tap, counted from the first tap of the first window."""
        offset = position if self.stride == 1 else position * self.stride
        tap_offset = tap if self.dilation == 1 else tap * self.dilation
        return tap_offset if self.count == 1 else offset + tap_offset

    def holds(self, position: Expression) -> list[Expression]:
        """Return the conditions for an element to be at an index, without those that always hold."""
        conditions = [position >= self.begin] if self.begin > 0 else []
        if self.reach > self.extent + self.begin:
            conditions.append(position < self.extent + self.begin)
        return conditions

    def tap_count(self, position: Expression, with_padding: bool) -> Expression | int:
        """Return the number of taps at a position that are elements, or elements and padding.

        Returns:
            An int where all positions have the same, unless a window longer than the dimension takes more
            than 2**16 positions.
        """
        low = -self.begin if with_padding else 0
        high = self.extent + (self.end if with_padding else 0)
        number = self._same_count(low, high)
        if number is not None:
            return number
        start = position * self.stride - self.begin
        # The quotient is rounded up: the first tap at or after `low`.
        first = maximum((low - start + self.dilation - 1) // self.dilation, 0)
        behind = minimum((high - start + self.dilation - 1) // self.dilation, self.taps)
        return maximum(behind - first, 0)

    def _same_count(self, low: int, high: int) -> int | None:
        """Return the number of taps within [low, high) at every position; None if it may differ."""
        if self.count == 0:
            return 0
        # Positions of the first and the last window with all taps inside; those between are so as well.
        full_from = -(-(low + self.begin) // self.stride)
        full_to = (high - 1 - (self.taps - 1) * self.dilation + self.begin) // self.stride
        if full_from <= 0 and full_to >= self.count - 1:
            return self.taps
        if max(full_from, 0) <= min(full_to, self.count - 1) or self.count > _MOST_COUNTED:
            return None
        starts = np.arange(self.count) * self.stride - self.begin
        first = np.maximum(-((starts - low) // self.dilation), 0)
        behind = np.minimum(-((starts - high) // self.dilation), self.taps)
        counts = np.unique(np.maximum(behind - first, 0))
        return int(counts[0]) if len(counts) == 1 else None


def windows_of(call: ComputeCall, extents: Sequence[int], taps: Sequence[int]) -> tuple[Window, ...]:
    """Return the windows of a convolution or pool whose result has the shape `call.shape`.

    Args:
        call: Call with the attributes strides, dilations, pads and auto_pad.
        extents: Extents of the spatial dimensions that the windows slide over.
        taps: Extents of the windows.

    Raises:
        NotCoveredError: More than three spatial dimensions.
    """
    rank = len(extents)
    if rank not in _LETTERS:
        raise call.not_covered(f"{rank} spatial dimensions")
    ones, counts = (1,) * rank, call.shape[len(call.shape) - rank :]
    strides, dilations = call.integers("strides", ones) or ones, call.integers("dilations", ones) or ones
    pads = call.integers("pads", (0,) * (2 * rank)) or (0,) * (2 * rank)
    auto_pad = call.text("auto_pad", "NOTSET")
    windows = []
    for axis in range(rank):
        window = Window(
            extents[axis],
            counts[axis],
            taps[axis],
            strides[axis],
            dilations[axis],
            pads[axis],
            pads[axis + rank],
        )
        windows.append(_auto_padded(window, auto_pad))
    return tuple(windows)


def _auto_padded(window: Window, auto_pad: str) -> Window:
    if auto_pad == "NOTSET":
        return window
    if auto_pad == "VALID":
        return replace(window, begin=0, end=0)
    total = max(window.reach - window.extent, 0)
    less, more = total // 2, total - total // 2
    begin, end = (less, more) if auto_pad == "SAME_UPPER" else (more, less)
    return replace(window, begin=begin, end=end)


def spatial_names(rank: int) -> str:
    """Return a letter for each spatial dimension: h and w."""
    return _LETTERS[rank]


def tap_axes(windows: Sequence[Window]) -> tuple[IterVar, ...]:
    """Return a reduction axis for each window: rh and rw."""
    letters = spatial_names(len(windows))
    return tuple(reduce_axis(w.taps, f"r{letter}") for w, letter in zip(windows, letters, strict=True))


def tap_indices(
    windows: Sequence[Window], positions: Sequence[Expression], taps: Sequence[IterVar]
) -> list[Expression]:
    """Return the indices of the taps in the padded dimensions."""
    return [
        window.tap_index(position, tap.expression)
        for window, position, tap in zip(windows, positions, taps, strict=True)
    ]


def padded(x: Tensor, windows: Sequence[Window], value: Operand, name: str) -> Tensor:
    """Declare a tensor padded as far as windows reach in its spatial dimensions; itself without padding.

    Args:
        x: Tensor whose spatial dimensions are the last ones.
        windows: Windows, one for each spatial dimension.
        value: Value of the padding.
        name: Name of the operation.
    """
    if all(window.is_inside for window in windows):
        return x
    leading = len(x.shape) - len(windows)

    def element(*indices: Expression) -> Expression:
        spatial = list(zip(windows, indices[leading:], strict=True))
        conditions = [condition for window, position in spatial for condition in window.holds(position)]
        element_indices = [
            position - window.begin if window.begin else position for window, position in spatial
        ]
        inside = x[(*indices[:leading], *element_indices)]
        return if_then_else(logical_and(*conditions), inside, value) if conditions else inside

    return compute((*x.shape[:leading], *(window.reach for window in windows)), element, name)
