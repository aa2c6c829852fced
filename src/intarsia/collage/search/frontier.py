"""States of the search that have covered the same nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from intarsia.collage.search.precedence import Pairs

Entry: TypeAlias = tuple[float, "Entry | None", int]
"""A way to reach a state: its reduced cost, the entry it extends, the piece it adds."""

Extra: TypeAlias = tuple[int, tuple[tuple[int, int], ...], Pairs]
"""What else a state depends on: the specs used that are in some conflict, as a mask; the ports of placed
pieces whose value is not yet covered, as sorted pairs (value, port); what must come before what."""

State: TypeAlias = tuple[tuple[int, ...], Extra]
"""For each live value the class of its producer; and the rest."""

NOTHING: Extra = (0, (), ())


@dataclass(slots=True)
class Frontier:
    """All states with one set of covered nodes, and the ways found to reach them.

    Attributes:
        first: The first uncovered node.
        window: The covered nodes beyond it, shifted right by `first`.
        live: The covered values that an uncovered node consumes, ascending.
        states: For each state the cheapest entries, cheapest first.
    """

    first: int
    window: int
    live: tuple[int, ...]
    states: dict[State, list[Entry]] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """The least reduced cost of all entries."""
        return min(entries[0][0] for entries in self.states.values())

    def offer(self, state: State, entry: Entry, keep: int) -> None:
        """Remember an entry if it is among the `keep` cheapest of its state; earlier ones win ties."""
        entries = self.states.get(state)
        if entries is None:
            self.states[state] = [entry]
            return
        cost = entry[0]
        if len(entries) == keep and cost >= entries[-1][0]:
            return
        position = len(entries)
        while position and cost < entries[position - 1][0]:
            position -= 1
        entries.insert(position, entry)
        del entries[keep:]


def pieces_of(entry: Entry) -> tuple[int, ...]:
    """The pieces of an entry, sorted."""
    pieces = []
    step: Entry | None = entry
    while step is not None:
        _, before, piece = step
        if before is not None:
            pieces.append(piece)
        step = before
    return tuple(sorted(pieces))
