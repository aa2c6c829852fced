"""How loops came from others, so that the value of an axis can be told from the loops that are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """A loop was split into others, named in the order of nesting.

    With factors, parent = ((p0 * l1 + p1) * l2 + p2) ...; part 0 counts as far as is needed. With numbers of
    parts, part i counts to l(i) over pieces of the ceiling of what is left by l(i), and the innermost part
    counts inside the last piece.

    Attributes:
        parent: The loop's name.
        extent: Its extent, None where not known.
        parts: The names of what it became, outermost first, one more than `lengths`.
        lengths: As in the step; None is not chosen yet.
        inner_to_outer: Whether `lengths` are of parts 1 ... (factors), or of parts 0 ... (numbers of parts).
    """

    parent: str
    extent: int | None
    parts: tuple[str, ...]
    lengths: tuple[int | None, ...]
    inner_to_outer: bool

    @property
    def names(self) -> tuple[str, ...]:
        """All loops that it is about."""
        return (self.parent, *self.parts)


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """Loops were fused: fused = (p0 * extent(p1) + p1) * extent(p2) + p2 ...

    Attributes:
        fused: The name of what they became.
        parts: The loops' names, outermost first; () of a loop of one iteration.
        extents: Of the parts, None where not known.
    """

    fused: str
    parts: tuple[str, ...]
    extents: tuple[int | None, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All loops that it is about."""
        return (self.fused, *self.parts)


Relation: TypeAlias = SplitRelation | FuseRelation
