"""Typed, registered options of a `PassContext`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from intarsia.support.errors import UsageError
from intarsia.support.plain_record import fields_from_plain, from_plain, shallow_fields, to_plain
from intarsia.support.registry import Registry
from intarsia.transform.pass_packages import load_pass_packages

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConfigOption(Generic[T]):
    """A key of `PassContext.config`.

    Attributes:
        key: Its name, such as "FuseOps.max_depth": the pass, a dot, the option.
        type: Type of the values: bool, int, float, str, or a dataclass (which may be given as a dict).
        default: Value where a context does not set the key.
        doc: One line for people.
    """

    key: str
    type: type[T]
    default: T
    doc: str

    def checked(self, value: object) -> T:
        """The value as the option's type; whole numbers of NumPy become ints, dicts become dataclasses.

        Raises:
            UsageError: The value is None or of another type.
        """
        wanted: Any = self.type
        if is_dataclass(wanted) and isinstance(value, Mapping | wanted):
            return self._with_fields(value)
        if wanted in (int, float) and not isinstance(value, bool) and hasattr(value, "__index__"):
            whole: T = wanted(value.__index__())
            return whole
        if value is None or not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise UsageError(
                f"config key {self.key!r} has the value {value!r} of {type(value).__name__}, "
                f"expected {wanted.__name__}",
                help=self.doc,
            )
        return cast("T", value)

    def _with_fields(self, value: Any) -> T:
        """The value, each field of the type that the dataclass declares.

        Raises:
            UsageError: There is no such field, or a value is of another type.
        """
        wanted: Any = self.type
        values = value if isinstance(value, Mapping) else shallow_fields(value)
        field_names = {item.name for item in fields(wanted)}
        unknown = [name for name in values if name not in field_names]
        if unknown:
            raise UsageError(
                f"config key {self.key!r} has no field {unknown[0]!r}",
                help=f"its fields: {', '.join(sorted(field_names))}",
            )
        try:
            checked = wanted(**fields_from_plain(wanted, values, f"config key {self.key!r}: field"))
        except ValueError as error:
            raise UsageError(str(error), help=self.doc) from error
        return cast("T", value if checked == value else checked)


_OPTIONS: Registry[ConfigOption[Any]] = Registry("config key")


def register_config_option(key: str, type_: type[T], default: T, doc: str) -> ConfigOption[T]:
    """Declare a key that contexts may set; `ctx.option(...)` reads it.

    Raises:
        UsageError: The key is declared already, differently, or the default is of another type.
    """
    option = ConfigOption(key, type_, default, doc)
    option.checked(default)
    if key in _OPTIONS and _OPTIONS[key] == option:
        return _OPTIONS[key]
    return _OPTIONS.register(key, option)


def config_options() -> tuple[ConfigOption[Any], ...]:
    """Every declared key, by name."""
    load_pass_packages()
    return tuple(_OPTIONS[key] for key in _OPTIONS)


def checked_config(config: Mapping[str, object]) -> Mapping[str, object]:
    """The values of a context, each of the type that its key declares.

    Raises:
        UsageError: An unknown key (all that there are are listed), or a value of another type.
    """
    if not isinstance(config, Mapping):
        raise UsageError(f"config is a {type(config).__name__}, expected a dict of keys and values")
    _check_keys(config)
    return MappingProxyType({key: _OPTIONS[key].checked(value) for key, value in config.items()})


def plain_config(config: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a checked config that differ from their defaults, as JSON holds them."""
    return {key: to_plain(value) for key, value in config.items() if value != _OPTIONS[key].default}


def config_from_plain(values: Mapping[str, object]) -> dict[str, object]:
    """Return the config that `plain_config` made plain.

    Raises:
        UsageError: A key is not registered in this process, or a value does not fit its type.
    """
    _check_keys(values)
    try:
        return {
            key: from_plain(_OPTIONS[key].type, value, f"config key {key!r}")
            if is_dataclass(_OPTIONS[key].type)
            else value
            for key, value in values.items()
        }
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check_keys(config: Mapping[str, object]) -> None:
    """Raise a UsageError that lists all keys if one is not registered."""
    unknown = next((key for key in config if key not in _OPTIONS), None)
    if unknown is not None:
        load_pass_packages()  # they declare their keys when they are imported
        unknown = next((key for key in config if key not in _OPTIONS), None)
    if unknown is not None:
        raise UsageError(
            f"unknown config key {unknown!r}", help=f"the keys are: {', '.join(_OPTIONS) or 'none'}"
        )
