"""Pattern tables: groups of operators that a toolchain runs as one (seed collage_rfc, pattern style)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from intarsia.ir.pattern import ExprPattern, Match
from intarsia.op.operator_predicate import operator_predicate
from intarsia.support.registry import Registry


def _always(_: Match) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class CompositePattern:
    """One row of a table.

    Attributes:
        name: The toolchain's name for the group, such as "conv_relu"; functions carry it in their attribute
            Composite, behind the toolchain's name: "acme.conv_relu".
        pattern: Pattern to look for.
        check: Decides on each match what the pattern cannot say.
    """

    name: str
    pattern: ExprPattern
    check: Callable[[Match], bool] = _always


PatternTable: TypeAlias = tuple[CompositePattern, ...]

_TABLES: Registry[PatternTable] = Registry("pattern table")

holding_pattern_table = _TABLES.holding
"""Register a table for the duration of a `with` block, even if there is one (tests, experiments)."""


def register_pattern_table(toolchain: str, patterns: Iterable[CompositePattern]) -> PatternTable:
    """Say which groups a toolchain runs as one; where several rows fit, the first wins.

    Raises:
        UsageError: The toolchain has another table already.
    """
    return _TABLES.register(toolchain, tuple(patterns))


def pattern_table(toolchain: str) -> PatternTable:
    """The table of a toolchain; empty if it has none, as those have that take any graph.

    Raises:
        UsageError: No toolchain has that name; the nearest names are listed.
    """
    if toolchain in _TABLES:
        return _TABLES[toolchain]
    operator_predicate(toolchain)  # loads its package, which may register a table
    return _TABLES[toolchain] if toolchain in _TABLES else ()  # noqa: SIM401 - a registry is no dict


@runtime_checkable
class HasPatterns(Protocol):
    """A toolchain's class with a table of groups beside its operator predicate."""

    def patterns(self) -> PatternTable:
        """Return the table."""


def composite_name(toolchain: str, name: str) -> str:
    """The value of the attribute Composite."""
    return f"{toolchain}.{name}"


def composite_toolchain(composite: object) -> str | None:
    """The toolchain that a value of the attribute Composite names; None where it names none."""
    toolchain, dot, _ = str(composite).partition(".")
    return toolchain if dot else None
