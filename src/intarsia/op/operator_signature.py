"""Inputs and attributes of a registered operator, read off the signature of its reference function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from intarsia.support.errors import InvalidModelError, UsageError

T = TypeVar("T")

_HELP: Final = (
    "positional parameters are inputs, those with the default None optional ones; "
    "keyword-only parameters are attributes: int, float, str, or tuples of these"
)


class AttributeKind(Enum):
    """Kinds of attributes; the values are ONNX's names of them."""

    INT = "INT"
    FLOAT = "FLOAT"
    STRING = "STRING"
    INTS = "INTS"
    FLOATS = "FLOATS"
    STRINGS = "STRINGS"


_SCALARS: Final[Mapping[object, AttributeKind]] = MappingProxyType(
    {
        bool: AttributeKind.INT,
        int: AttributeKind.INT,
        float: AttributeKind.FLOAT,
        str: AttributeKind.STRING,
    }
)
_TUPLES: Final[Mapping[object, AttributeKind]] = MappingProxyType(
    {int: AttributeKind.INTS, float: AttributeKind.FLOATS, str: AttributeKind.STRINGS}
)
_PYTHON: Final[Mapping[AttributeKind, type]] = MappingProxyType(
    {
        AttributeKind.INT: int,
        AttributeKind.FLOAT: float,
        AttributeKind.STRING: str,
        AttributeKind.INTS: int,
        AttributeKind.FLOATS: float,
        AttributeKind.STRINGS: str,
    }
)


@dataclass(frozen=True, slots=True)
class AttributeFormal:
    """An attribute that an operator declares.

    Attributes:
        kind: Kind of its values.
        default: Value where it is left out; `REQUIRED` if it may not be.
    """

    kind: AttributeKind
    default: Any

    @property
    def is_list(self) -> bool:
        """Whether its values are tuples."""
        return self.kind in (AttributeKind.INTS, AttributeKind.FLOATS, AttributeKind.STRINGS)

    def accepts(self, value: object) -> bool:
        """Whether a value is of the attribute's kind; an integer is a float as well."""
        items = value if self.is_list and isinstance(value, tuple) else (value,)
        python = _PYTHON[self.kind]
        kinds = (int, float) if python is float else (python,)
        return isinstance(value, tuple) == self.is_list and all(isinstance(item, kinds) for item in items)


REQUIRED: Final = Parameter.empty
"""Default of an attribute that must be given."""


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """The inputs and attributes of an operator.

    Attributes:
        inputs: Names of the inputs, in order.
        required: Number of inputs that must be given; the others are optional.
        attributes: Attributes by name.
    """

    inputs: tuple[str, ...]
    required: int
    attributes: Mapping[str, AttributeFormal]

    @classmethod
    def of(cls, function: Callable[..., object], operator: str) -> OperatorSignature:
        """Read the signature of a function.

        Args:
            function: Reference function of the operator.
            operator: Name of the operator for messages.

        Raises:
            UsageError: A parameter is neither an input nor an attribute.
        """
        inputs: list[str] = []
        required = 0
        attributes: dict[str, AttributeFormal] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is Parameter.KEYWORD_ONLY:
                attributes[name] = _attribute(function, parameter, operator)
            elif parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                required += _is_required(parameter, operator)
                inputs.append(name)
            else:
                raise UsageError(f"operator {operator!r} cannot have the parameter *{name}", help=_HELP)
        return cls(tuple(inputs), required, MappingProxyType(attributes))

    def positional(self, values: Sequence[T | None]) -> list[T | None]:
        """Return a value for each input, with None for those that are left out at the end."""
        return [*values, *[None] * (len(self.inputs) - len(values))]

    def keywords(self, given: Mapping[str, Any], operator: str) -> dict[str, Any]:
        """Return the attributes of a call with the defaults of those that it leaves out.

        Raises:
            InvalidModelError: One is unknown or of another kind, or a required one is missing.
        """
        merged = {name: formal.default for name, formal in self.attributes.items()}
        for name, value in given.items():
            if name not in merged:
                listed = ", ".join(sorted(merged)) or "none"
                raise InvalidModelError(
                    f"operator {operator!r} has no attribute {name!r}", help=f"its attributes: {listed}"
                )
            if not self.attributes[name].accepts(value):
                kind = self.attributes[name].kind.value
                raise InvalidModelError(f"operator {operator!r} has {name}={value!r}, expected {kind}")
            merged[name] = value
        missing = next((name for name, value in merged.items() if value is REQUIRED), None)
        if missing is not None:
            raise InvalidModelError(f"operator {operator!r} lacks its attribute {missing!r}")
        return merged


def _is_required(parameter: Parameter, operator: str) -> bool:
    if parameter.default not in (Parameter.empty, None):
        raise UsageError(
            f"input {parameter.name!r} of operator {operator!r} has the default {parameter.default!r}, "
            "expected none, or None for an optional input",
            help=_HELP,
        )
    return parameter.default is Parameter.empty


def _attribute(function: Callable[..., object], parameter: Parameter, operator: str) -> AttributeFormal:
    kind = _kind_of_value(parameter.default) or _kind_of_hint(function, parameter.name)
    if kind is None:
        raise UsageError(
            f"attribute {parameter.name!r} of operator {operator!r} has no type: "
            f"its default is {_shown(parameter.default)}, and its annotation names none",
            help=_HELP,
        )
    return AttributeFormal(kind, parameter.default)


def _kind_of_value(value: object) -> AttributeKind | None:
    if isinstance(value, tuple):
        return _TUPLES.get(type(value[0])) if value else None
    return None if value is Parameter.empty else _SCALARS.get(type(value))


def _kind_of_hint(function: Callable[..., object], name: str) -> AttributeKind | None:
    try:
        hint = get_type_hints(function).get(name)
    except (NameError, TypeError):  # an annotation for type checkers only
        return None
    if get_origin(hint) is tuple:
        return _TUPLES.get(get_args(hint)[0])
    return _SCALARS.get(hint)


def _shown(default: object) -> str:
    return "missing" if default is Parameter.empty else repr(default)
