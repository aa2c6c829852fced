"""Time, memory and optimality gap of the search for the cheapest cover of a graph.

Costs are mock costs, with three specs and boundary costs. The graphs are residual chains and Inception-like
graphs of width 4, with single nodes, fused groups of up to eight nodes and segments between cut points
(tests/cover_problems.py). Seconds are those of `search` alone, from the problem to the result; memory is the
peak of a fresh process, the problem included. The column `growth` divides the seconds by those of half the
size: 2.0 is linear. The second table has lazy search over the smaller graphs, with lower bounds of 0.7 to 1
times the cost: how many pieces it measures.
Takes about a minute. Usage: python -m benchmarks.collage_search [--json] [--seed N] [--quick]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from intarsia.collage.search import Infeasible, faults_of, lazy_search, search

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cover_problems import Operands, inception, network_problem, residual_chain

GRAPHS: dict[str, Callable[[int], Operands]] = {"residual chain": residual_chain, "inception": inception}
SIZES = (500, 600, 1000, 2000, 4000)
LAZY_SIZES = (100, 200)


@dataclass(frozen=True)
class Row:
    """One search.

    Attributes:
        graph: Name of the kind of graph.
        nodes: Number of nodes.
        pieces: Number of pieces that a cover can be made of.
        seconds: Time of the search.
        memory: Peak resident memory in MB.
        cost: Cost of the best cover in seconds.
        gap: Bound on how far the cost is above the optimum; 0.01 is one percent.
        is_exact: Whether the cover is proved to be optimal.
        expanded: Number of expanded search states.
        partitions: Number of pieces of the best cover.
    """

    graph: str
    nodes: int
    pieces: int
    seconds: float
    memory: float
    cost: float
    gap: float
    is_exact: bool
    expanded: int
    partitions: int


@dataclass(frozen=True)
class LazyRow:
    """One lazy search."""

    graph: str
    nodes: int
    pieces: int
    measured: int
    rounds: int
    seconds: float
    is_optimum: bool


def measure(graph: str, nodes: int, seed: int) -> Row:
    problem = network_problem(GRAPHS[graph](nodes), seed)
    start = time.perf_counter()
    result = search(problem)
    seconds = time.perf_counter() - start
    if isinstance(result, Infeasible):
        raise TypeError(str(result))
    if faults := faults_of(problem, result.best.pieces):
        raise ValueError("; ".join(faults))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    best = result.best
    return Row(
        graph,
        nodes,
        len(problem.pieces),
        seconds,
        memory,
        best.cost,
        result.gap,
        result.is_exact,
        result.expanded,
        len(best.pieces),
    )


def measure_lazily(graph: str, nodes: int, seed: int) -> LazyRow:
    problem = network_problem(GRAPHS[graph](nodes), seed)
    rng = random.Random(seed)
    unknown = (replace(piece, cost=None, bound=piece.floor * rng.uniform(0.7, 1)) for piece in problem.pieces)

    def look_up(numbers: Sequence[int]) -> Mapping[int, float | None]:
        return {piece: problem.pieces[piece].cost for piece in numbers}

    start = time.perf_counter()
    lazy = lazy_search(replace(problem, pieces=tuple(unknown)), look_up)
    seconds = time.perf_counter() - start
    full = search(problem)
    if isinstance(full, Infeasible) or isinstance(lazy.result, Infeasible):
        raise TypeError("no cover")
    same = lazy.result.best == full.best
    return LazyRow(graph, nodes, len(problem.pieces), len(lazy.costs), lazy.rounds, seconds, same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="up to 1000 nodes only")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= 1000 or not options.quick]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = [pool.submit(measure, graph, size, options.seed) for graph in GRAPHS for size in sizes]
        rows = [future.result() for future in futures]
    lazy = [measure_lazily(graph, size, options.seed) for graph in GRAPHS for size in LAZY_SIZES]
    if options.json:
        document = {"search": [asdict(row) for row in rows], "lazy": [asdict(row) for row in lazy]}
        print(json.dumps(document, indent=2))
        return
    _print_rows(rows)
    _print_lazy(lazy)


def _print_rows(rows: Sequence[Row]) -> None:
    heads = f"{'s':>6} {'growth':>7} {'MB':>5} {'gap':>8} {'exact':>6} {'states':>7}"
    print(f"{'graph':15} {'nodes':>6} {'pieces':>7} {heads}")
    seconds = {(row.graph, row.nodes): row.seconds for row in rows}
    for row in rows:
        half = seconds.get((row.graph, row.nodes // 2))
        growth = "" if half is None else f"{row.seconds / half:.2f}"
        print(
            f"{row.graph:15} {row.nodes:6} {row.pieces:7} {row.seconds:6.2f} {growth:>7} {row.memory:5.0f} "
            f"{row.gap:8.3%} {'yes' if row.is_exact else 'no':>6} {row.expanded:7}"
        )


def _print_lazy(rows: Sequence[LazyRow]) -> None:
    print(f"\n{'lazy':15} {'nodes':>6} {'pieces':>7} {'measured':>9} {'rounds':>7} {'s':>6} {'optimum':>8}")
    for row in rows:
        print(
            f"{row.graph:15} {row.nodes:6} {row.pieces:7} {row.measured:9} {row.rounds:7} {row.seconds:6.2f} "
            f"{'yes' if row.is_optimum else 'no':>8}"
        )


if __name__ == "__main__":
    main()
