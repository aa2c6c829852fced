"""Operators that compute each element of the result from one element of each argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.tensor import Tensor

Scalar: TypeAlias = Callable[..., Expression]
"""Function from an element of each argument to an element of the result."""


def element_at(
    tensor: Tensor, indices: Sequence[Expression], shape: Sequence[int] | None = None
) -> Expression:
    """Return the element of a tensor at an index of a shape that it is broadcast to by ONNX's rules.

    Args:
        tensor: Tensor whose dimensions are the last ones of the shape; those of extent 1 are repeated.
        indices: Indices, one for each dimension of the shape.
        shape: Shape that the tensor is broadcast to. If given, indices of extent 1 in both are kept, so that
            schedules see that each element is read once.
    """
    begin = len(indices) - len(tensor.shape)
    kept = shape[begin:] if shape is not None else [0 for _ in tensor.shape]
    pairs = zip(tensor.shape, indices[begin:], kept, strict=True)
    return tensor[tuple(0 if dim == 1 and extent != 1 else index for dim, index, extent in pairs)]


def elementwise(call: ComputeCall, scalar: Scalar, *tensors: Tensor) -> tuple[Tensor]:
    """Declare the first result of a call: `scalar` applied to elements of broadcast tensors.

    Args:
        call: Call with the shape, the element type (which results of `scalar` are cast to) and the name.
        scalar: Function that is called with an element of each tensor.
        tensors: Tensors to read; without any, all arguments of the call.

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
    aligned = wanted[len(wanted) - len(shape) :]
    return all(dim in {1, other} for dim, other in zip(shape, aligned, strict=True))
