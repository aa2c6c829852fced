"""Passes by name: those of this package, and those of installed packages."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry
from intarsia.transform.compiler_pass import Pass

P = TypeVar("P", bound="type[Pass] | Pass")
T = TypeVar("T")

ENTRY_POINTS = "intarsia.passes"
"""Entry points of this group name modules; importing one registers its passes and pipelines."""

_PASSES: Registry[type[Pass] | Pass] = Registry("pass")


def register_pass(item: P) -> P:
    """Make a pass findable by its name; decorates a class of passes, or takes one pass.

    Raises:
        UsageError: The name is taken.
    """
    _PASSES.register(item.info.name, item)
    return item


def get_pass(name: str, **options: object) -> Pass:
    """The pass of a name, made with options.

    Raises:
        UsageError: No pass of that name (the nearest are listed), or it has no such option.
    """
    found = registered_pass(name)
    if isinstance(found, Pass):
        if options:
            raise UsageError(f"pass {name!r} has no options, got {', '.join(options)}")
        return found
    try:
        return found(**options)
    except TypeError as error:
        raise UsageError(f"pass {name!r} cannot be made with {options}: {error}") from None


def registered_pass(name: str) -> type[Pass] | Pass:
    """What is registered under a name: a class of passes, or one pass.

    Raises:
        UsageError: No pass of that name.
    """
    return look_up(_PASSES, name)


def look_up(registry: Registry[T], name: str) -> T:
    """What installed packages have registered under a name.

    Raises:
        UsageError: There is nothing of that name; packages that could not be loaded are named too.
    """
    broken = load_pass_packages()
    try:
        return registry[name]
    except UsageError as error:
        for reason in broken:
            error.add_note(f"could not be loaded: {reason}")
        raise


def has_pass(name: str) -> bool:
    """Whether there is a pass of that name."""
    load_pass_packages()
    return name in _PASSES


def pass_names() -> tuple[str, ...]:
    """Names of all passes."""
    load_pass_packages()
    return tuple(_PASSES)


def holding_pass(name: str, item: type[Pass] | Pass) -> AbstractContextManager[type[Pass] | Pass]:
    """Register a pass under a name for the duration of a `with` block (for tests and experiments)."""
    return _PASSES.holding(name, item)


@cache
def load_pass_packages() -> tuple[str, ...]:
    """Import every installed package that announces passes, once; returns those that fail, and why.

    Ours come first, so that a package that takes one of their names is the one that fails.
    """
    broken = []
    points = entry_points(group=ENTRY_POINTS)
    for point in sorted(points, key=lambda point: (not point.value.startswith("intarsia."), point.value)):
        try:
            point.load()
        except Exception as error:  # a broken package must not take the others down
            broken.append(f"{point.value}: {error}")
    return tuple(broken)
