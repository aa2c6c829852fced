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
"""Parts with fewer operators are put together, by default: there is little to decide about a single one."""


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedPart:
    """Parts of @main that are equal but for the values of weights.

    Attributes:
        digest: Of what they have in common.
        operators: How many operators and functions each calls.
        occurrences: Each as a function, with what it is given and what it gives, in evaluation order.
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

    They do not overlap; where there are several ways to cut a program, the one is taken that leaves least to
    be tuned. A program with lets, branches or closures has none. About n log^2 n in the program.

    Args:
        mod: The program; types that are missing are inferred.
        least_operators: So many operators each calls at least.

    Returns:
        Those that save most first. The result depends on the program's structure alone, so that it is the
        same in every process.
    """
    graph = ValueGraph.of(mod)
    if graph is None:
        return ()
    rows = [_Row.of(graph, chain) for chain in _chains(graph)]
    runs = [(row, run) for row in rows for run in find_runs(row.symbols)]
    runs.sort(key=lambda each: -each[0].saved(each[1]))
    taken: set[int] = set()
    found: dict[str, list[RepeatedBlock]] = {}
    for row, run in runs:
        for digest, blocks in row.equal_blocks(run, least_operators, taken).items():
            if len(blocks) > 1:
                found.setdefault(digest, []).extend(blocks)
                taken.update(at for each in blocks for at in each.members)
    order = sorted(found.items(), key=lambda each: -each[1][0].operators * (len(each[1]) - 1))
    return tuple(_part(digest, blocks) for digest, blocks in order)


def _part(digest: str, blocks: list[RepeatedBlock]) -> RepeatedPart:
    ordered = sorted(blocks, key=lambda each: each.members[-1])
    return RepeatedPart(digest, ordered[0].operators, tuple(each.outline for each in ordered))


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A chain, with what lies between each of its values and the next.

    Attributes:
        graph: The values.
        chain: Their numbers.
        symbols: A number for each step, equal for equal blocks.
        operators: How many operators each step has.
    """

    graph: ValueGraph
    chain: tuple[int, ...]
    symbols: tuple[int, ...]
    operators: tuple[int, ...]

    @classmethod
    def of(cls, graph: ValueGraph, chain: tuple[int, ...]) -> _Row:
        """The steps of a chain.

        What is more than half of all cannot be repeated, and is not looked at: each value is then looked at
        log n times at most, over all chains.
        """
        known: dict[str, int] = {}
        fresh, symbols, operators = count(), list[int](), list[int]()
        for at, top in enumerate(chain):
            if isinstance(graph.values[top], Var):
                break
            bottom = chain[at + 1] if at + 1 < len(chain) else None
            size = graph.size[top] - (0 if bottom is None else graph.size[bottom])
            block = RepeatedBlock.between(graph, top, bottom) if 2 * size <= graph.size[chain[0]] else None
            digest = None if block is None else block.digest
            symbols.append(next(fresh) if digest is None else known.setdefault(digest, next(fresh)))
            operators.append(0 if block is None else block.operators)
        return cls(graph, chain, tuple(symbols), tuple(operators))

    def saved(self, run: Run) -> float:
        """About how many operators need not be tuned if the parts of a run are tuned once."""
        length = run.stop - run.start
        return sum(self.operators[run.start : run.stop]) * (length - run.period) / length

    def equal_blocks(self, run: Run, least_operators: int, taken: set[int]) -> dict[str, list[RepeatedBlock]]:
        """The blocks of a run, as far as they are free, by what they have in common.

        There are several kinds if in some of them two steps are given the same value, and in others not.
        """
        once = sum(self.operators[run.start : run.start + run.period])
        length = run.period * max(1, -(-least_operators // max(once, 1)))
        found: dict[str, list[RepeatedBlock]] = {}
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
                found.setdefault(digest, []).append(block)
            start = end
        return found


def _chains(graph: ValueGraph) -> Iterator[tuple[int, ...]]:
    """The post-dominator tree as paths; each runs from a value to the first of what leads to it.

    A path goes on with the child that is farthest from a parameter of @main, which ends it; where there is
    none below, from a value that is also used elsewhere. So it follows the residual stream of a network from
    its inputs on, and not a branch inside a layer; such branches are paths of their own.

    Args:
        graph: The values.
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
    """For each value, how far down its subtree something enters: from a parameter, and from anywhere else."""
    reach: list[tuple[int, int]] = []
    for at, value in enumerate(graph.values):
        below = [reach[child] for child in graph.children[at]]
        is_shared = any(graph.parent[graph.number[each]] != at for each in operands(value))
        from_parameter = max([each[0] for each in below] + [0 if isinstance(value, Var) else -1])
        from_elsewhere = max([each[1] for each in below] + [0 if is_shared else -1])
        reach.append((_one_more(from_parameter), _one_more(from_elsewhere)))
    return reach


def _one_more(steps: int) -> int:
    return steps + 1 if steps >= 0 else steps
