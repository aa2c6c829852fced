"""The fewest multiply-adds that a call can be computed with."""

from __future__ import annotations

from math import prod

from intarsia.ir import Call, Expr, Op, TensorType
from intarsia.native.graph.convolution_algorithm import (
    ACCURATE_TRANSFORMS,
    ConvolutionShape,
    transformable_shape,
)
from intarsia.native.te.operators.winograd import TAPS, transform_operations
from intarsia.op.work import multiply_adds


def least_multiply_adds(expr: Expr) -> float:
    """Return the multiply-adds of a call by the algorithm that needs the fewest; 0 if it is no product.

    Convolutions that algorithms of Winograd's fit count with the products of these and the operations of
    their transforms, and transposed ones without the products with zeros between the elements of their input.
    """
    products = multiply_adds(expr)
    if not products or not isinstance(expr, Call):
        return products
    if isinstance(expr.op, Op) and expr.op.name == "ConvTranspose":
        return min(products, _scattered_products(expr, products))
    shape = transformable_shape(expr)
    return products if shape is None else min(products, _transformed_products(expr, shape))


def _transformed_products(call: Call, shape: ConvolutionShape) -> int:
    """Return the multiply-adds of a convolution by the algorithm of Winograd's that needs the fewest.

    Tiles are whole: those at the lower and right edges compute results that are not there. The weights are
    transformed before.
    """
    type_ = call.checked_type
    assert isinstance(type_, TensorType), "it is a convolution"
    batch = type_.static_shape[0]
    return batch * min(_products_of_tiles(shape, algorithm.tile) for algorithm in ACCURATE_TRANSFORMS)


def _products_of_tiles(shape: ConvolutionShape, tile: int) -> int:
    """Return the multiply-adds of one image by Winograd's tiles of a size, with their transforms."""
    sums = (tile + TAPS - 1) ** 2 * shape.input_channels // shape.groups * shape.output_channels
    of_input, of_result = transform_operations(tile)
    transforms = of_input * shape.input_channels + of_result * shape.output_channels
    return shape.tiles(tile) * (sums + transforms)


def _scattered_products(call: Call, products: int) -> int:
    """Return the products of the elements of a transposed convolution's input with the taps that stay.

    Args:
        call: The call.
        products: Result where a shape is not known.
    """
    data, weight, result = (item.checked_type for item in (*call.args[:2], call))
    for type_ in (data, weight, result):
        if not isinstance(type_, TensorType) or not type_.is_static:
            return products
    assert isinstance(data, TensorType)
    assert isinstance(weight, TensorType)
    assert isinstance(result, TensorType)
    extents, taps = data.static_shape[2:], weight.static_shape[2:]
    rank = len(extents)
    strides, dilations, pads = (
        _integers(call, name, (default,) * count)
        for name, default, count in (("strides", 1, rank), ("dilations", 1, rank), ("pads", 0, 2 * rank))
    )
    pairs = [
        sum(
            0 <= element * stride + tap * dilation - begin < count
            for element in range(extent)
            for tap in range(size)
        )
        for extent, size, stride, dilation, begin, count in zip(
            extents, taps, strides, dilations, pads[:rank], result.static_shape[2:], strict=True
        )
    ]
    return int(prod(data.static_shape[:2]) * weight.static_shape[1] * prod(pairs))


def _integers(call: Call, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Return an attribute that is a list of integers, or its default."""
    value = call.attrs.get(name)
    return tuple(int(str(item)) for item in value) if isinstance(value, tuple) else default
