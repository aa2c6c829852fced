"""Names of values in an ONNX graph: one for a tensor, a tuple of them for a tuple."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.ir import Expr, Function, TupleGetItem, TupleType, Type
from intarsia.ir.scope import ScopedProgram
from intarsia.support.errors import UnsupportedModelError

Names: TypeAlias = "str | FunctionValue | tuple[Names, ...]"
"""The name of a tensor, those of a tuple's fields, or a function, which has no name in ONNX."""

Environment: TypeAlias = ChainMap[Expr, Names]
"""The names of expressions; those of an inlined function come before those of the functions around it."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValue:
    """A function that is known at compile time, so that its calls can be inlined.

    Attributes:
        function: The function.
        program: The scopes of the program that it is written in.
        names: Names of what it uses from outside.
    """

    function: Function
    program: ScopedProgram
    names: Environment


ABSENT_NAME = ""
"""ONNX's name of an absent optional input."""


def flat(names: Names) -> list[str]:
    """All tensors of a value, in order.

    Raises:
        UnsupportedModelError: A function is among them.
    """
    if isinstance(names, FunctionValue):
        raise UnsupportedModelError("a function is used as a value; ONNX has tensors only")
    return [names] if isinstance(names, str) else [leaf for item in names for leaf in flat(item)]


def flat_results(names: Names) -> list[str]:
    """All tensors of a graph's result.

    Raises:
        UnsupportedModelError: One of them is an absent value.
    """
    names_of_results = flat(names)
    if ABSENT_NAME in names_of_results:
        raise UnsupportedModelError("an absent value is returned; an ONNX output must have a value")
    return names_of_results


def unflatten(shape: Names, leaves: Iterator[str]) -> Names:
    """Other names in the same structure, which holds no functions."""
    return tuple(unflatten(item, leaves) for item in shape) if isinstance(shape, tuple) else next(leaves)


def single(names: Names) -> str:
    """The name of a tensor.

    Raises:
        UnsupportedModelError: It is a tuple or a function.
    """
    if not isinstance(names, str):
        kind = "tuple" if isinstance(names, tuple) else "function"
        raise UnsupportedModelError(f"a {kind} is passed to an operator; ONNX operators take tensors")
    return names


def field_names(names: Names, expr: TupleGetItem) -> Names:
    """The names of one field of a tuple.

    Raises:
        UnsupportedModelError: It is no tuple, or has no such field.
    """
    if not isinstance(names, tuple):
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
