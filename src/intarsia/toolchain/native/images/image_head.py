"""The layers behind a pool of the whole image, as a region for any number of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import (
    DType,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    SymbolicDim,
    TensorType,
    Tuple,
    Var,
    free_vars,
    substitute,
)
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.size_table import Linear, added, constant
from intarsia.op.infer import infer_types
from intarsia.passes.batches import independence_obstacle
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.passes.bind_dims import bind_function
from intarsia.runtime.kernel import KernelSource
from intarsia.toolchain.native.build import build_item_region
from intarsia.toolchain.native.images.image_program import HeadParam, ImageProgram, MixedImagesError
from intarsia.toolchain.native.region import ArgumentKind, NativeRegion

_ITEMS: Final = SymbolicDim("items")


@dataclass(frozen=True, slots=True, eq=False)
class ImageHead:
    """The compiled head.

    Attributes:
        region: The region for one item; its parameters are those of the head.
        shapes: Shape of each result.
        copies: Pairs of a result and the parameter that it is.
    """

    region: NativeRegion
    shapes: tuple[tuple[Linear, ...], ...]
    copies: tuple[tuple[int, int], ...]


def image_head(program: ImageProgram, source: KernelSource) -> ImageHead | None:
    """Compile the head of a program; None if it has none.

    Raises:
        MixedImagesError: It does not compute each image by itself, or reads more than images of one pixel.
        CompileError: An operator has no native kernel.
    """
    if not program.head_results:
        return None
    is_one = program.count == constant(1)
    function = _function(program.head_params, program.head_results, 1 if is_one else _ITEMS)
    if not is_one:
        carrying = {param.name: 0 for param in function.params}
        obstacle = independence_obstacle(bind_function(function, {_ITEMS: ITEMS}), carrying)
        if obstacle is not None:
            raise MixedImagesError(obstacle.replace(str(ITEMS), "any number"))
        function = bind_function(function, {_ITEMS: 1})
    region, _ = build_item_region(
        source,
        (ItemKind.TOKENS,) * len(function.params),
        function,
        results=(ItemKind.TOKENS,) * len(program.head_results),
    )
    copies = tuple((position, origin.number) for position, origin in region.copies)
    if any(
        origin.kind is not ArgumentKind.SLOT or origin.number >= len(function.params)
        for _, origin in region.copies
    ):
        raise MixedImagesError("two results are the same")
    return ImageHead(
        region,
        tuple(_shape(port.shape, program.count) for port in region.results),
        copies,
    )


def _shape(shape: Sequence[int], count: Linear) -> tuple[Linear, ...]:
    """Return the shape of a result, given that for one item.

    Raises:
        MixedImagesError: It has no axis of items.
    """
    if not shape:
        raise MixedImagesError("a result is the same for all images")
    return added(constant(0), count, shape[0]), *map(constant, shape[1:])


def _function(params: Sequence[HeadParam], results: Sequence[Expr], items: int | SymbolicDim) -> Function:
    """Return the head as a function of images of one pixel.

    Raises:
        MixedImagesError: It reads others.
    """
    variables: dict[Expr, Expr] = {}
    for number, param in enumerate(params):
        type_ = param.expr.checked_type
        rank = len(type_.shape or ()) if isinstance(type_, TensorType) else 0
        shape = (items, param.image.channels, *(1,) * (rank - 2))
        variables[param.expr] = Var(f"pooled{number}", checked_type=TensorType(shape, DType.FLOAT32))
    body = substitute(Tuple(tuple(results)), variables)
    given = tuple(var for var in variables.values() if isinstance(var, Var))
    if any(var not in given for var in free_vars(body)):
        raise MixedImagesError("layers behind a pool read the size of the image")
    function = Function(given, body.fields[0] if len(results) == 1 and isinstance(body, Tuple) else body)
    typed = infer_types(IRModule({GlobalVar("main"): function}))["main"]
    assert isinstance(typed, Function)
    return typed
