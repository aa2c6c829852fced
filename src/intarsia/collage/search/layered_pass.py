"""One pass over the nodes that extends partial covers, layer by layer."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from intarsia.collage.search.dominance import Dominance
from intarsia.collage.search.frontier import NOTHING, Entry, Extra, Frontier, State, pieces_of
from intarsia.collage.search.node_sets import first_outside
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.precedence import Precedence
from intarsia.collage.search.prices import Prices


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass found.

    Attributes:
        covers: The cheapest covers below the ceiling, each as sorted indices of pieces; cheapest first.
        dropped: The least reduced cost of what was dropped for want of width; infinite if nothing was.
        expanded: Number of states that were expanded.
        farthest: The last node at which a state was expanded.
    """

    covers: tuple[tuple[int, ...], ...]
    dropped: float
    expanded: int
    farthest: int


class LayeredPass:
    """Extends states at their first uncovered node, in the order of that node.

    Every piece placed at node i has i as its smallest node, so each cover is reached in exactly one way, a
    state of layer i is complete when layer i begins, and is expanded once, at its least cost. States that
    agree in covered nodes, classes of the producers of live values, open ports, open precedences and
    conflicting specs have the same completions at the same cost: they are merged. Costs are reduced costs
    (`Prices`), at least 0, so cost <= ceiling is A*'s test f <= incumbent: with the incumbent optimal,
    the expanded states are those that A* would expand. Without a limit of width that binds, the pass is
    exact; else what it dropped bounds what it missed.
    """

    def __init__(
        self, table: PieceTable, prices: Prices, precedence: Precedence, ceiling: float, keep: int
    ) -> None:
        """Prepare a pass.

        Args:
            table: The pieces.
            prices: Their reduced costs.
            precedence: Keeps quotients acyclic.
            ceiling: States above this reduced cost are of no interest.
            keep: Number of covers that are wanted.
        """
        self._table = table
        self._prices = prices
        self._precedence = precedence
        self._ceiling = ceiling
        self._keep = keep
        self._dominance = Dominance(table, prices, keep)
        self._conflicts = table.conflicting()
        self._layers: list[dict[int, Frontier]] = [{} for _ in range(table.problem.size + 1)]
        self._dropped = math.inf
        self._starting: dict[int, list[int]] = defaultdict(list)
        for piece in sorted(prices.pieces, key=lambda piece: (prices.pieces[piece], piece)):
            self._starting[table.footprints[piece].low].append(piece)

    def run(self, width: int, narrow: int, budget: int) -> PassResult:
        """Run it once.

        Args:
            width: Number of states of a layer that are expanded.
            narrow: The width once the budget is used up.
            budget: Number of states that are expanded at full width.
        """
        size, expanded, farthest = self._table.problem.size, 0, 0
        self._layers[0][0] = Frontier(0, 0, (), {((), NOTHING): [(0.0, None, -1)]})
        for node in range(size):
            layer = list(self._layers[node].values())
            self._layers[node] = {}
            if layer:
                farthest = node
                for frontier in layer:
                    self._dominance.thin(frontier)
                expanded += self._limit(layer, width if expanded < budget else min(width, narrow))
                for frontier in layer:
                    self._expand(frontier)
        final = [entries for end in self._layers[size].values() for entries in end.states.values()]
        found = sorted((entry for entries in final for entry in entries), key=lambda entry: entry[0])
        covers = tuple(pieces_of(entry) for entry in found[: self._keep])
        return PassResult(covers, self._dropped, expanded, farthest)

    def _limit(self, layer: list[Frontier], width: int) -> int:
        """Keep the cheapest states of a layer; return how many there are."""
        count = sum(len(frontier.states) for frontier in layer)
        if count <= width:
            return count
        costs = [
            (entries[0][0], order, state)
            for order, frontier in enumerate(layer)
            for state, entries in frontier.states.items()
        ]
        costs.sort(key=lambda item: item[:2])
        self._dropped = min(self._dropped, costs[width][0])
        for _, order, state in costs[width:]:
            del layer[order].states[state]
        return width

    def _expand(self, frontier: Frontier) -> None:
        """Place every piece that fits at the first uncovered node."""
        if not frontier.states:
            return
        room = self._ceiling - frontier.best
        for piece in self._starting[frontier.first]:
            if self._prices.pieces[piece] > room:
                break  # the pieces are sorted by reduced cost
            if not self._table.footprints[piece].local & frontier.window:
                self._place(frontier, piece)

    def _place(self, frontier: Frontier, piece: int) -> None:
        """Extend all states of a frontier by one piece."""
        position_of = {value: position for position, value in enumerate(frontier.live)}
        reads, waits = [], []
        for value, port in self._table.inputs[piece]:
            if value in position_of:
                reads.append((position_of[value], self._prices.regrets[port]))
            else:
                waits.append((value, port))
        target = self._target(frontier, piece)
        sources = [position_of.get(value, -1) for value in target.live]  # -1: the piece itself
        producer = (self._table.classes[self._table.spec_of(piece)],)
        moves: dict[Extra, tuple[float, Extra] | None] = {}
        for (classes, extra), entries in frontier.states.items():
            if extra not in moves:
                moves[extra] = self._move(extra, piece, waits, target)
            move = moves[extra]
            if move is None:
                continue
            added = self._prices.pieces[piece] + move[0]
            for position, regrets in reads:
                added += regrets[classes[position]]
            if entries[0][0] + added <= self._ceiling:
                known = classes + producer
                state = (tuple([known[source] for source in sources]), move[1])
                self._offer(target, state, entries, added, piece)

    def _offer(self, target: Frontier, state: State, entries: list[Entry], added: float, piece: int) -> None:
        for entry in entries:
            cost = entry[0] + added
            if cost > self._ceiling:
                break
            target.offer(state, (cost, entry, piece), self._keep)
        if target.states:
            self._layers[target.first][target.window] = target

    def _target(self, frontier: Frontier, piece: int) -> Frontier:
        """The frontier that a piece leads to, a new one if need be."""
        footprint = self._table.footprints[piece]
        window = frontier.window | footprint.local
        step = first_outside(window)
        first, window = frontier.first + step, window >> step
        known = self._layers[first].get(window)
        if known is not None:
            return known
        consumers = self._table.topology.consumers
        live = [
            value for value in (*frontier.live, *footprint.leaving) if (consumers[value] >> first) & ~window
        ]
        return Frontier(first, window, tuple(sorted(live)))

    def _move(
        self, extra: Extra, piece: int, waits: list[tuple[int, int]], target: Frontier
    ) -> tuple[float, Extra] | None:
        """What a piece costs by ports that waited for its values, and what else changes; None if refused."""
        used, pending, pairs = extra
        spec, mask = self._table.spec_of(piece), self._table.problem.pieces[piece].mask
        if self._conflicts[spec] & used:
            return None
        if self._conflicts[spec]:
            used |= 1 << spec
        cost = 0.0
        if pending:
            producer = self._table.classes[spec]
            for value, port in pending:
                if mask >> value & 1:
                    cost += self._prices.regrets[port][producer]
            pending = tuple([wait for wait in pending if not mask >> wait[0] & 1])
        if waits:
            pending = tuple(sorted((*pending, *waits)))
        if pairs or not self._table.footprints[piece].is_single_exit:
            uncovered = ((1 << self._table.problem.size) - 1) >> target.first & ~target.window
            extended = self._precedence.extended(pairs, piece, uncovered << target.first)
            if extended is None:
                return None
            pairs = extended
        return cost, (used, pending, pairs)
