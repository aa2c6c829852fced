"""Post-dominators, against their definition."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.op import OpPatternKind
from intarsia.passes.fusion.dominator_tree import DominatorTree

KINDS = tuple(OpPatternKind)
Graph = tuple[list[dict[int, OpPatternKind]], list[bool]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Consumers of each node, which have larger numbers, and which nodes are results."""
    size = draw(st.integers(1, 12))
    consumers = [
        draw(st.dictionaries(st.integers(node + 1, size - 1), st.sampled_from(KINDS), max_size=3))
        if node + 1 < size
        else {}
        for node in range(size)
    ]
    return consumers, [draw(st.integers(0, 5)) == 0 for _ in range(size)]


def tree_of(graph: Graph) -> DominatorTree:
    consumers, is_result = graph
    tree = DominatorTree(len(consumers))
    for node in reversed(range(len(consumers))):
        tree.add(node, tuple(consumers[node].items()), is_result[node])
    return tree


def paths(graph: Graph, node: int) -> Iterator[list[int]]:
    """All paths to the exit, without it."""
    consumers, is_result = graph
    if is_result[node] or not consumers[node]:
        yield [node]
    for consumer in consumers[node]:
        for rest in paths(graph, consumer):
            yield [node, *rest]


@settings(max_examples=examples(100), deadline=None)
@given(graphs())
def test_the_dominator_is_the_first_node_on_all_paths(graph: Graph) -> None:
    tree = tree_of(graph)
    for node in range(len(graph[0])):
        found = [path[1:] for path in paths(graph, node)]
        on_all = [other for other in found[0] if all(other in path for path in found)]
        assert tree.dominator(node) == (on_all[0] if on_all else None)


@settings(max_examples=examples(100), deadline=None)
@given(graphs())
def test_the_kind_is_the_largest_of_all_uses_on_the_way(graph: Graph) -> None:
    tree = tree_of(graph)
    for node in range(len(graph[0])):
        end = tree.dominator(node)
        if end is None:
            continue
        kinds = [
            graph[0][user][consumer]
            for path in paths(graph, node)
            for user, consumer in pairwise(path[: path.index(end) + 1])
        ]
        assert tree.kind(node) == max(kinds)


def test_a_chain_is_its_own_tree(length: int) -> None:
    size = length
    chain = [{node + 1: OpPatternKind.ELEMWISE} for node in range(size - 1)]
    tree = tree_of(([*chain, {}], [False] * size))
    assert [tree.dominator(node) for node in range(size)] == [*range(1, size), None]


def test_what_feeds_a_whole_chain_is_dominated_by_its_end(length: int) -> None:
    size = length
    chain = [{node + 1: OpPatternKind.INJECTIVE} for node in range(1, size - 1)]
    backwards = dict.fromkeys(range(size - 1, 0, -1), OpPatternKind.BROADCAST)
    tree = tree_of(([backwards, *chain, {}], [False] * size))
    assert tree.dominator(0) == size - 1
    assert tree.kind(0) is OpPatternKind.INJECTIVE
