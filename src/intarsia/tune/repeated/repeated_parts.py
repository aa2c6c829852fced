"""The equal blocks of a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from intarsia.ir import IRModule, Var
from intarsia.passes.regions.outline import Outline
from intarsia.tune.repeated.repeated_block import RepeatedBlock
from intarsia.tune.repeated.runs import Run, find_runs
from intarsia.tune.repeated.value_graph import ValueGraph, operands

LEAST_OPERATORS = 2
"""Default minimum of operators of a part; smaller periods are joined, since one operator has few choices."""


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedPart:
    """Parts of @main that differ in the values of weights only.

    Attributes:
        digest: Digest of an occurrence without the values of weights.
        operators: Number of calls of operators and functions in an occurrence.
        occurrences: The occurrences as functions with their arguments and outputs, in evaluation order.
    """

    digest: str
    operators: int
    occurrences: tuple[Outline, ...]

    @property
    def module(self) -> IRModule:
        """The first occurrence as a program of its own."""
        return IRModule.from_expr(self.occurrences[0].function)


def repeated_parts(mod: IRModule, least_operators: int = LEAST_OPERATORS) -> tuple[RepeatedPart, ...]:
    """The parts of @main that follow each other and are equal: layers, or blocks of a network.

    The parts do not overlap. Of several decompositions, a greedy choice takes the parts that save most
    tuning first. A program with lets, branches or closures has none. About n log^2 n in the program.

    Args:
        mod: The program; types that are missing are inferred.
        least_operators: Minimum number of calls in a part.

    Returns:
        The parts, those that save most first. The result depends on the program's structure alone, so that it
        is the same in every process.
    """
    graph = ValueGraph.of(mod)
    if graph is None:
        return ()
    rows = [_Row.of(graph, chain) for chain in _chains(graph)]
    runs = [(row, run) for row in rows for run in find_runs(row.symbols)]
    runs.sort(key=lambda item: -item[0].saved(item[1]))
    taken: set[int] = set()
    blocks_by_digest: dict[str, list[RepeatedBlock]] = {}
    for row, run in runs:
        for digest, blocks in row.equal_blocks(run, least_operators, taken).items():
            if len(blocks) > 1:
                blocks_by_digest.setdefault(digest, []).extend(blocks)
                taken.update(at for block in blocks for at in block.members)
    order = sorted(blocks_by_digest.items(), key=lambda item: -item[1][0].operators * (len(item[1]) - 1))
    return tuple(_part(digest, blocks) for digest, blocks in order)


def _part(digest: str, blocks: list[RepeatedBlock]) -> RepeatedPart:
    ordered = sorted(blocks, key=lambda block: block.members[-1])
    return RepeatedPart(digest, ordered[0].operators, tuple(block.outline for block in ordered))


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A dominator chain, with the blocks between neighbouring values as symbols.

    Attributes:
        graph: The value graph.
        chain: Numbers of the chain's values, from the last to the first in evaluation order.
        symbols: A number for each block of the chain, equal for equal blocks.
        operators: Number of calls in each block.
    """

    graph: ValueGraph
    chain: tuple[int, ...]
    symbols: tuple[int, ...]
    operators: tuple[int, ...]

    @classmethod
    def of(cls, graph: ValueGraph, chain: tuple[int, ...]) -> _Row:
        """Return the row of a chain.

        A block with more than half of the chain's values cannot repeat and is skipped. So each value is
        visited at most log n times over all chains.
        """
        symbol_of: dict[str, int] = {}
        fresh, symbols, operators = count(), list[int](), list[int]()
        for at, top in enumerate(chain):
            if isinstance(graph.values[top], Var):
                break
            bottom = chain[at + 1] if at + 1 < len(chain) else None
            size = graph.size[top] - (0 if bottom is None else graph.size[bottom])
            block = RepeatedBlock.between(graph, top, bottom) if 2 * size <= graph.size[chain[0]] else None
            digest = None if block is None else block.digest
            symbols.append(next(fresh) if digest is None else symbol_of.setdefault(digest, next(fresh)))
            operators.append(0 if block is None else block.operators)
        return cls(graph, chain, tuple(symbols), tuple(operators))

    def saved(self, run: Run) -> float:
        """Estimate the number of operators that need no tuning if the parts of a run are tuned once."""
        length = run.stop - run.start
        return sum(self.operators[run.start : run.stop]) * (length - run.period) / length

    def equal_blocks(self, run: Run, least_operators: int, taken: set[int]) -> dict[str, list[RepeatedBlock]]:
        """Return the blocks of a run that are not taken, by digest.

        Several digests occur if two steps share an argument in some of the blocks only.
        """
        per_period = sum(self.operators[run.start : run.start + run.period])
        length = run.period * max(1, -(-least_operators // max(per_period, 1)))
        blocks: dict[str, list[RepeatedBlock]] = {}
        start = run.start
        while (end := start + length) <= run.stop:
            blocked = [at for at in range(start, end) if self.chain[at] in taken]
            if blocked:
                start = blocked[-1] + 1
                continue
            bottom = self.chain[end] if end < len(self.chain) else None
            block = RepeatedBlock.between(self.graph, self.chain[start], bottom)
            digest = block.digest
            if digest is not None and block.operators >= least_operators and taken.isdisjoint(block.members):
                blocks.setdefault(digest, []).append(block)
            start = end
        return blocks


def _chains(graph: ValueGraph) -> Iterator[tuple[int, ...]]:
    """Decompose the post-dominator tree into paths, each from a value down to a leaf.

    A path continues with the child that reaches a parameter of @main over the most values; without
    parameters, the child that reaches a value with uses elsewhere. So it follows the residual stream of a
    network back to its inputs, not a branch inside a layer; such branches are separate paths.

    Args:
        graph: The value graph.
    """
    reach = _reach(graph)
    heads = [at for at, above in enumerate(graph.parent) if above < 0]
    while heads:
        path = [heads.pop()]
        while below := graph.children[path[-1]]:
            next_one = max(below, key=lambda at: (reach[at], -at))
            heads += [at for at in below if at != next_one and not isinstance(graph.values[at], Var)]
            path.append(next_one)
        yield tuple(path)


def _reach(graph: ValueGraph) -> list[tuple[int, int]]:
    """Return the distances from each value to the farthest parameter and shared value of its subtree."""
    reach: list[tuple[int, int]] = []
    for at, value in enumerate(graph.values):
        below = [reach[child] for child in graph.children[at]]
        is_shared = any(graph.parent[graph.number[operand]] != at for operand in operands(value))
        from_parameter = max([item[0] for item in below] + [0 if isinstance(value, Var) else -1])
        from_elsewhere = max([item[1] for item in below] + [0 if is_shared else -1])
        reach.append((_one_more(from_parameter), _one_more(from_elsewhere)))
    return reach


def _one_more(steps: int) -> int:
    return steps + 1 if steps >= 0 else steps
