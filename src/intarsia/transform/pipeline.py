"""Sequences by name, such as "default_heuristic" (seed relax_pass_infra, D5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias, TypeVar

from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry
from intarsia.transform.pass_packages import load_pass_packages
from intarsia.transform.pass_registry import look_up
from intarsia.transform.sequential import Sequential

Pipeline: TypeAlias = Callable[[], Sequential]
F = TypeVar("F", bound=Pipeline)

_PIPELINES: Registry[Pipeline] = Registry("pipeline")


def register_pipeline(name: str) -> Callable[[F], F]:
    """Make a function that returns a sequence findable by name.

    >>> @register_pipeline("fold_only")
    ... def fold_only() -> Sequential:
    ...     return Sequential([FoldConstant()])

    Raises:
        UsageError: The name is taken, or missing.
    """
    if not isinstance(name, str):
        raise UsageError("a pipeline needs a name", help='write @register_pipeline("some_name")')

    def register(function: F) -> F:
        _PIPELINES.register(name, function)
        return function

    return register


def load_pass_sequence(name: str) -> Sequential:
    """The sequence of a name; `print` it to see what is in it, `explain` it to see what will run.

    Raises:
        UsageError: There is no such pipeline (the nearest names are listed), or it makes no `Sequential`.
    """
    sequence = look_up(_PIPELINES, name)()
    if not isinstance(sequence, Sequential):
        raise UsageError(
            f"pipeline {name!r} made a value of type {type(sequence).__name__}, expected a Sequential",
            help="return Sequential([...])",
        )
    return sequence.with_info(name=name)


def holding_pipeline(name: str, function: Pipeline) -> AbstractContextManager[Pipeline]:
    """Register a pipeline under a name for the duration of a `with` block (for tests and experiments)."""
    return _PIPELINES.holding(name, function)


def pipeline_names() -> tuple[str, ...]:
    """Names of all pipelines."""
    load_pass_packages()
    return tuple(_PIPELINES)
