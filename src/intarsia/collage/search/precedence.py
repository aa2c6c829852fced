"""Which pieces must come before which: how the search keeps quotient graphs acyclic.

Call a node an exit of a piece if its value is consumed outside, is an external result, or is consumed by
no node. Every piece is convex.

1. Pieces of one exit make no cycle. From each node of such a piece a path inside leads to its exit (any
   other node has consumers, all inside). A value that enters piece Q at node q thus has index
   < q <= exit(Q); along P1 -> P2 -> ... the indices of the exits grow, so the walk never returns.
   By the same paths, if all pieces of a cycle but one, P, have one exit, then a path of nodes leaves P and
   comes back, against P's convexity. So each cycle has at least two pieces of several exits.

2. What must be remembered. Contract the placed pieces, keep uncovered nodes as they are. If this graph has
   a cycle, so has the quotient of every complete cover that follows: contracting more nodes never opens a
   cycle through a placed piece. So it is refused at once, and at the end nothing is left to check. A later
   piece Q closes a cycle just if a path leaves Q and comes back. Q is convex, so the path is not one of
   nodes alone: it enters a placed piece P at one node and leaves it from another that the first does not
   lead to, and P has several exits. For each placed P of several exits the pair (before, after) is kept:
   the uncovered nodes with a path to P, and those with a path from P, when P was placed; nodes covered
   since are taken out, a pair with an empty side is dropped.

3. The pairs are enough: for each path from u to v, both uncovered, that is not one of nodes alone, some
   pair has u before and v after. Among the pieces where the path jumps in this way take the one placed last,
   P. The parts of the path before and after P jump at pieces placed earlier only. By induction a pair known
   when P was placed (or a path of nodes) led from u to P, so u went into before(P); likewise v into
   after(P). Hence before(Q) is the ancestors of Q with the `before` of each pair whose `after` meets Q, and
   Q closes a cycle just if it meets both sides of one pair.
"""

from __future__ import annotations

from intarsia.collage.search.node_sets import mask_of
from intarsia.collage.search.piece_table import PieceTable

Pairs = tuple[tuple[int, int], ...]


class Precedence:
    """Keeps the pairs (what comes before, what comes after) of placed pieces of several exits."""

    def __init__(self, table: PieceTable) -> None:
        self._table = table
        self._reach: dict[int, tuple[int, int]] = {}

    def extended(self, pairs: Pairs, piece: int, uncovered: int) -> Pairs | None:
        """The pairs after a piece was placed, or None if it would close a cycle.

        Args:
            pairs: The pairs before.
            piece: The index of the piece.
            uncovered: The mask of the nodes that are uncovered with the piece placed.
        """
        mask = self._table.problem.pieces[piece].mask
        if any(before & mask and after & mask for before, after in pairs):
            return None
        grown = set(pairs)
        if not self._table.footprints[piece].is_single_exit:
            before, after = self._around(piece)
            for pair_before, pair_after in pairs:
                if pair_after & mask:
                    before |= pair_before
                if pair_before & mask:
                    after |= pair_after
            grown.add((before, after))
        left = {(before & uncovered, after & uncovered) for before, after in grown}
        return _largest([pair for pair in left if all(pair)])

    def _around(self, piece: int) -> tuple[int, int]:
        """Everything a piece depends on, and everything that depends on it; itself not."""
        if piece not in self._reach:
            footprint, topology = self._table.footprints[piece], self._table.topology
            mask = self._table.problem.pieces[piece].mask
            outside = 0
            for value in footprint.leaving:
                outside |= topology.consumers[value]
            before = topology.above(mask_of([value for value, _ in footprint.inputs]))
            self._reach[piece] = (before, topology.below(outside & ~mask) & ~mask)
        return self._reach[piece]


def _largest(pairs: list[tuple[int, int]]) -> Pairs:
    """The pairs that no other pair contains, in a fixed order."""
    kept = [
        (before, after)
        for before, after in pairs
        if not any(
            before | one == one and after | other == other and (before, after) != (one, other)
            for one, other in pairs
        )
    ]
    return tuple(sorted(kept))
