"""One candidate partition, as the search sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass

INVALID = math.inf
"""The cost of a piece that must never be part of a cover."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A set of nodes that one spec would run as a whole.

    Attributes:
        mask: Its nodes: bit i is node i. Must be convex: no path leaves it and comes back.
        spec: Name of the spec that runs it: a toolchain, the native compiler, the host.
        cost: Seconds of its inside alone, nothing of its boundary; None until it is measured;
            `INVALID` if it must not be used.
        bound: While the cost is None: seconds it costs at least.
    """

    mask: int
    spec: int
    cost: float | None = None
    bound: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be compared.

        Raises:
            ValueError: An empty mask, a negative spec, or a cost or bound that is negative or no number.
        """
        if self.mask <= 0 or self.spec < 0:
            raise ValueError(f"a piece needs nodes and a spec, found mask {self.mask:b}, spec {self.spec}")
        for seconds in (self.cost, self.bound):
            if seconds is not None and not seconds >= 0:
                raise ValueError(f"the cost of a piece is at least 0 seconds, found {seconds}")
        if math.isinf(self.bound):
            raise ValueError("the bound of a piece is finite; an invalid piece has cost INVALID")

    @property
    def is_known(self) -> bool:
        """Whether its cost was measured (or it was found invalid)."""
        return self.cost is not None

    @property
    def is_invalid(self) -> bool:
        """Whether it must never be part of a cover."""
        return self.cost == INVALID

    @property
    def floor(self) -> float:
        """Its cost, or what it costs at least."""
        return self.bound if self.cost is None else self.cost
