"""Sources whose batch may have any size: the same source with a number in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import Function, TensorType, TupleType
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.passes.batches import independence_obstacle
from intarsia.passes.batches.independent_items import is_behind_units
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.native.batches.equal_batches import bind_inputs, dims_of, with_one_batch
from intarsia.toolchain.native.batches.item_region import ItemRegion, Number
from intarsia.toolchain.native.region import NativeRegion
from intarsia.toolchain.onnx_port import parse_model
from intarsia.toolchain.source_function import source_function

ANY_SIZE: Final = "any"
"""Value of the option `batches` for code that reads the size of the batch."""

USUAL_SIZES: Final = (1, 4, 16)
"""Sizes for which kernels are compiled where the batch has no range."""

USUAL_SIZES_TEXT: Final = "+".join(map(str, USUAL_SIZES))
"""Value of the option `batches` for them."""
_BY_IMAGE: Final = frozenset({"Conv", "ConvInteger", "ConvTranspose", "QLinearConv"})
_MOST_ITEMS: Final = 32
"""Largest batch for which kernels of its own are compiled: larger ones have little left over behind 16s."""


@dataclass(frozen=True, slots=True)
class BatchSource:
    """A source with a batch of any size.

    Attributes:
        source: The source.
        symbol: Name of the dimension.
        carrying: For each parameter whether the batch is its first axis; the others have static shapes.
        sizes: Sizes for which kernels are compiled, ascending; 1 is one of them.
        is_any_size: Whether the code reads the size, in place of codes for a few sizes.
        is_asked_for: Whether that is an option of the target; else codes for a few sizes may replace it.
        result_axes: The axis of the batch in each result; only axes of extent 1 are in front of it.
    """

    source: KernelSource
    symbol: str
    carrying: tuple[bool, ...]
    sizes: tuple[int, ...]
    is_any_size: bool = False
    is_asked_for: bool = False
    result_axes: tuple[int, ...] = ()

    @property
    def may_be_joined(self) -> bool:
        """Whether results of batches of a few sizes can be joined: the batch is their first axis."""
        return not any(self.result_axes)

    @property
    def kinds(self) -> tuple[ItemKind | None, ...]:
        """Of what each parameter has items: those of the batch, or nothing."""
        return tuple(ItemKind.TOKENS if carries else None for carries in self.carrying)

    def region_of_any(self, region: NativeRegion) -> ItemRegion:
        """Return the region for any number of items, given that for one."""
        size: Number = ((0,),)
        return ItemRegion(
            ((0, MOST_ITEMS),),
            tuple(size if kind is ItemKind.TOKENS else () for kind in ItemKind),
            tuple(((0, size),) if carries else () for carries in self.carrying),
            tuple(((axis, size),) for axis in self.result_axes),
            region.arena_bytes,
            region,
        )

    def of_size(self, size: int) -> KernelSource:
        """Return the source for a batch of one size."""
        model = parse_model(self.source, "native")
        inputs = model.graph.input
        bind_inputs(model, {item.name: size for item in inputs if dims_of(item.type)[:1] == (self.symbol,)})
        return replace(self.source, model=model.SerializeToString())


def batch_source(source: KernelSource) -> BatchSource | None:
    """Return a source as one with a batch of any size; None if all its parameters have static shapes.

    Raises:
        CompileError: It has other symbolic dimensions, or does not compute each item of a batch by itself.
    """
    source = with_one_batch(source)
    model = parse_model(source, "native")
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in weights]
    shapes = [dims_of(item.type) for item in inputs]
    if all(isinstance(dim, int) for shape in shapes for dim in shape):
        return None
    symbol = _symbol_of_batch({item.name: shape for item, shape in zip(inputs, shapes, strict=True)})
    carrying = tuple(shape[:1] == (symbol,) for shape in shapes)
    text = Target(source.target).option("batches")
    sizes = USUAL_SIZES if text in (None, ANY_SIZE) else tuple(sorted({1, *map(int, str(text).split("+"))}))
    is_any_size = text == ANY_SIZE or (
        text is None and prefers_any_size(node.op_type for node in model.graph.node)
    )
    result = BatchSource(source, symbol, carrying, sizes, is_any_size, text == ANY_SIZE)
    names = {item.name: 0 for item, carries in zip(inputs, carrying, strict=True) if carries}
    function = _function_of_items(result)
    obstacle = independence_obstacle(function, names, accepts=is_behind_units if is_any_size else None)
    if obstacle is not None:
        raise CompileError(
            f"native cannot compile this: it runs batches of any size item by item, but {obstacle}",
            help=f"give the batch a size: --shape {symbol}=8",
        )
    return replace(result, result_axes=_batch_axes(function))


def _batch_axes(function: Function) -> tuple[int, ...]:
    """Return the axis of `ITEMS` items in each result."""
    result = function.result_type
    types = result.fields if isinstance(result, TupleType) else (result,)
    return tuple(type_.static_shape.index(ITEMS) for type_ in types if isinstance(type_, TensorType))


def _symbol_of_batch(shapes: Mapping[str, Sequence[int | str]]) -> str:
    """Return the name of the batch.

    Args:
        shapes: Dimensions of the parameters, by name.

    Raises:
        CompileError: A dimension of any size is no first axis, or first axes need not be equal.
    """
    batches: dict[str, str] = {}
    for name, shape in shapes.items():
        free = [axis for axis, dim in enumerate(shape) if isinstance(dim, str)]
        if any(free):
            raise _no_batch(f"axis {max(free)} of parameter {name!r} may have any size, and is not the first")
        for axis in free:
            batches.setdefault(str(shape[axis]), name)
    first, *others = batches.values()
    if others:
        raise _no_batch(f"the first axes of {first!r} and {others[0]!r} may have any size, each its own")
    (symbol,) = batches
    if symbol == "":
        raise _no_batch(f"the first axes of several parameters, {first!r} among them, have no name")
    return symbol


def _no_batch(problem: str) -> CompileError:
    return CompileError(
        f"native cannot compile this: {problem}; it runs batches of any size, the first axis of its inputs",
        help="give sizes to the other dimensions: --shape name=1,128",
    )


def _function_of_items(batch: BatchSource) -> Function:
    """Return the source for a batch of `ITEMS` items.

    Raises:
        CompileError: It takes no batch of any size; the message has the batch's name in place of the number.
    """
    try:
        return source_function(batch.of_size(ITEMS))
    except CompileError as error:
        cause = error.__cause__ or error
        refusal = CompileError(
            error.problem.replace(str(ITEMS), batch.symbol),
            help=f"give the batch a size: --shape {batch.symbol}=8",
        )
        for note in getattr(cause, "__notes__", ()):
            refusal.add_note(note)
        raise refusal from error


def sizes_up_to(high: int) -> tuple[int, ...]:
    """Return the sizes for which kernels are compiled where batches have up to `high` items.

    They are the usual ones, and the largest batch, which servers fill, up to 32 items.
    """
    largest = {high} if 1 <= high <= _MOST_ITEMS else set()
    return tuple(sorted({size for size in USUAL_SIZES if size <= max(high, 1)} | largest))


def prefers_any_size(operators: Iterable[str]) -> bool:
    """Return whether code that reads the size of the batch is the better choice without measurements.

    Weights of products are read once for all items then. Convolutions read theirs for each image anyway, and
    code for one size joins their results in place.

    Args:
        operators: Names of the operators of the program.
    """
    return _BY_IMAGE.isdisjoint(operators)
