"""A lower bound on every cover, and the prices that prove it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.prices import Prices

NEAR = 16
"""How many positions around a node are looked at for the level of the shortest path there."""

GAIN = 1e-4
CLOSING = 0.05


class DualBound:
    """A feasible solution of the dual of the covering problem, improved by sweeps.

    Relaxation. Each piece is cut into its runs of consecutive nodes; each run is an arc (start, end) with a
    share of the piece's cost. A cover is then a path of arcs from 0 to n, so a shortest path is a lower
    bound. What the path leaves out is priced:

    * An edge e = (v, w) has a price y[e][a] for each class a of producers. A piece that contains v but not
      w earns y[e][its class]; a piece Q that contains w but not v pays
      min over a of (transition(a, Q) + sum of y[e'][a] over the edges e' from v into Q). In a cover both
      speak of the same class a, so the prices cancel and what is left is at most the real transition: the
      bound holds for any prices.
    * Shares of a piece of several runs may be moved between its runs: their sum stays.

    Sweeps. Forward over the nodes: at each edge, what producers of one class cost more than producers of
    the cheapest one (through the best path before and after them) is moved to the consumers, by raising
    y[e][a]; backward the other way round. The shares are moved along in the same manner, but by halves: moved
    as a whole they only wander to and fro, and the bound gets stuck up to 10 % lower. Each move keeps the
    bound or raises it. These are the messages of sequential reweighted message passing (Kolmogorov,
    "Convergent tree-reweighted message passing", 2006), here with paths of arcs in place of trees. On a
    chain one forward sweep gives the optimum itself.

    A sweep takes time linear in the sum over pieces of their inputs and outgoing edges.
    """

    def __init__(self, table: PieceTable, floors: Sequence[float]) -> None:
        """Start with all prices zero.

        Args:
            table: The pieces.
            floors: For each piece of the problem its cost, or what it costs at least.
        """
        self._table = table
        self._size = table.problem.size
        self._start: list[int] = []
        self._end: list[int] = []
        self._cost: list[float] = []
        self._arcs_of: dict[int, range] = {}
        self._sibling: list[bool] = []  # whether the next arc is of the same piece
        self._ending: list[list[int]] = [[] for _ in range(self._size + 1)]
        self._starting: list[list[int]] = [[] for _ in range(self._size + 1)]
        self._prices = [[0.0] * table.class_count for _ in table.edges]
        self._rows = [list(port.costs) for port in table.ports]
        self._lowest = [min(row) for row in self._rows]
        self._port_arcs: list[list[int]] = [[] for _ in table.ports]
        self._ports_of: list[list[int]] = [[] for _ in table.edges]
        self._producers: list[list[list[int]]] = [[[] for _ in prices] for prices in self._prices]
        for number, port in enumerate(table.ports):
            for edge in port.edges:
                self._ports_of[edge].append(number)
        for piece in table.usable:
            self._add(piece, floors[piece])
        self._before = [math.inf] * (self._size + 1)
        self._after = [math.inf] * (self._size + 1)
        self.settle()

    def _add(self, piece: int, floor: float) -> None:
        """Cut a piece into arcs, its cost shared by length."""
        footprint = self._table.footprints[piece]
        arcs = range(len(self._start), len(self._start) + len(footprint.runs))
        self._arcs_of[piece] = arcs
        per_node = (floor + self._table.outer_costs[piece]) / footprint.local.bit_count()
        for arc, (start, end) in zip(arcs, footprint.runs, strict=True):
            self._start.append(start)
            self._end.append(end)
            self._cost.append(per_node * (end - start))
            self._sibling.append(arc + 1 < arcs.stop)
            self._starting[start].append(arc)
            self._ending[end].append(arc)
        for _, port in self._table.inputs[piece]:
            consumer = self._table.edges[self._table.ports[port].edges[0]][1]
            arc = self._arc_at(arcs, consumer)
            self._port_arcs[port].append(arc)
            self._cost[arc] += self._lowest[port]
        producer_class = self._table.classes[self._table.spec_of(piece)]
        for edge in self._table.open_edges[piece]:
            arc = self._arc_at(arcs, self._table.edges[edge][0])
            self._producers[edge][producer_class].append(arc)

    def _arc_at(self, arcs: range, node: int) -> int:
        if len(arcs) == 1:
            return arcs.start
        return next(arc for arc in arcs if self._start[arc] <= node < self._end[arc])

    @property
    def value(self) -> float:
        """Seconds that every cover costs at least; infinite if there is none."""
        return self._after[0]

    @property
    def farthest(self) -> int:
        """The last position that a path of arcs from the first node reaches."""
        return max(place for place, path in enumerate(self._before) if path < math.inf)

    def raise_cost(self, piece: int, seconds: float) -> None:
        """A piece costs more than was assumed (infinite: it is invalid). `settle` or sweep afterwards."""
        self._cost[self._arcs_of[piece].start] += seconds

    def settle(self) -> None:
        """Recompute the shortest paths with the prices as they are."""
        self._before = [math.inf] * (self._size + 1)
        self._before[0] = 0.0
        for node in range(1, self._size + 1):
            paths = [self._before[self._start[arc]] + self._cost[arc] for arc in self._ending[node]]
            self._before[node] = min(paths, default=math.inf)
        self._after = [math.inf] * (self._size + 1)
        self._after[self._size] = 0.0
        for node in reversed(range(self._size)):
            paths = [self._after[self._end[arc]] + self._cost[arc] for arc in self._starting[node]]
            self._after[node] = min(paths, default=math.inf)

    def improve(self, sweeps: int, goal: float = math.inf, *, stalls: bool = True) -> None:
        """Sweep forward and backward until the bound reaches the goal or stalls.

        Args:
            sweeps: Pairs of sweeps at most.
            goal: The cost of a known cover: more cannot be had.
            stalls: Whether to stop when a pair of sweeps gains less than `GAIN` of the bound or, with a
                finite goal, closes less than `CLOSING` of the gap.
        """
        for _ in range(sweeps):
            last = self.value
            if not math.isfinite(last) or last >= goal:
                break
            self._sweep_forward()
            self._sweep_backward()
            least = GAIN * last if math.isinf(goal) else CLOSING * (goal - last)
            if stalls and self.value - last <= least:
                break
        self.settle()

    def _sweep_forward(self) -> None:
        before, after, cost, start = self._before, self._after, self._cost, self._start
        for node in range(self._size):
            self._push(tuple(self._table.edges_out[node].values()))
            usual = self._shortest_through(node - NEAR, node + 1)
            shortest = math.inf
            for arc in self._ending[node + 1]:
                path = before[start[arc]] + cost[arc]
                if self._sibling[arc]:
                    path -= self._move_share(arc, arc + 1, path + after[node + 1] - usual)
                shortest = min(shortest, path)
            before[node + 1] = shortest

    def _sweep_backward(self) -> None:
        before, after, cost, end = self._before, self._after, self._cost, self._end
        for node in reversed(range(self._size)):
            self._pull(tuple(self._table.edges_in[node]))
            usual = self._shortest_through(node + 1, node + 2 + NEAR)
            shortest = math.inf
            for arc in self._starting[node]:
                path = cost[arc] + after[end[arc]]
                if arc and self._sibling[arc - 1]:
                    path -= self._move_share(arc, arc - 1, path + before[node] - usual)
                shortest = min(shortest, path)
            after[node] = shortest

    def _shortest_through(self, first: int, stop: int) -> float:
        """The shortest path through one of these positions: the optimum, unless an arc skips them all."""
        places = range(max(first, 0), min(stop, self._size + 1))
        return min([self._before[place] + self._after[place] for place in places])

    def _move_share(self, giver: int, taker: int, slack: float) -> float:
        """Move half of what an arc costs above the optimum to another arc of its piece; return how much."""
        if not 0 < slack < math.inf:
            return 0.0
        moved = slack / 2
        self._cost[giver] -= moved
        self._cost[taker] += moved
        return moved

    def _push(self, edges: Sequence[int]) -> None:
        """Move the differences between producers to the consumers, an equal part along each edge."""
        for left, edge in zip(range(len(edges), 0, -1), edges, strict=True):
            best = [self._cheapest(arcs) for arcs in self._producers[edge]]
            self._reprice(edge, best, 1 / left)

    def _pull(self, edges: Sequence[int]) -> None:
        """Move the differences between the classes that consumers want to the producers."""
        for left, edge in zip(range(len(edges), 0, -1), edges, strict=True):
            best = [math.inf] * self._table.class_count
            for port in self._ports_of[edge]:
                rest = self._cheapest(self._port_arcs[port]) - self._lowest[port]
                for number, cost in enumerate(self._rows[port]):
                    best[number] = min(best[number], rest + cost)
            self._reprice(edge, best, -1 / left)

    def _cheapest(self, arcs: Sequence[int]) -> float:
        """The least cost of a path through one of these arcs."""
        before, after, cost, start, end = self._before, self._after, self._cost, self._start, self._end
        return min([before[start[arc]] + cost[arc] + after[end[arc]] for arc in arcs], default=math.inf)

    def _reprice(self, edge: int, best: Sequence[float], part: float) -> None:
        """Raise the prices of an edge by a part of what each class costs more than the cheapest."""
        lowest = min(best)
        if not math.isfinite(lowest):
            return
        steps = [(cost - lowest) * part if math.isfinite(cost) else 0.0 for cost in best]
        if not any(steps):
            return
        for number, step in enumerate(steps):
            if step:
                self._prices[edge][number] += step
                for arc in self._producers[edge][number]:
                    self._cost[arc] -= step
        for port in self._ports_of[edge]:
            row = self._rows[port]
            for number, step in enumerate(steps):
                row[number] += step
            lowest = min(row)
            change = lowest - self._lowest[port]
            if change:
                self._lowest[port] = lowest
                for arc in self._port_arcs[port]:
                    self._cost[arc] += change

    def excess(self) -> dict[int, float]:
        """For each usable piece what a cover with it costs beyond the bound, at least."""
        before, after, cost, start, end = self._before, self._after, self._cost, self._start, self._end
        return {
            piece: max([before[start[arc]] + cost[arc] + after[end[arc]] for arc in arcs]) - self.value
            for piece, arcs in self._arcs_of.items()
        }

    def prices(self, ceiling: float) -> Prices:
        """The prices as the search needs them, without pieces that make a cover dearer than the ceiling.

        Call after `improve` or `settle`.
        """
        after, cost, start, end = self._after, self._cost, self._start, self._end
        reduced: dict[int, float] = {}
        for piece, excess in self.excess().items():
            if excess <= ceiling - self.value and excess < math.inf:
                steps = [cost[arc] - after[start[arc]] + after[end[arc]] for arc in self._arcs_of[piece]]
                reduced[piece] = max(0.0, sum(steps))
        regrets = [
            tuple([cost - lowest for cost in row])
            for row, lowest in zip(self._rows, self._lowest, strict=True)
        ]
        return Prices(self.value, reduced, regrets, [tuple(prices) for prices in self._prices])
