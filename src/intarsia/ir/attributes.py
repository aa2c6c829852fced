"""Immutable attributes of calls, functions and modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from intarsia.ir.expr import Constant
    from intarsia.ir.types import Type

AttrValue: TypeAlias = "int | float | str | bytes | Constant | Type | tuple[AttrValue, ...]"
"""An attribute's value; tensors are Constants, lists are tuples. Integers and floats are different values."""


class Attrs(Mapping[str, AttrValue]):
    """A read-only mapping, iterated in the order of its sorted names; lists given as values become tuples."""

    __slots__ = ("_compared", "_values")

    def __init__(self, values: Mapping[str, AttrValue] | None = None) -> None:
        given = values or {}
        self._values = {name: _freeze(given[name]) for name in sorted(given)}
        self._compared: tuple[object, ...] | None = None

    def __getitem__(self, name: str) -> AttrValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Attrs) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        """Return what equality compares; it is kept, as lookups of inferred types need it again and again."""
        if self._compared is None:
            self._compared = tuple([(name, _key_of(value)) for name, value in self._values.items()])
        return self._compared

    def __repr__(self) -> str:
        return f"Attrs({self._values})"

    def updated(self, **changes: AttrValue | None) -> Attrs:
        """A copy with some attributes set (or removed, for None); the same object if nothing changes."""
        merged = {name: value for name, value in {**self._values, **changes}.items() if value is not None}
        new = Attrs(merged)
        return self if new == self else new


def _freeze(value: AttrValue) -> AttrValue:
    return tuple(map(_freeze, value)) if isinstance(value, (list, tuple)) else value


def _key_of(value: AttrValue) -> object:
    """What equality compares: 1, 1.0 and True are three values, and NaN is one."""
    match value:
        case tuple():
            return tuple(map(_key_of, value))
        case float():
            return float, value.hex()
        case _:
            return type(value), value


NO_ATTRS = Attrs()
