"""Which products of a region a library computes, and how its function is called for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, Self

from intarsia.ir import Call, DType, Op, TensorType, Type
from intarsia.native.graph.library_product import LibraryProduct, ProductShape
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.object_code.allowed_symbols import OPENBLAS

_MOST: Final = (1 << 31) - 1
"""Largest number of elements of a matrix: the integers of cblas_sgemm have 32 bits."""


@dataclass(frozen=True, slots=True)
class LibraryUse:
    """The products that a library computes in place of our kernels.

    Attributes:
        library: Name of the library; "" for none.
        shapes: Shapes of the products; empty for all that it can compute.
    """

    library: str = ""
    shapes: tuple[ProductShape, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the use of a text such as "openblas" or "openblas:128x768x3072,128x3072x768"."""
        library, _, shapes = text.partition(":")
        return cls(library, tuple(sorted(ProductShape.parse(shape) for shape in shapes.split(",") if shape)))

    def product(self, step: KernelStep, values: Sequence[RegionValue]) -> LibraryProduct | None:
        """Return the call of the library that computes a step; None if our kernel computes it.

        Args:
            step: Step of the region.
            values: Values of the region.
        """
        product = product_of(step, values) if self.library else None
        is_chosen = product is not None and (not self.shapes or product.shape in self.shapes)
        return product if is_chosen else None

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.library}:{','.join(map(str, self.shapes))}" if self.shapes else self.library


NO_LIBRARY: Final = LibraryUse()


def product_of(step: KernelStep, values: Sequence[RegionValue]) -> LibraryProduct | None:
    """Return a step as a call of `cblas_sgemm`; None if it is no product that the function computes.

    Args:
        step: Step of the region.
        values: Values of the region.
    """
    numbers = [number for number in step.args if number is not None]
    # A kernel has one parameter for an array that it reads twice.
    if len(step.outputs) != 1 or len(set(numbers)) < len(numbers):
        return None
    return product_of_call(step.call, [values[number].type for number in numbers])


def product_of_call(call: Call, arguments: Sequence[Type | None]) -> LibraryProduct | None:
    """Return a call of an operator as a call of `cblas_sgemm`; None if the function does not compute it.

    Args:
        call: The call, with its attributes.
        arguments: Types of its arguments, without absent ones.
    """
    if not isinstance(call.op, Op) or call.op.domain:
        return None
    shapes = []
    for type_ in arguments:
        if not isinstance(type_, TensorType) or type_.dtype is not DType.FLOAT32 or not type_.is_static:
            return None
        shapes.append(type_.static_shape)
    match call.op.name:
        case "MatMul":
            product = _matmul(*shapes)
        case "Gemm":
            product = _gemm(call, shapes)
        case _:
            return None
    fits = product is not None and product.shape.multiply_adds > 0 and max(map(prod, shapes)) <= _MOST
    return product if fits else None


def _matmul(left: tuple[int, ...], right: tuple[int, ...]) -> LibraryProduct | None:
    """Return a product of matrices, of stacks of as many matrices, or of a stack by one matrix."""
    if len(left) < 2 or len(right) < 2:
        return None
    *batch, rows, depth = left
    columns = right[-1]
    if prod(right[:-2]) == 1:
        return LibraryProduct(OPENBLAS, ProductShape(1, prod(batch) * rows, depth, columns))
    if tuple(batch) != right[:-2]:
        return None
    return LibraryProduct(OPENBLAS, ProductShape(prod(batch), rows, depth, columns))


def _gemm(call: Call, shapes: Sequence[tuple[int, ...]]) -> LibraryProduct | None:
    attrs = call.attrs
    is_left, is_right = bool(attrs.get("transA", 0)), bool(attrs.get("transB", 0))
    rows, depth = shapes[0][::-1] if is_left else shapes[0]
    columns = shapes[1][0 if is_right else 1]
    has_bias = len(shapes) > 2
    if has_bias and (attrs.get("beta", 1.0) != 1.0 or shapes[2] not in {(columns,), (1, columns)}):
        return None
    factor = attrs.get("alpha", 1.0)
    assert isinstance(factor, float | int)
    shape = ProductShape(1, rows, depth, columns)
    return LibraryProduct(OPENBLAS, shape, is_left, is_right, has_bias, float(factor))
