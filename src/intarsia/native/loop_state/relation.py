"""Relations between old and new loops, from which the values of axes are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """A split of a loop into nested loops.

    With factors, parent = ((p0 * l1 + p1) * l2 + p2) ..., and part 0 has as many iterations as needed. With
    numbers of parts, part i has l(i) iterations over pieces of ceil(rest / l(i)) elements, and the innermost
    part iterates over the last piece.

    Attributes:
        parent: Name of the split loop.
        extent: Extent of the split loop, None if unknown.
        parts: Names of the new loops, outermost first, one more than `lengths`.
        lengths: Lengths of the step; None for a length that is not chosen yet.
        inner_to_outer: Whether `lengths` belong to parts 1 ... (factors), or to parts 0 ... (numbers of
            parts).
    """

    parent: str
    extent: int | None
    parts: tuple[str, ...]
    lengths: tuple[int | None, ...]
    inner_to_outer: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all loops of the relation."""
        return (self.parent, *self.parts)


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """A fusion of loops: fused = (p0 * extent(p1) + p1) * extent(p2) + p2 ...

    Attributes:
        fused: Name of the fused loop.
        parts: Names of the loops, outermost first; () for a new loop of one iteration.
        extents: Extents of the parts, None if unknown.
    """

    fused: str
    parts: tuple[str, ...]
    extents: tuple[int | None, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all loops of the relation."""
        return (self.fused, *self.parts)


Relation: TypeAlias = SplitRelation | FuseRelation
