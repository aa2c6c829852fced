"""Operators that this program has registered, in worker processes: they import the same modules."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from intarsia.op.operator_sources import registering_modules

Result = TypeVar("Result")


def with_operators(
    function: Callable[..., Result], arguments: tuple[object, ...]
) -> tuple[Callable[..., Result], tuple[object, ...]]:
    """Return a call for a worker that registers the operators of this process first.

    Args:
        function: Function of a module, which the worker calls.
        arguments: Its arguments.
    """
    modules = registering_modules()
    return (call_with_modules, (modules, function, arguments)) if modules else (function, arguments)


def call_with_modules(
    modules: tuple[str, ...], function: Callable[..., Result], arguments: tuple[object, ...]
) -> Result:
    """Import modules, and call a function.

    Raises:
        ImportError: A module cannot be imported here.
    """
    for name in modules:
        import_module(name)
    return function(*arguments)
