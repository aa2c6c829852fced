"""What the search pays: costs reduced by a lower bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Reduced costs, all at least 0. A cover costs the bound plus what its pieces and crossings cost here.

    Attributes:
        bound: Seconds that every cover costs at least.
        pieces: The pieces still worth a try, with their reduced costs.
        regrets: For each port and class of producer what the crossing costs beyond what the port's piece
            has already paid.
        edges: For each edge and class of producer the price within the reduced costs.
    """

    bound: float
    pieces: Mapping[int, float]
    regrets: Sequence[tuple[float, ...]]
    edges: Sequence[tuple[float, ...]]
