"""The shape argument of a Reshape that gives a tensor a shape of which some dimensions may be symbolic."""

from __future__ import annotations

import numpy as np

from intarsia.ir import ANY, Constant, Dim, Expr, TensorType, Type, with_fields
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import dims_of


def reshape_target(source: tuple[Dim, ...] | None, wanted: tuple[Dim, ...]) -> tuple[int, ...] | None:
    """The shape argument of a Reshape from the shape `source` to `wanted`; None if there is none.

    A named dimension that stays at its position is copied (0); one other may be left open (-1). Both in one
    target are avoided, as engines differ on it for tensors without elements; so are dimensions of size 0.
    """
    target = [_entry(axis, dim, source) for axis, dim in enumerate(wanted)]
    is_ambiguous = target.count(-1) > 1 or (-1 in target and 0 in target)
    return None if is_ambiguous or 0 in wanted else tuple(target)


def _entry(axis: int, dim: Dim, source: tuple[Dim, ...] | None) -> int:
    if isinstance(dim, int):
        return dim
    is_copied = dim != ANY and source is not None and axis < len(source) and source[axis] == dim
    return 0 if is_copied else -1


def reshaped(expr: Expr, type_: Type | None) -> Expr | None:
    """A tensor in the shape of a type with as many elements: itself, a Reshape of it, or None if unclear."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    source = dims_of(expr)
    if source is not None and is_same_size_shape(source, type_.shape):
        return expr
    target = reshape_target(source, type_.shape)
    if target is None:
        return None
    built = call("Reshape", expr, Constant(np.array(target, np.int64)))
    return with_fields(built, checked_type=type_)


def is_same_size_shape(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    """Whether two shapes of equally many elements are certainly the same.

    They are if they agree everywhere but at one place at most: the number of elements decides that one.
    """
    if len(left) != len(right):
        return False
    unsure = sum(a != b or a == ANY for a, b in zip(left, right, strict=True))
    return unsure == 0 or (unsure == 1 and 0 not in left and 0 not in right)
