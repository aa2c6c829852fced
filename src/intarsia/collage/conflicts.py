"""Toolchains that must not live in one process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from intarsia.build.kernel_table import COMPILER
from intarsia.collage.candidates.candidate_partition import PartitionSpec
from intarsia.ir import Function, IRModule, post_order
from intarsia.toolchain import usable_toolchains

Conflicts: TypeAlias = frozenset[tuple[str, str]]
"""Pairs of toolchains, each in order of the alphabet."""


def declared_conflicts() -> Conflicts:
    """Pairs of toolchains of which one says that the other must not live in the same process."""
    return frozenset(
        (min(each.name, other), max(each.name, other))
        for each in usable_toolchains()
        for other in each.conflicts
    )


def are_in_conflict(toolchains: Iterable[str], others: Iterable[str], conflicts: Conflicts) -> bool:
    """Whether one of some toolchains is in conflict with one of the others."""
    pairs = [(one, other) for one in toolchains for other in others]
    return any((min(pair), max(pair)) in conflicts for pair in pairs)


def specs_beside(
    specs: Sequence[PartitionSpec], used: Iterable[str], conflicts: Conflicts
) -> list[PartitionSpec]:
    """The specs whose toolchain can live with those that are used already."""
    taken = tuple(used)
    return [spec for spec in specs if not are_in_conflict([spec.toolchain], taken, conflicts)]


def marked_toolchains(mod: IRModule) -> set[str]:
    """Those that parts of a module are marked for."""
    return {
        str(expr.attrs[COMPILER])
        for function in mod.graph_functions.values()
        for expr in post_order(function)
        if isinstance(expr, Function) and COMPILER in expr.attrs
    }
