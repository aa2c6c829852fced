"""The images of a program on images of any size, with extents as expressions of the sizes of a call.

An image is a tensor (images, channels, rows, columns). Some are computed column by column, from others at the
same column or from windows of them; others are moved by kernels of their own: enlarged, pooled as a whole,
joined. What is computed from images of one pixel by other operators is the head, an ordinary program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from intarsia.ir import Call, Expr, Function, Op, TensorType, post_order
from intarsia.native.execution.size_table import Linear, SizeTableBuilder, constant
from intarsia.native.graph.blocked_steps import POINTWISE
from intarsia.native.sizes.image_writer import ImageMove

Level: TypeAlias = tuple[Linear, Linear]
"""Rows and columns."""
ONE_PIXEL: Final[Level] = (constant(1), constant(1))
NO_PIXELS: Final[Level] = (constant(0), constant(0))
RANK: Final = 4
"""Number of axes of an image: images, channels, rows, columns."""
_OF_IMAGES: Final = frozenset(
    {"AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize"}
)


class MixedImagesError(Exception):
    """A program on images of any size has something that there are no kernels for."""


@dataclass(frozen=True, slots=True)
class Window:
    """How a window slides over an image.

    Attributes:
        taps: Rows and columns of the window, from the first tap to the last.
        strides: Distance from one position to the next.
        begins: Padding in front of the first row and column, at most.
        ends: Padding behind the last row and column, at most.
        fill: Value of padding.
        offsets: Rows and columns in front of the image at which the first window begins, where they depend on
            its size; else `begins`.
        counts: Rows and columns of windows, where `ends` do not say them.
    """

    taps: tuple[int, int]
    strides: tuple[int, int]
    begins: tuple[int, int]
    ends: tuple[int, int]
    fill: float = 0.0
    offsets: Level | None = None
    counts: Level | None = None

    @property
    def first(self) -> Level:
        """Rows and columns in front of the image at which the first window begins."""
        begins = constant(self.begins[0]), constant(self.begins[1])
        return begins if self.offsets is None else self.offsets

    @property
    def is_one_pixel(self) -> bool:
        """Whether each position reads the pixel there."""
        return self.taps == self.strides == (1, 1) and not any((*self.begins, *self.ends))


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """An argument of a call: an image at the same column, a window of it, or another expression."""

    image: Image | None = None
    window: Window | None = None
    expr: Expr | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """Which pixels of another image an image is: those at `row + step * i`, `column + step * j`."""

    whole: Image
    row: int
    column: int
    step: int


@dataclass(eq=False, slots=True)
class Image:
    """An image.

    Attributes:
        number: Position among the images; arguments come before results.
        channels: Number of channels.
        level: Rows and columns.
        call: The operator that computes it; None where it is a parameter or moved.
        reads: Arguments of that call.
        move: Move that makes it of `source`; None if it is no such image.
        source: Image, or parameter, that is moved.
        parts: Images that it is joined of, along channels.
        phase: The image that this one is a part of.
        param: Position of the parameter that it is; None for others.
        is_plain: Whether its channels are not in blocks.
        is_stored: Whether others read it from memory.
        border: Rows above, columns to the left, rows below and columns to the right that padding reads.
        fill: Value of the border; None without one.
    """

    number: int
    channels: int
    level: Level
    call: Call | None = None
    reads: tuple[Read, ...] = ()
    move: ImageMove | None = None
    source: Image | None = None
    parts: tuple[Image, ...] = ()
    phase: Phase | None = None
    param: int | None = None
    is_plain: bool = False
    is_stored: bool = True
    border: tuple[int, int, int, int] = (0, 0, 0, 0)
    fill: float | None = None
    whole: Image | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HeadParam:
    """A parameter of the head: an image of one pixel.

    Attributes:
        image: The image.
        expr: The expression of the program that it is.
    """

    image: Image
    expr: Expr


@dataclass(eq=False)
class ImageProgram:
    """A program on images of any size.

    Attributes:
        sizes: Names of the sizes of a call.
        table: The extents.
        count: Number of images of a call.
        images: All images.
        results: For each result the image, or None where the head computes it.
        head_params: Parameters of the head.
        head_results: Results of the head, expressions of the program.
        equal: Pairs of extents that have to be equal, since images are combined.
    """

    sizes: tuple[str, ...]
    table: SizeTableBuilder
    count: Linear
    images: list[Image] = field(default_factory=list)
    results: list[Image | None] = field(default_factory=list)
    head_params: list[HeadParam] = field(default_factory=list)
    head_results: list[Expr] = field(default_factory=list)
    equal: list[tuple[Linear, Linear]] = field(default_factory=list)


def has_images(function: Function) -> bool:
    """Return whether a program on windows, or on elements only, has images of any size as parameters."""
    types = (param.checked_type for param in function.params)
    shapes = [type_.shape for type_ in types if isinstance(type_, TensorType) and type_.shape is not None]
    if not any(len(shape) == RANK and not all(isinstance(dim, int) for dim in shape[2:]) for shape in shapes):
        return False
    operators = {node.name for node in post_order(function.body) if isinstance(node, Op)}
    return bool(operators & _OF_IMAGES) or operators <= POINTWISE
