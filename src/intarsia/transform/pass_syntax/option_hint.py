"""The options of passes and option types, with their types."""

from __future__ import annotations

import sys
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from inspect import get_annotations
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from intarsia.transform.compiler_pass import Pass
from intarsia.transform.option_type import OPTION_TYPES
from intarsia.transform.pass_packages import load_pass_packages
from intarsia.transform.pass_text import SEQUENTIAL, default_of, option_text


@dataclass(frozen=True, slots=True)
class OptionHint:
    """An option that text can give.

    Attributes:
        name: Its name.
        hint: Its type as `typing` has it; `Any` if it cannot be resolved.
        default: Its default, or `dataclasses.MISSING`.
    """

    name: str
    hint: Any
    default: object

    @property
    def is_needed(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    def __str__(self) -> str:
        """`max_bytes: int = 16777216`."""
        default = "" if self.is_needed else f" = {option_text(self.default)}"
        return f"{self.name}: {type_text(self.hint)}{default}"


SEQUENTIAL_HINTS: Final = (
    OptionHint("passes", tuple[Pass, ...], MISSING),
    OptionHint("name", str, "sequential"),
    OptionHint("opt_level", int, 0),
    OptionHint("required", tuple[str, ...], ()),
)
"""Options of a sequence in text."""


def option_hints(item: object) -> tuple[OptionHint, ...]:
    """Return the options of a class, or of a pass, in order; functions that are called back are left out.

    Args:
        item: Class of passes, option type, or a pass.
    """
    if not is_dataclass(item):
        return SEQUENTIAL_HINTS if getattr(item, "__name__", "") == SEQUENTIAL else ()
    hints = _hints(item if isinstance(item, type) else type(item))
    return tuple(
        OptionHint(field.name, hints.get(field.name, Any), default_of(field))
        for field in fields(item)
        if field.init and field.repr
    )


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields, without those with a name for type checkers only."""
    hints: dict[str, Any] = {}
    declared = {field.name for field in fields(cls)}
    for base in reversed(cls.__mro__):
        names = vars(sys.modules[base.__module__])
        annotations = get_annotations(base)
        for name in declared & annotations.keys():
            holder = types.SimpleNamespace(__annotations__={name: annotations[name]})
            with suppress(NameError):
                hints |= get_type_hints(holder, names)
    return hints


def type_text(hint: Any) -> str:
    """Return a type in words of the syntax: `[str, ...]` is a list of texts."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        readable = [item for item in arguments if get_origin(item) is not Mapping]  # text has no mappings
        return " | ".join(map(type_text, readable))
    if origin is Literal:
        return " | ".join(map(option_text, arguments))
    if hint is type(None) or hint is None:
        return "None"
    if item := item_hint(hint):
        return f"[{type_text(item[0])}, ...]"
    if origin is tuple:
        return f"[{', '.join(map(type_text, arguments))}]"
    return "any" if hint is Any or hint is object else getattr(hint, "__name__", str(hint))


def item_hint(hint: Any) -> tuple[Any, ...]:
    """Return the type of the items of a list of any length as a tuple of one, or the empty tuple."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return arguments[:1] if arguments[1:] == (...,) else ()
    if origin in (list, frozenset, set, Sequence, Iterable, Collection):
        return arguments[:1]
    return ()


def option_type_names(hint: Any) -> tuple[str, ...]:
    """Return the names of the registered option types that are of a type: all strategies for `Strategy`."""
    load_pass_packages()  # option types come with the passes that take them
    return tuple(
        name for name in OPTION_TYPES if isinstance(hint, type) and _is_kind(OPTION_TYPES[name], hint)
    )


def _is_kind(cls: type, hint: type) -> bool:
    try:
        return issubclass(cls, hint)
    except TypeError:  # a protocol that is not `runtime_checkable`
        return False
