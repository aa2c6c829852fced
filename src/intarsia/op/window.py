"""Windows of convolutions: which taps read elements, and which read nothing but padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from intarsia.ir import Call, Dim, Expr, Op, TensorType
from intarsia.ir.attributes import Attrs


@dataclass(frozen=True)
class AxisWindow:
    """A window along one dimension.

    Attributes:
        extent: Extent of the dimension that it slides over.
        count: Number of positions.
        taps: Number of taps.
        stride: Distance from one position to the next.
        dilation: Distance from one tap to the next.
        begin: Padding before the first element.
    """

    extent: int
    count: int
    taps: int
    stride: int
    dilation: int
    begin: int

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """For each tap the number of positions at which it reads an element and no padding."""
        return tuple(map(self._reads_of, range(self.taps)))

    def _reads_of(self, tap: int) -> int:
        offset = tap * self.dilation - self.begin
        first = max(0, -(offset // self.stride))
        behind = min(self.count, -((offset - self.extent) // self.stride))
        return max(0, behind - first)

    @property
    def share(self) -> float:
        """Share of the products that have an element as a factor, 0 to 1."""
        total = self.count * self.taps
        return sum(self.reads) / total if total else 1.0


def convolution_windows(call: Expr) -> tuple[AxisWindow, ...] | None:
    """Return the windows of a Conv, one per spatial dimension; None if a size is unknown."""
    if (
        not isinstance(call, Call)
        or not isinstance(call.op, Op)
        or (call.op.domain, call.op.name) != ("", "Conv")
    ):
        return None
    shapes = [_static_shape(item) for item in (call.args[0], call.args[1], call)]
    if any(shape is None or len(shape) < 3 for shape in shapes):
        return None
    extents, taps, counts = (shape[2:] for shape in shapes if shape is not None)
    ones = (1,) * len(extents)
    strides, dilations = _integers(call.attrs, "strides", ones), _integers(call.attrs, "dilations", ones)
    begins = _begins(call.attrs, extents, taps, strides, dilations)
    return tuple(
        AxisWindow(*window) for window in zip(extents, counts, taps, strides, dilations, begins, strict=True)
    )


def same_pads(
    sizes: Sequence[Dim], spans: Sequence[int], strides: Sequence[int], *, is_upper: bool
) -> tuple[int, ...] | None:
    """Return pads with which a window fits ceil(size / stride) times; None if a size is unknown.

    Args:
        sizes: Extents of the spatial dimensions.
        spans: Extents from the first to the last tap.
        strides: Distances from one position to the next.
        is_upper: Whether of an odd number the larger half goes to the end.
    """
    begins, ends = [], []
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        if not isinstance(size, int):
            return None
        total = max(0, (-(-size // stride) - 1) * stride + span - size)
        less, more = total // 2, total - total // 2
        begins.append(less if is_upper else more)
        ends.append(more if is_upper else less)
    return (*begins, *ends)


def _begins(
    attrs: Attrs,
    extents: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, ...]:
    none = (0,) * (2 * len(extents))
    match attrs.get("auto_pad", "NOTSET"):
        case "NOTSET":
            pads = _integers(attrs, "pads", none)
        case "VALID":
            pads = none
        case mode:
            spans = [dilation * (size - 1) + 1 for size, dilation in zip(taps, dilations, strict=True)]
            pads = same_pads(extents, spans, strides, is_upper=mode == "SAME_UPPER") or none
    return pads[: len(extents)]


def _integers(attrs: Attrs, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = attrs.get(name)
    return tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else default


def _static_shape(expr: Expr) -> tuple[int, ...] | None:
    type_ = expr.checked_type
    return type_.static_shape if isinstance(type_, TensorType) and type_.is_static else None
