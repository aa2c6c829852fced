"""What an expression becomes: slots of a block, or something that is known before the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from intarsia.ir import Constant, Function, GlobalVar, SymbolicDim, TensorType, TupleType, Type
from intarsia.runtime.plan import Structure, TensorInfo


@dataclass(frozen=True, slots=True)
class ChosenFunction:
    """One of two functions, as a condition says when the program runs; a call of it becomes a branch.

    Attributes:
        cond: The slot of the condition.
        true: Callee if the condition holds.
        false: Callee if it does not.
    """

    cond: int
    true: FunctionValue
    false: FunctionValue


FUNCTIONS: Final = (Function, GlobalVar, ChosenFunction)
"""The leaves that have no slot."""

FunctionValue: TypeAlias = "Function | GlobalVar | ChosenFunction"
Leaf: TypeAlias = "int | Constant | FunctionValue"
SlotValue: TypeAlias = "Leaf | tuple[SlotValue, ...]"
"""A slot, a constant without a slot yet, a function, or a tuple of these; () is the absent value."""


def leaf_types(type_: Type | None) -> Iterator[Type | None]:
    """Types of the values that are left when tuples are taken apart."""
    if isinstance(type_, TupleType):
        for field in type_.fields:
            yield from leaf_types(field)
    else:
        yield type_


def value_like(type_: Type | None, new_slot: Callable[[Type | None], int]) -> SlotValue:
    """New slots for a value of that type, nested as it is."""
    if isinstance(type_, TupleType):
        return tuple(value_like(field, new_slot) for field in type_.fields)
    return new_slot(type_)


def value_as(value: SlotValue, new_leaves: Sequence[Leaf]) -> SlotValue:
    """Other leaves, nested as those of a value are."""
    rest = iter(new_leaves)

    def taken(part: SlotValue) -> SlotValue:
        return tuple(map(taken, part)) if isinstance(part, tuple) else next(rest)

    return taken(value)


def leaves(value: SlotValue) -> Iterator[Leaf]:
    """The values that are left when tuples are taken apart."""
    if isinstance(value, tuple):
        for field in value:
            yield from leaves(field)
    else:
        yield value


def structure(value: SlotValue) -> Structure:
    """How a value nests, with its leaves counted from 0."""
    counter = iter(range(sum(1 for _ in leaves(value))))

    def numbered(part: SlotValue) -> Structure:
        return tuple(map(numbered, part)) if isinstance(part, tuple) else next(counter)

    return numbered(value)


def tensor_info(name: str, type_: Type | None) -> TensorInfo:
    """Name and type as the runtime requires them; sequences and optionals have their text as element type."""
    if not isinstance(type_, TensorType):
        return TensorInfo(name, str(type_), None)
    shape = None if type_.shape is None else tuple(map(_dim, type_.shape))
    return TensorInfo(name, type_.dtype.value, shape)


def slot_info(type_: Type | None) -> TensorInfo | None:
    """What is known of a slot before the run; None where it is not a tensor."""
    return tensor_info("", type_) if isinstance(type_, TensorType) else None


def _dim(dim: int | SymbolicDim) -> int | str:
    if isinstance(dim, int):
        return dim
    return -1 if dim.name == "?" else dim.name
