"""Reading of the images of a program, operator by operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    Op,
    SymbolicDim,
    TensorType,
    Tuple,
    Var,
    post_order,
)
from intarsia.ir.rule_errors import expression_name
from intarsia.native.execution.size_table import Linear, SizeTableBuilder, added, constant
from intarsia.native.sizes.image_writer import ImageMove, Move
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.toolchain.native.images.image_program import (
    ONE_PIXEL,
    RANK,
    HeadParam,
    Image,
    ImageProgram,
    Level,
    MixedImagesError,
    Read,
    Window,
)
from intarsia.toolchain.native.images.image_shapes import Numbers, evaluated

_NOT_NEGATIVE = frozenset({"HardSigmoid", "Relu", "Sigmoid"})


@dataclass(frozen=True, slots=True)
class _Axis:
    """Padding along rows or columns that depends on the size of an image.

    Attributes:
        begin: Padding in front of the image, at most.
        end: Padding behind it, at most.
        offset: Padding in front of it.
        count: Number of windows.
    """

    begin: int
    end: int
    offset: Linear
    count: Linear


class ImageReader:
    """The images so far.

    Args:
        function: The program.
        lanes: Number of channels of a block.

    Attributes:
        lanes: Number of channels of a block.
        table: The extents.
        images: The image that an expression is.
        numbers: Elements of the results of shape arithmetic.
        program: The program.
    """

    def __init__(self, function: Function, lanes: int) -> None:
        self._function, self.lanes = function, lanes
        names = dict.fromkeys(
            dim.name
            for param in function.params
            if isinstance(param.checked_type, TensorType)
            for dim in param.checked_type.shape or ()
            if isinstance(dim, SymbolicDim)
        )
        self._sizes = tuple(names)
        self.table = SizeTableBuilder(len(self._sizes))
        self.images: dict[Expr, Image] = {}
        self.numbers: dict[Expr, Numbers] = {}
        self._head: set[Expr] = set()
        self.program = ImageProgram(self._sizes, self.table, constant(0))
        self._bordered: dict[tuple[int, float], Image] = {}

    def read(self, rules: Mapping[str, Rule]) -> ImageProgram:
        """Return the program.

        Args:
            rules: Functions for operators that compute an image; they return None for other results.

        Raises:
            MixedImagesError: It has something that there are no kernels for.
        """
        counts = set()
        for position, param in enumerate(self._function.params):
            dims = self._dims(param)
            image = self.new(self._static(dims[1]), (dims[2], dims[3]), param=position, is_plain=True)
            self.images[param] = image
            counts.add(dims[0])
        if len(counts) != 1:
            raise MixedImagesError("parameters have different numbers of images")
        (self.program.count,) = counts
        body = self._function.body
        results = body.fields if isinstance(body, Tuple) else (body,)
        for expr in post_order(body):
            if isinstance(expr, Call):
                self._add(expr, rules)
            elif not _is_plain(expr, body):
                raise MixedImagesError(f"{expression_name(expr)} decides for all images")
        for result in results:
            self._add_result(result)
        return self.program

    def _dims(self, param: Var) -> list[Linear]:
        type_ = param.checked_type
        if not isinstance(type_, TensorType) or type_.shape is None or len(type_.shape) != RANK:
            raise MixedImagesError(f"parameter {param.name!r} is no image")
        if type_.dtype is not DType.FLOAT32:
            raise MixedImagesError(f"parameter {param.name!r} has numbers of {type_.dtype.value}")
        dims: list[Linear] = []
        for dim in type_.shape:
            if isinstance(dim, SymbolicDim):
                dims.append(self.table.size(self._sizes.index(dim.name)))
            else:
                dims.append(constant(dim))
        return dims

    def _static(self, linear: Linear) -> int:
        if linear[1]:
            raise MixedImagesError("the number of channels may be any")
        return linear[0]

    def new(self, channels: int, level: Level, **fields: object) -> Image:
        """Add an image with some of its fields."""
        image = Image(len(self.program.images), channels, level, **fields)  # type: ignore[arg-type]
        self.program.images.append(image)
        return image

    def _add_result(self, result: Expr) -> None:
        program = self.program
        if result in self.images:
            image = self.images[result]
            if image.param is not None:
                raise MixedImagesError("a result is a parameter")
            program.results.append(self.stored(image))
        elif result in self._head:
            program.results.append(None)
            program.head_results.append(result)
        else:
            raise MixedImagesError(f"a result, {expression_name(result)}, is no image")

    def _add(self, call: Call, rules: Mapping[str, Rule]) -> None:
        """Note what a call computes."""
        first = self.images.get(call.args[0]) if call.args else None
        shape = None
        if first is not None:
            shape = (self.program.count, constant(first.channels), *first.level)
        numbers = evaluated(call, self.numbers, shape, self.table)
        if numbers is not None:
            self.numbers[call] = numbers
            return
        type_ = call.checked_type
        rule = rules.get(operator_name(call))
        is_float = isinstance(type_, TensorType) and type_.dtype is DType.FLOAT32
        image = rule(self, call) if rule is not None and is_float and not self._is_of_head(call) else None
        if image is not None:
            self.images[call] = image
        elif call not in self._head:
            self._add_to_head(call)

    def _is_of_head(self, call: Call) -> bool:
        return any(arg in self._head and arg not in self.images for arg in call.args)

    def _add_to_head(self, call: Call) -> None:
        """Note a call that only reads images of one pixel.

        Raises:
            MixedImagesError: It reads larger ones.
        """
        for arg in call.args:
            image = self.images.get(arg)
            if image is not None:
                if image.level != ONE_PIXEL:
                    raise MixedImagesError(f"{expression_name(call)} has no kernel for images of any size")
                self.enter_head(arg, image)
        self._head.add(call)

    def enter_head(self, expr: Expr, image: Image) -> None:
        """Make an expression, an image of one pixel, a parameter of the head."""
        if all(param.expr is not expr for param in self.program.head_params):
            self.program.head_params.append(HeadParam(self.stored(image), expr))
        self._head.add(expr)

    def refusal(self, call: Call, reason: str) -> MixedImagesError:
        """Return why a call has no kernel."""
        return MixedImagesError(f"{expression_name(call)} {reason}")

    def computed(self, call: Call, channels: int, level: Level, reads: Sequence[Read]) -> Image:
        """Add an image that an operator computes column by column."""
        return self.new(channels, level, call=call, reads=tuple(reads), is_stored=False)

    def in_blocks(self, image: Image) -> Image:
        """Return an image with its channels in blocks: itself, or that of a parameter."""
        if not image.is_plain:
            return image
        key = image.number, -1.0
        if key not in self._bordered:
            form = ImageMove(Move.TO_BLOCKS, self.lanes, image.channels)
            self._bordered[key] = self.new(image.channels, image.level, move=form, source=image)
        return self._bordered[key]

    def stored(self, image: Image) -> Image:
        """Return an image, which is in memory from now on."""
        image.is_stored = True
        return image

    def window_of(self, call: Call, level: Level, taps: Sequence[int], fill: float) -> Window:
        """Return the window of a convolution or pool.

        Args:
            level: Rows and columns that it slides over.
            call: The call, with strides, dilations and padding.
            taps: Rows and columns of taps.
            fill: Value of padding.

        Raises:
            MixedImagesError: Its padding depends on the size of the image.
        """
        strides, dilations = (pair(call, name, 1) for name in ("strides", "dilations"))
        pads = call.attrs.get("pads", (0,) * 4)
        assert isinstance(pads, tuple)
        sizes = [item for item in pads if isinstance(item, int)]
        begins, ends = sizes[:2], sizes[2:]
        reach = [(tap - 1) * dilation + 1 for tap, dilation in zip(taps, dilations, strict=True)]
        match call.attrs.get("auto_pad", "NOTSET"):
            case "NOTSET":
                pass
            case "VALID":
                begins, ends = [0, 0], [0, 0]
            case "SAME_UPPER" | "SAME_LOWER" as mode if strides == (1, 1):
                halves = [(item - 1) // 2 for item in reach]
                others = [item - 1 - half for item, half in zip(reach, halves, strict=True)]
                begins, ends = (halves, others) if mode == "SAME_UPPER" else (others, halves)
            case "SAME_UPPER" | "SAME_LOWER" as mode:
                axes = [
                    self._same(*axis, is_lower=mode == "SAME_LOWER")
                    for axis in zip(level, reach, strides, strict=True)
                ]
                return _window(axes, reach, strides, fill)
            case _:
                raise self.refusal(call, "has padding of an unknown kind")
        if min(*begins, *ends) < 0:
            raise self.refusal(call, "has padding that is negative")
        if call.attrs.get("ceil_mode", 0):
            axes = [self._ceiling(*axis) for axis in zip(level, reach, strides, begins, ends, strict=True)]
            return _window(axes, reach, strides, fill)
        first, second = reach
        return Window((first, second), strides, (begins[0], begins[1]), (ends[0], ends[1]), fill)

    def _same(self, extent: Linear, reach: int, stride: int, *, is_lower: bool) -> _Axis:
        """Return padding with which there are `ceil(extent / stride)` windows.

        It is `(count - 1) * stride + reach - extent`, half of it in front, and at most one less than the
        reach. Windows of one tap have none.
        """
        count = self.table.quotient(added(extent, constant(stride - 1)), stride)
        if reach == 1:
            return _Axis(0, 0, constant(0), count)
        padding = added(added(constant(reach - stride), count, stride), extent, -1)
        if reach < stride:
            raise MixedImagesError(
                "windows shorter than their stride have padding that depends on the size of the image"
            )
        less, more = (reach - 1) // 2, reach // 2
        begin = self.table.quotient(added(padding, constant(int(is_lower))), 2)
        return _Axis(more if is_lower else less, less if is_lower else more, begin, count)

    def _ceiling(self, extent: Linear, reach: int, stride: int, begin: int, end: int) -> _Axis:
        """Return padding with which windows may reach behind the end, but begin before it.

        A window that begins in the padding behind the image is none, which an image of any size has if
        `end + stride` exceeds the reach.
        """
        behind = min(0, end + stride - reach)
        count = self.table.quotient(added(extent, constant(begin + behind + stride - 1)), stride)
        return _Axis(begin, end + stride - 1, constant(begin), count)

    def after(self, level: Level, window: Window) -> Level:
        """Return rows and columns of what is computed from windows."""
        if window.counts is not None:
            return window.counts
        rows, columns = (
            added(self.table.quotient(added(extent, constant(begin + end - taps)), stride), constant(1))
            for extent, begin, end, taps, stride in zip(
                level, window.begins, window.ends, window.taps, window.strides, strict=True
            )
        )
        return rows, columns

    def windowed(self, image: Image, window: Window) -> Read:
        """Return a read of a window of an image, which gets the border that the padding needs."""
        if window.is_one_pixel:
            return Read(image)
        needed = (*window.begins, *window.ends)
        if any(needed):
            image = self._with_border(image, window)
        return Read(self.stored(image), window)

    def _with_border(self, image: Image, window: Window) -> Image:
        fill = window.fill
        if fill == -math.inf and _is_not_negative(image):
            fill = 0.0
        target = image
        if image.param is not None or (image.fill is not None and image.fill != fill):
            target = self._copied(image, fill)
        needed = (*window.begins, *window.ends)
        target.border = tuple(map(max, target.border, needed))  # type: ignore[assignment]
        target.fill = fill
        return target

    def _copied(self, image: Image, fill: float) -> Image:
        """Return a copy of an image that has a border of another value."""
        key = image.number, fill
        if key not in self._bordered:
            self._bordered[key] = self.copied(image)
        return self._bordered[key]

    def copied(self, image: Image) -> Image:
        """Return a new copy of an image."""
        move, lanes = (Move.COPY, 0) if image.is_plain else (Move.NEAREST, self.lanes)
        return self.new(
            image.channels,
            image.level,
            move=ImageMove(move, lanes, image.channels),
            source=self.stored(image),
            is_plain=image.is_plain,
        )


Rule: TypeAlias = Callable[[ImageReader, Call], Image | None]


def _window(axes: Sequence[_Axis], reach: Sequence[int], strides: tuple[int, int], fill: float) -> Window:
    rows, columns = axes
    return Window(
        (reach[0], reach[1]),
        strides,
        (rows.begin, columns.begin),
        (rows.end, columns.end),
        fill,
        (rows.offset, columns.offset),
        (rows.count, columns.count),
    )


def _is_plain(expr: Expr, body: Expr) -> bool:
    """Return whether an expression decides nothing: a leaf, an absent argument, or the tuple of results."""
    if isinstance(expr, Tuple):
        return expr is body or not expr.fields
    return isinstance(expr, Var | Constant | Op)


def pair(call: Call, name: str, default: int) -> tuple[int, int]:
    """Return an attribute with a number for rows and one for columns."""
    value = call.attrs.get(name) or (default, default)
    assert isinstance(value, tuple)
    first, second = (int(item) for item in value if isinstance(item, int))
    return first, second


def _is_not_negative(image: Image) -> bool:
    """Return whether no element of an image is negative, so that a border of zeros changes no maximum."""
    return image.call is not None and operator_name(image.call) in _NOT_NEGATIVE
