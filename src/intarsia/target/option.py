"""The typed options that a target may carry, and the registry that toolchains extend with their own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry

OptionValue: TypeAlias = str | int | bool | float
OptionType: TypeAlias = type[str] | type[int] | type[bool] | type[float]

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED: Final = "toolchain"
_GROUP: Final = "intarsia.target_options"
_BOOLEANS: Final = {"true": True, "false": False}
_EXPECTED: Final = {str: "a text without spaces and quotes", int: "a whole number", float: "a finite number"}


@dataclass(frozen=True, slots=True)
class TargetOption:
    """An option `-name=value` of a target.

    Attributes:
        name: Lower case letters, digits and underscores.
        type: The type of its values.
        help: One line that says what it does.
        minimum: The least number allowed, or None.
        choices: The only values allowed; empty if all are.
        pattern: Regular expression that a whole text value must match; empty for any text.
        toolchains: Names of the toolchains that understand the option; empty for all.
        default: Value that a target without the option behaves like; None if that depends on the machine.
        keeps_results: Whether every value gives the same results up to the last few bits.
        is_tuned: Whether TuneFlags tries the values when no flags are named.
    """

    name: str
    type: OptionType
    help: str
    minimum: int | None = None
    choices: tuple[OptionValue, ...] = ()
    pattern: str = ""
    toolchains: tuple[str, ...] = ()
    default: OptionValue | None = None
    keeps_results: bool = True
    is_tuned: bool = True

    @property
    def values(self) -> tuple[OptionValue, ...]:
        """All values, if they can be listed."""
        return (True, False) if self.type is bool else self.choices

    def is_understood_by(self, toolchain: str | None) -> bool:
        """Whether a target with that toolchain, or with none, may carry it."""
        return not self.toolchains or toolchain in self.toolchains

    def parse(self, text: str) -> OptionValue:
        """The value that `text` stands for.

        Raises:
            UsageError: It is not a value of this option.
        """
        try:
            value = _BOOLEANS[text] if self.type is bool else self.type(text)
        except (ValueError, KeyError):
            raise self._refusal(text) from None
        return self.check(value)

    def check(self, value: OptionValue) -> OptionValue:
        """The value in the one form in which it is stored (an int given for a float becomes a float).

        Raises:
            UsageError: It is not a value of this option.
        """
        if self.type is float and type(value) is int:
            value = float(value)
        allowed = type(value) is self.type and _is_printable(value)
        if allowed and self.minimum is not None and not isinstance(value, str):
            allowed = value >= self.minimum
        if isinstance(value, str) and self.pattern:
            allowed = allowed and re.fullmatch(self.pattern, value) is not None
        if not allowed or (self.choices and value not in self.choices):
            raise self._refusal(value)
        return value + 0.0 if isinstance(value, float) else value  # -0.0 equals 0.0 and must print like it

    def _refusal(self, value: OptionValue) -> UsageError:
        if self.values:
            expected = " or ".join(map(option_text, self.values))
        else:
            expected = f"a text like {self.default}" if self.pattern else _EXPECTED[self.type]
            expected += "" if self.minimum is None else f", at least {self.minimum}"
        return UsageError(f"target option -{self.name} is {value!r}; expected {expected}", help=self.help)


def option_text(value: OptionValue) -> str:
    """A value as it is written in a target; the option's `parse` reads it back."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case _:
            return str(value)


def _is_printable(value: OptionValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return value != "" and value.isprintable() and not set(value) & {" ", '"'}
    return True


class OptionRegistry(Registry[TargetOption]):
    """Options by name; those that packages announce are checked when they are first looked up."""

    def __getitem__(self, name: str) -> TargetOption:
        """Return the option of that name.

        Raises:
            UsageError: It is unknown (the nearest names are listed), its package cannot be imported, or what
                the package announces under this name is not an option of this name.
        """
        if name in self._values or name not in self:
            return super().__getitem__(name)
        try:
            option = super().__getitem__(name)
        except UsageError:
            raise
        except Exception as error:  # foreign code: an entry point may fail in any way
            raise UsageError(
                f"target option {name!r} cannot be loaded: {type(error).__name__}: {error}",
                help=f"the package that announces it by entry point {_GROUP!r} is broken",
            ) from error
        if not isinstance(option, TargetOption) or option.name != name:
            del self._values[name]
            raise UsageError(f"entry point {name!r} of {_GROUP!r} is not a TargetOption of this name")
        return option


TARGET_OPTIONS: Final[Registry[TargetOption]] = OptionRegistry("target option", group=_GROUP)
"""The options of this module, and those that toolchains announce by entry points."""


def register_option(option: TargetOption) -> TargetOption:
    """Add an option for as long as this process lives; several toolchains may register the same one.

    An installed toolchain announces its options by entry points of the group `intarsia.target_options`
    instead, so that targets can be parsed before the toolchain is imported.

    Raises:
        UsageError: Its name is malformed, reserved, or taken by an option that is not the same.
    """
    if not _NAME.fullmatch(option.name) or option.name == _RESERVED:
        raise UsageError(
            f"target option {option.name!r} is not a free name of lower case letters, digits and underscores"
        )
    # A module may register the option that it also announces. It cannot be looked up while it is imported.
    with suppress(UsageError):
        TARGET_OPTIONS[option.name]
    try:
        return TARGET_OPTIONS.register(option.name, option)
    except UsageError:
        if TARGET_OPTIONS[option.name] != option:
            raise
        return TARGET_OPTIONS[option.name]


def toolchain_options(toolchain: str) -> tuple[TargetOption, ...]:
    """Return the options that are meant for a toolchain (not those that all may be given), by name.

    Options of packages that cannot be imported are left out; a target that names one is an error.
    """
    return tuple(option for option in _loadable_options() if toolchain in option.toolchains)


def check_known(name: str, toolchain: str | None) -> None:
    """Refuse an unknown option, with those in the message that a target of the toolchain may carry.

    Args:
        name: Name of the option.
        toolchain: Toolchain of the target, or None.

    Raises:
        UsageError: There is no option of that name.
    """
    if name in TARGET_OPTIONS:
        return
    names = [option.name for option in _loadable_options() if option.is_understood_by(toolchain)]
    close = get_close_matches(name, names, n=3)
    whose = "a target without toolchain" if toolchain is None else toolchain
    raise UsageError(
        f"unknown target option {name!r}",
        help=f"did you mean {' or '.join(close)}?" if close else f"{whose} takes {', '.join(names)}",
    )


def _loadable_options() -> Iterator[TargetOption]:
    for name in TARGET_OPTIONS:
        with suppress(UsageError):
            yield TARGET_OPTIONS[name]


for _option in (
    TargetOption("partition_rule", str, "the rule by which Collage proposes partitions for the target"),
    TargetOption("threads", int, "threads that run one operator, 1 or more", minimum=1),
    TargetOption(
        "timed_on_device",
        bool,
        "whether kernels for a GPU are timed by its events, with inputs and results in its memory",
        default=False,
        is_tuned=False,
    ),
    TargetOption(
        "optimize", int, "0: the engine's optimisations off (reference runs), 1: on", choices=(0, 1)
    ),
):
    TARGET_OPTIONS.register(_option.name, _option)
