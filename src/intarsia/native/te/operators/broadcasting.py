"""Operators that compute each element of the result from one element of each argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.tensor import Tensor

Scalar: TypeAlias = Callable[..., Expression]
"""From an element of each argument to an element of the result."""


def element_at(
    tensor: Tensor, indices: Sequence[Expression], shape: Sequence[int] | None = None
) -> Expression:
    """The element that stands at an index of a shape that the tensor is broadcast to, as ONNX broadcasts.

    Args:
        tensor: Its dimensions are the last ones of the shape; those of extent 1 are repeated.
        indices: One for each dimension of the shape.
        shape: Where it is known, no index is lost where both have extent 1: schedules see then that elements
            are taken one by one.
    """
    begin = len(indices) - len(tensor.shape)
    kept = shape[begin:] if shape is not None else [0 for _ in tensor.shape]
    pairs = zip(tensor.shape, indices[begin:], kept, strict=True)
    return tensor[tuple(0 if dim == 1 and extent != 1 else index for dim, index, extent in pairs)]


def elementwise(call: ComputeCall, scalar: Scalar, *tensors: Tensor) -> tuple[Tensor]:
    """The first result of a call, its elements computed by `scalar` from tensors that are broadcast.

    Args:
        call: Says the shape, the element type (to which what `scalar` gives is cast) and the name.
        scalar: Is given an element of each tensor.
        tensors: All arguments of the call if none are given.

    Raises:
        NotCoveredError: A tensor cannot be broadcast to that shape.
    """
    read = tensors or tuple(tensor for tensor in call.inputs if tensor is not None)
    if not all(_can_be_broadcast(tensor.shape, call.shape) for tensor in read):
        raise call.not_covered("shapes that cannot be broadcast")
    dtype = call.output_type.dtype

    def element(*indices: Expression) -> Expression:
        return scalar(*(element_at(tensor, indices, call.shape) for tensor in read)).astype(dtype)

    return (compute(call.shape, element, call.name),)


def _can_be_broadcast(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    if len(shape) > len(wanted):
        return False
    own = wanted[len(wanted) - len(shape) :]
    return all(dim in {1, other} for dim, other in zip(shape, own, strict=True))
