"""Options of passes that are objects, such as search strategies, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final, TypeVar, cast

from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry
from intarsia.transform.pass_packages import load_pass_packages

T = TypeVar("T", bound=type[object])

OPTION_TYPES: Final[Registry[type[object]]] = Registry("option type")
"""Classes of objects that are options of passes, by name."""


def option_type(cls: T) -> T:
    """Register a dataclass, so that what passes record of its objects is data, and makes them again.

        @option_type
        @dataclass(frozen=True)
        class Beam:
            width: int = 4

    Raises:
        UsageError: It is no dataclass, or the name is taken.
    """
    if not is_dataclass(cls):
        raise UsageError(
            f"{cls.__name__} is no dataclass, and its fields are what is recorded",
            help="write @dataclass(frozen=True) below @option_type",
        )
    OPTION_TYPES.register(cls.__name__, cls)
    return cls


def is_option(value: object) -> bool:
    """Whether the class of a value is registered."""
    name = type(value).__name__
    return name in OPTION_TYPES and OPTION_TYPES[name] is type(value)


def recorded_fields(value: object) -> dict[str, object]:
    """The fields of a dataclass object that are recorded: those shown by `repr`, which are plain data.

    Clocks, and functions that are called back, are no part of it: they are fields with `repr=False`.
    """
    shown = fields(value) if is_dataclass(value) else ()
    return {each.name: getattr(value, each.name) for each in shown if each.init and each.repr}


def changed_fields(value: object) -> dict[str, object]:
    """Those of the recorded fields of an option that are not as by default."""
    default = {each.name: _default(each) for each in fields(cast("Any", value))}
    return {name: one for name, one in recorded_fields(value).items() if one != default[name]}


def made_option(name: str, values: Mapping[str, object]) -> object:
    """An object of a registered class.

    Args:
        name: Name of the class.
        values: Fields; the others are as by default.

    Raises:
        UsageError: There is no such class, or it cannot be made of these.
    """
    load_pass_packages()  # option types come with the passes that take them
    try:
        return OPTION_TYPES[name](**values)
    except TypeError as error:
        raise UsageError(f"{name} cannot be made with {dict(values)}: {error}") from None


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
