"""What a search answers."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.search.cover import Cover


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How hard to search.

    Attributes:
        covers: Number of the cheapest covers that are wanted.
        budget: States to expand, over all passes. Up to here the search is exact; the pass in which it is
            used up ends at the first width. 0: one pass of the first width.
        width: States of a layer that the first pass keeps.
        growth: Each further pass keeps so many times more.
        sweeps: Pairs of sweeps, at most, that improve the lower bound before a pass.
    """

    covers: int = 1
    budget: int = 200_000
    width: int = 32
    growth: int = 8
    sweeps: int = 20

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant.

        Raises:
            ValueError: No cover wanted, no width, or no growth.
        """
        if self.covers < 1 or self.width < 1 or self.growth < 2 or self.budget < 0 or self.sweeps < 1:
            raise ValueError(f"covers, width and sweeps are at least 1, growth at least 2, found {self}")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cheapest covers that were found.

    Attributes:
        covers: Cheapest first; as many as wanted, or all there are.
        lower_bound: Seconds that every cover costs at least.
        is_exact: Whether these are proven to be the cheapest covers, up to ties within rounding.
        expanded: Number of states that were expanded.
        passes: Number of passes.
    """

    covers: tuple[Cover, ...]
    lower_bound: float
    is_exact: bool
    expanded: int
    passes: int

    @property
    def best(self) -> Cover:
        """The cheapest cover."""
        return self.covers[0]

    @property
    def gap(self) -> float:
        """The part of the best cover's cost by which it may miss the optimum: 0.01 is one percent."""
        return (self.best.cost - self.lower_bound) / self.best.cost if self.best.cost else 0.0


@dataclass(frozen=True, slots=True)
class Infeasible:
    """There is no cover, or none was found.

    Attributes:
        uncovered: Nodes that no piece contains.
        only_invalid: Nodes that only invalid pieces contain.
        cut_off: Nodes whose valid pieces all consume a value that no piece can produce beside them.
        stuck_at: First node that the longest partial cover lacks, where the nodes can be covered one by one
            but not together.
        is_proven: False if the search gave up before it had tried everything.
    """

    uncovered: tuple[int, ...] = ()
    only_invalid: tuple[int, ...] = ()
    cut_off: tuple[int, ...] = ()
    stuck_at: int | None = None
    is_proven: bool = True

    def __str__(self) -> str:
        """The reason, in a sentence for each kind."""
        reasons = [
            (self.uncovered, "no candidate contains {}"),
            (self.only_invalid, "only invalid candidates contain {}"),
            (self.cut_off, "every candidate at {} consumes a value that no candidate produces beside it"),
        ]
        texts = [text.format(_nodes(nodes)) for nodes, text in reasons if nodes]
        if self.stuck_at is not None:
            texts.append(f"the candidates do not fit together at node {self.stuck_at}")
        if not self.is_proven:
            texts.append("the search ended before it had tried everything")
        return "no cover: " + "; ".join(texts)


def _nodes(nodes: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, nodes[:10]))
    rest = f" and {len(nodes) - 10} more" if len(nodes) > 10 else ""
    return f"{'node' if len(nodes) == 1 else 'nodes'} {shown}{rest}"
