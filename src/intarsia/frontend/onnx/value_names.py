"""Names of values in an ONNX graph: one for a tensor, a tuple of them for a tuple."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from intarsia.ir import TupleGetItem, TupleType, Type
from intarsia.support.errors import UnsupportedModelError

Names: TypeAlias = "str | tuple[Names, ...]"
"""The name of a tensor, or those of a tuple's fields."""

ABSENT_NAME = ""
"""What ONNX writes for an optional input that is left out."""


def flat(names: Names) -> list[str]:
    """All tensors of a value, in order."""
    return [names] if isinstance(names, str) else [leaf for item in names for leaf in flat(item)]


def flat_results(names: Names) -> list[str]:
    """All tensors of a graph's result.

    Raises:
        UnsupportedModelError: One of them is an absent value.
    """
    found = flat(names)
    if ABSENT_NAME in found:
        raise UnsupportedModelError("an absent value is returned; an ONNX output must have a value")
    return found


def unflatten(shape: Names, leaves: Iterator[str]) -> Names:
    """Other names in the same structure."""
    return next(leaves) if isinstance(shape, str) else tuple(unflatten(item, leaves) for item in shape)


def single(names: Names) -> str:
    """The name of a tensor.

    Raises:
        UnsupportedModelError: It is a tuple.
    """
    if isinstance(names, tuple):
        raise UnsupportedModelError("a tuple is passed to an operator; ONNX operators take tensors")
    return names


def field_names(names: Names, expr: TupleGetItem) -> Names:
    """The names of one field of a tuple.

    Raises:
        UnsupportedModelError: It is no tuple, or has no such field.
    """
    if isinstance(names, str):
        raise UnsupportedModelError(f"field {expr.index} is taken of a value that is not a tuple")
    if not 0 <= expr.index < len(names):
        raise UnsupportedModelError(f"field {expr.index} is taken of a tuple of {len(names)}")
    return names[expr.index]


def flat_types(type_: Type | None, count: int) -> list[Type | None]:
    """Types of `count` tensors that make up a value of that type; None for each where it is not known."""
    found = _leaves(type_)
    return found if len(found) == count else [None] * count


def _leaves(type_: Type | None) -> list[Type | None]:
    if isinstance(type_, TupleType):
        return [leaf for item in type_.fields for leaf in _leaves(item)]
    return [type_]
