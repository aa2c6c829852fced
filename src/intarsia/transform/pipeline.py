"""Sequences by name, such as "default_heuristic" (seed relax_pass_infra, D5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from intarsia.support.registry import Registry
from intarsia.transform.pass_registry import load_pass_packages, look_up
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
        UsageError: The name is taken.
    """

    def register(function: F) -> F:
        _PIPELINES.register(name, function)
        return function

    return register


def load_pass_sequence(name: str) -> Sequential:
    """The sequence of a name; `print` it to see what is in it, `explain` it to see what will run.

    Raises:
        UsageError: There is no such pipeline; the nearest names are listed.
    """
    sequence = look_up(_PIPELINES, name)()
    sequence.info = sequence.with_info(name=name).info
    return sequence


def pipeline_names() -> tuple[str, ...]:
    """Names of all pipelines."""
    load_pass_packages()
    return tuple(_PIPELINES)
