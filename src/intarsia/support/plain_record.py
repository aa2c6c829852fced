"""Conversion of dataclasses to plain data for JSON and back, directed by the types of their fields."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Return a dataclass as a dictionary of JSON values; tuples become lists, enums their values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    match value:
        case Enum():
            return value.value
        case tuple() | list():
            return [to_plain(item) for item in value]
        case Mapping():
            return {str(key): to_plain(item) for key, item in value.items()}
        case np.generic():
            return value.item()
        case _:
            return value


def from_plain(kind: type[T], data: object, where: str) -> T:
    """Return the dataclass that `to_plain` converted.

    A field may be a text, number, truth value, enum or dataclass, a tuple of any length or a dictionary from
    text to these, or such a type or None. Unknown keys are ignored: a newer version may write more. A
    missing field has its default value, if there is one: an older version wrote less.

    Args:
        kind: The dataclass.
        data: The plain data.
        where: Name of the data in error messages.

    Raises:
        ValueError: The data does not fit the dataclass; the message names the wrong value.
    """
    return cast("T", _read(kind, data, where))


def shallow_fields(value: Any) -> dict[str, Any]:
    """Return the values of the fields of a dataclass as they are."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def fields_from_plain(kind: Any, values: Mapping[str, object], where: str) -> dict[str, object]:
    """Return the values of some fields of a dataclass, each of the type of its field.

    Beside plain data they may be what it stands for: tuples, enums, dataclasses, numbers of NumPy.

    Args:
        kind: The dataclass, with fields as for `from_plain`.
        values: The values by the names of the fields.
        where: Words before the name of a field in error messages.

    Raises:
        ValueError: A value does not fit its field; the message names it.
    """
    hints = _hints(kind)
    return {name: _read(hints[name], to_plain(value), f"{where} {name!r}") for name, value in values.items()}


def _read(kind: Any, data: object, where: str) -> object:
    if is_dataclass(kind):
        return _record(kind, data, where)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        return _read(next(part for part in parts if part is not type(None)), data, where)
    if origin is tuple and isinstance(data, list):
        kinds = (
            (parts[0],) * len(data) if parts[-1] is Ellipsis else parts
        )  # any number, or one kind for each
        if len(kinds) != len(data):
            raise ValueError(f"{where} has {len(data)} entries, expected {len(kinds)}")
        return tuple(
            _read(part, item, f"{where}[{i}]") for i, (part, item) in enumerate(zip(kinds, data, strict=True))
        )
    if origin is dict and isinstance(data, dict):
        return {str(key): _read(parts[1], item, f"{where}.{key}") for key, item in data.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind, data, where)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if origin is None and type(data) is kind:
        return data
    raise ValueError(f"{where} is {_shown(data)}, expected {_name(kind)}")


def _record(kind: Any, data: object, where: str) -> object:
    record = data if isinstance(data, dict) else None
    if record is None:
        raise ValueError(f"{where} is {_shown(data)}, expected an object")
    missing = [name for name in _hints(kind) if name not in record and name not in _optional(kind)]
    if missing:
        raise ValueError(f"{where} has no {missing[0]!r}")
    present = {name: part for name, part in _hints(kind).items() if name in record}
    return kind(**{name: _read(part, record[name], f"{where}.{name}") for name, part in present.items()})


def _member(kind: type[Enum], data: object, where: str) -> Enum:
    for member in kind:
        if member.value == data:
            return member
    raise ValueError(f"{where} is {_shown(data)}, expected one of {[member.value for member in kind]}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _optional(kind: Any) -> frozenset[str]:
    """Return the fields with a default, which records of versions before the field lack."""
    has_default = (field for field in fields(kind) if field.default is not MISSING)
    return frozenset(field.name for field in has_default)


def _name(kind: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(kind, "an object" if get_origin(kind) is dict else "a list")


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:40]}..."
