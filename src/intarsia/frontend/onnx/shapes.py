"""Shapes that the user fixes, and shapes that the model declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Final

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

_AXIS: Final = re.compile(r"(?P<name>.+)\[(?P<axis>\d+)\]", re.DOTALL)

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

    Args:
        inputs: Inputs of the model.
        shapes: Shapes by input name; one size for a symbolic dimension by its name, or for input[axis].

    Raises:
        UsageError: An unknown input, a wrong rank, or a number that contradicts the model's.
    """
    types = {item.name: _declared_type(item) for item in inputs}
    bound: dict[SymbolicDim, Dim] = {}
    for name, shape in shapes.items():
        if name in types:
            types[name] = _fix(name, types[name], shape, bound)
        else:
            of_axis = _axis_shape(name, shape, types)
            if of_axis is None:
                _bind_symbol(name, shape, types, bound)
            else:
                types[of_axis[0]] = _fix(*of_axis, bound)
    return InputTypes({name: substituted(type_, bound) for name, type_ in types.items()}, bound)


def _axis_shape(
    name: str, shape: Sequence[int | str], types: Mapping[str, Type | None]
) -> tuple[str, TensorType, tuple[int | str, ...]] | None:
    """Return the input that a name input[axis] means, with its type and new shape; None for other names."""
    match = _AXIS.fullmatch(name)
    type_ = types.get(match["name"]) if match else None
    if match is None or not isinstance(type_, TensorType) or type_.shape is None or len(shape) != 1:
        return None
    axis = int(match["axis"])
    if axis >= len(type_.shape):
        raise UsageError(f"input {match['name']!r} of type {type_} has no axis {axis}")
    dims = (dim if isinstance(dim, int) else dim.name for dim in type_.shape)
    return match["name"], type_, tuple(shape[0] if i == axis else dim for i, dim in enumerate(dims))


def _bind_symbol(
    name: str,
    shape: Sequence[int | str],
    types: Mapping[str, Type | None],
    bound: dict[SymbolicDim, Dim],
) -> None:
    symbols = dict.fromkeys(
        dim.name
        for type_ in types.values()
        if isinstance(type_, TensorType)
        for dim in type_.shape or ()
        if isinstance(dim, SymbolicDim) and dim != ANY
    )
    if name not in symbols or len(shape) != 1:
        names = ", ".join(map(repr, types)) or "none"
        dims = f"; its symbolic dimensions: {', '.join(map(repr, symbols))}" if symbols else ""
        raise UsageError(f"the model has no input {name!r}", help=f"its inputs: {names}{dims}")
    size: Dim = SymbolicDim(shape[0]) if isinstance(shape[0], str) else index(shape[0])
    if bound.setdefault(SymbolicDim(name), size) != size:
        raise UsageError(f"dimension {name!r} is fixed to {bound[SymbolicDim(name)]} and to {size}")


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
