"""Choices: transformations by name, with arguments and constraints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, TypeAlias

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import PassContext
from intarsia.transform.pass_text import construct_text
from intarsia.tune.transformations import (
    ALWAYS,
    CONSTRAINTS,
    IDENTITY,
    TRANSFORMATIONS,
    apply_transformation,
    check_transformation,
    holds,
    registered_name,
)

PlainArgs: TypeAlias = Mapping[str, Any]
"""Numbers, texts, truth values, None, and lists and dictionaries of such, by name."""


def _plain_args(args: PlainArgs) -> PlainArgs:
    """The arguments, as JSON gives them back: tuples are lists.

    Raises:
        UsageError: One of them is nothing that JSON holds.
    """
    try:
        plain = json.loads(json.dumps(dict(args), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the arguments {dict(args)} are not plain data: {error}",
            help="give numbers, texts, truth values, None, and lists and dictionaries of such",
        ) from None
    return MappingProxyType(plain)


def _no_args() -> PlainArgs:
    return MappingProxyType({})


@dataclass(frozen=True)
class Choice:
    """A transformation by name, with its arguments, and when it is open (seed relax_pass_infra, Choice).

    Attributes:
        transform: Name of a registered transformation or pass, or the registered function.
        args: Its arguments, of plain data.
        constraint: Name of a registered constraint, or the function.
        constraint_args: Its arguments, of plain data.

    Raises:
        UsageError: A function is not registered, or an argument is no plain data.
    """

    transform: str | Callable[..., IRModule] = IDENTITY
    args: PlainArgs = field(default_factory=_no_args)
    constraint: str | Callable[..., bool] = ALWAYS
    constraint_args: PlainArgs = field(default_factory=_no_args)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", registered_name(self.transform, TRANSFORMATIONS))
        object.__setattr__(self, "constraint", registered_name(self.constraint, CONSTRAINTS))
        object.__setattr__(self, "args", _plain_args(self.args))
        object.__setattr__(self, "constraint_args", _plain_args(self.constraint_args))

    def check_names(self) -> None:
        """Refuse names that nothing is registered under, and options that a pass does not have.

        Raises:
            UsageError: The transformation or the constraint is unknown, or the pass has no such option.
        """
        check_transformation(str(self.transform), self.args)
        _ = CONSTRAINTS[str(self.constraint)]

    def is_open(self, mod: IRModule) -> bool:
        """Whether the constraint holds of a module."""
        return holds(str(self.constraint), self.constraint_args, mod)

    def apply(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule:
        """The module after the transformation; the module itself where the choice is not open."""
        if not self.is_open(mod):
            return mod
        return apply_transformation(str(self.transform), self.args, mod, ctx or PassContext.current())

    def to_json(self) -> dict[str, Any]:
        """Return plain data, without fields that have their default."""
        data = {
            "transform": self.transform,
            "args": dict(self.args),
            "constraint": self.constraint,
            "constraint_args": dict(self.constraint_args),
        }
        default = {"transform": IDENTITY, "args": {}, "constraint": ALWAYS, "constraint_args": {}}
        return {key: value for key, value in data.items() if value != default[key]}

    @property
    def text(self) -> str:
        """Canonical text: equal for equal choices, so that it is a key."""
        return json.dumps(self.to_json(), sort_keys=True)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the choice that `to_json` wrote.

        Raises:
            UsageError: The data is malformed.
        """
        try:
            return cls(**data)
        except TypeError as error:
            raise UsageError(f"not a choice: {error}") from None

    def __str__(self) -> str:
        """`ConvertLayout{layout="NHWC"}`, with ` if can_convert` behind it if it has a constraint."""
        condition = construct_text(str(self.constraint), self.constraint_args)
        suffix = "" if self.constraint == ALWAYS else f" if {condition}"
        return construct_text(str(self.transform), self.args) + suffix
