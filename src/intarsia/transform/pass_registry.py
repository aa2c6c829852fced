"""Passes by name: those of this package, and those of installed packages."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from typing import TypeVar

from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.pass_packages import load_pass_packages
from intarsia.transform.pass_store import PASSES

P = TypeVar("P", bound="type[Pass] | Pass")
T = TypeVar("T")


def register_pass(item: P) -> P:
    """Make a pass findable by its name; decorates a class of passes, or takes one pass.

    Raises:
        UsageError: The name is taken, or it is no pass.
    """
    if not isinstance(getattr(item, "info", None), PassInfo):
        raise UsageError(
            f"register_pass takes a pass or a class of passes, got {getattr(item, '__name__', item)!r}",
            help="below @register_pass belongs @module_pass, @function_pass or @prim_func_pass",
        )
    PASSES.register(item.info.name, item)
    return item


def create_pass(name: str, **options: object) -> Pass:
    """Create the pass of a name with options; `pass_syntax` has `get_pass`, which reads options in text too.

    Raises:
        UsageError: No pass of that name (the nearest are listed), or it has no such option.
    """
    registered = registered_pass(name)
    if isinstance(registered, Pass):
        if options:
            raise UsageError(f"pass {name!r} has no options, got {', '.join(options)}")
        return registered
    try:
        return registered(**options)
    except TypeError as error:
        problem = f"pass {name!r} cannot be made with {options}: {error}"
        raise UsageError(problem, help=f"its options: {_options_text(registered)}") from None


def _options_text(cls: type[Pass]) -> str:
    return ", ".join(item.name for item in fields(cls)) or "none" if is_dataclass(cls) else "none"


def registered_pass(name: str) -> type[Pass] | Pass:
    """What is registered under a name: a class of passes, or one pass.

    Raises:
        UsageError: No pass of that name.
    """
    registered: type[Pass] | Pass = look_up(PASSES, name)
    return registered


def look_up(registry: Registry[T], name: str) -> T:
    """What installed packages have registered under a name.

    Raises:
        UsageError: There is nothing of that name; packages that could not be loaded are named too.
    """
    # Importing all packages takes a second, which every process that compiles would spend for its own passes.
    if name in registry:
        return registry[name]
    broken = load_pass_packages()
    try:
        return registry[name]
    except UsageError as error:
        for reason in broken:
            error.add_note(f"could not be loaded: {reason}")
        raise


def has_pass(name: str) -> bool:
    """Whether there is a pass of that name."""
    if name not in PASSES:
        load_pass_packages()
    return name in PASSES


def pass_names() -> tuple[str, ...]:
    """Names of all passes."""
    load_pass_packages()
    return tuple(PASSES)


def holding_pass(name: str, item: type[Pass] | Pass) -> AbstractContextManager[type[Pass] | Pass]:
    """Register a pass under a name for the duration of a `with` block (for tests and experiments)."""
    return PASSES.holding(name, item)
