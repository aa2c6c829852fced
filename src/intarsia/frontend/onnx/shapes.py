"""Shapes that the user fixes, and shapes that the model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

from intarsia.ir import (
    ANY,
    Dim,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    Type,
    is_compatible,
)
from intarsia.op.onnx_types import type_from_proto
from intarsia.support.errors import ModelError, UsageError

if TYPE_CHECKING:
    from onnx import GraphProto, ValueInfoProto


@dataclass(frozen=True, slots=True)
class InputTypes:
    """Types of a model's inputs with the user's shapes put in.

    Attributes:
        types: Types by name of the input.
        bound: Numbers or symbols by the symbolic dimension that they replace.
    """

    types: Mapping[str, Type | None]
    bound: Mapping[SymbolicDim, Dim]


def fixed_input_types(
    inputs: Sequence[ValueInfoProto], shapes: Mapping[str, Sequence[int | str]]
) -> InputTypes:
    """Types of the inputs, with the given shapes put in; a symbol fixed once is fixed in every input.

    Raises:
        UsageError: An unknown input, a wrong rank, or a number that contradicts the model's.
    """
    types = {item.name: _declared_type(item) for item in inputs}
    for name in shapes:
        if name not in types:
            names = ", ".join(map(repr, types)) or "none"
            raise UsageError(f"the model has no input {name!r}", help=f"its inputs: {names}")
    bound: dict[SymbolicDim, Dim] = {}
    for name, shape in shapes.items():
        types[name] = _fix(name, types[name], shape, bound)
    return InputTypes({name: substituted(type_, bound) for name, type_ in types.items()}, bound)


def _fix(name: str, type_: Type | None, shape: Sequence[int | str], bound: dict[SymbolicDim, Dim]) -> Type:
    if not isinstance(type_, TensorType):
        raise UsageError(f"input {name!r} is no tensor, so it has no shape to fix")
    given: tuple[Dim, ...] = tuple(SymbolicDim(dim) if isinstance(dim, str) else index(dim) for dim in shape)
    declared = (ANY,) * len(given) if type_.shape is None else type_.shape
    if len(declared) != len(given):
        raise UsageError(
            f"input {name!r} has {len(declared)} dimensions {type_}, got {len(given)}: {tuple(shape)}"
        )
    for old, new in zip(declared, given, strict=True):
        if (isinstance(old, int) and old != new) or (isinstance(new, int) and new < 0):
            raise UsageError(f"input {name!r} is {type_}, which does not fit the shape {tuple(shape)}")
        if isinstance(old, SymbolicDim) and old != ANY and bound.setdefault(old, new) != new:
            raise UsageError(f"dimension {old.name!r} is fixed to {bound[old]} and to {new} (input {name!r})")
    return TensorType(given, type_.dtype)


def substituted(type_: Type | None, bound: Mapping[SymbolicDim, Dim]) -> Type | None:
    """The type with symbolic dimensions replaced."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    return TensorType(
        tuple(bound.get(dim, dim) if isinstance(dim, SymbolicDim) else dim for dim in type_.shape),
        type_.dtype,
    )


def type_hints(graph: GraphProto) -> dict[str, Type]:
    """Types that the model declares for its outputs and, where the exporter wrote them, inner values."""
    declared = ((item.name, _declared_type(item)) for item in (*graph.value_info, *graph.output))
    return {name: type_ for name, type_ in declared if type_ is not None}


def _declared_type(item: ValueInfoProto) -> Type | None:
    try:
        return type_from_proto(item.type)
    except ModelError as error:
        error.add_note(f"at the value {item.name!r}")
        raise


def more_precise(inferred: Type | None, other: Type, is_inferred: bool = False) -> Type:
    """Combine an inferred type with another source of type facts; the inferred one has precedence.

    Exporters leave stale shapes behind: a batch of 1 in the middle of a model with a symbolic batch. So a
    declared shape only fills in unknown dimensions, and only without a contradiction. Its numbers are never
    used: with a wrong number an engine fails or computes something else.

    Args:
        inferred: Type by inference; None if unknown.
        other: Type from another source.
        is_inferred: Whether `other` was inferred as well, rather than declared.
    """
    if inferred is None:
        return other if is_inferred else _without_numbers(other)
    if not isinstance(inferred, TensorType) or not isinstance(other, TensorType):
        return inferred
    if other.shape is None or not is_compatible(inferred, other):
        return inferred
    shape = other.shape if is_inferred else _symbols(other.shape)
    if inferred.shape is None:
        return TensorType(shape, inferred.dtype)
    dims = (new if old == ANY else old for old, new in zip(inferred.shape, shape, strict=True))
    return TensorType(tuple(dims), inferred.dtype)


def _without_numbers(type_: Type) -> Type:
    match type_:
        case TensorType() if type_.shape is not None:
            return TensorType(_symbols(type_.shape), type_.dtype)
        case SequenceType(element) | OptionalType(element) if element is not None:
            return type(type_)(_without_numbers(element))
        case _:
            return type_


def _symbols(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    return tuple(ANY if isinstance(dim, int) else dim for dim in shape)
