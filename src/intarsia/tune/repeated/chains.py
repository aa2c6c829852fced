"""Rows of values, each of which everything before it passes: layers lie between two of them."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.ir import Var
from intarsia.tune.repeated.value_graph import ValueGraph, operands


def chains(graph: ValueGraph) -> Iterator[tuple[int, ...]]:
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
