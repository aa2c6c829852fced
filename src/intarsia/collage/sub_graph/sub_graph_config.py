"""Which shapes of sub-graphs are allowed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SubGraphConfig:
    """Limits that a rule sets; the default is what one kernel with one result is (seed collage_rfc).

    Attributes:
        max_exits: The largest number of results; 0 for any number.
        max_depth: The largest number of nodes on a path through the sub-graph; 0 for any number.
        allow_taps: Whether a result may be used inside of the sub-graph, too.

    Raises:
        ValueError: A negative number.
    """

    max_exits: int = 1
    max_depth: int = 0
    allow_taps: bool = False

    def __post_init__(self) -> None:
        """Refuse negative limits."""
        if self.max_exits < 0 or self.max_depth < 0:
            raise ValueError(f"a limit is negative in {self}; 0 stands for no limit")


ANY_SHAPE = SubGraphConfig(max_exits=0, max_depth=0, allow_taps=True)
"""No limits: all that can become a function at all."""
