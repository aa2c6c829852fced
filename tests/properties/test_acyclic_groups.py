"""Groups of random graphs, against brute force."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.passes.regions.acyclic_groups import acyclic_groups

Graph = tuple[list[str | None], list[list[int]]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Acyclic graphs of up to 14 nodes of three kinds, edges from later to earlier nodes."""
    count = draw(st.integers(1, 14))
    kinds = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=count, max_size=count))
    needs = [
        sorted(draw(st.sets(st.integers(max(0, node - 6), node - 1), max_size=3))) if node else []
        for node in range(count)
    ]
    return kinds, needs


def quotient(needs: list[list[int]], groups: list[list[int]]) -> dict[int, set[int]]:
    """What each group needs, by first node; nodes without a group are groups of their own."""
    home = {node: node for node in range(len(needs))} | {node: group[0] for group in groups for node in group}
    edges: dict[int, set[int]] = {group: set() for group in home.values()}
    for node, below in enumerate(needs):
        edges[home[node]] |= {home[item] for item in below} - {home[node]}
    return edges


def has_cycle(edges: dict[int, set[int]]) -> bool:
    left = dict(edges)
    while left:
        ready = [node for node, below in left.items() if not below & left.keys()]
        if not ready:
            return True
        for node in ready:
            del left[node]
    return False


@settings(max_examples=examples(400), deadline=None)
@given(graphs())
def test_groups_are_of_one_kind_and_acyclic_and_cannot_grow(graph: Graph) -> None:
    kinds, needs = graph
    groups = acyclic_groups(kinds, needs)
    assert sorted(node for group in groups for node in group) == [n for n, kind in enumerate(kinds) if kind]
    assert all(len({kinds[node] for node in group}) == 1 for group in groups)
    edges = quotient(needs, groups)
    assert not has_cycle(edges)
    for group in groups:
        assert is_connected(group, needs)
        for other in groups:
            is_adjacent = other[0] in edges[group[0]]
            if is_adjacent and kinds[group[0]] == kinds[other[0]]:
                rest = [item for item in groups if item not in (group, other)]
                assert has_cycle(quotient(needs, [*rest, sorted(group + other)]))


def is_connected(group: list[int], needs: list[list[int]]) -> bool:
    reached, waiting = {group[0]}, [group[0]]
    while waiting:
        node = waiting.pop()
        near = [item for item in group if item in needs[node] or node in needs[item]]
        waiting += [item for item in near if item not in reached]
        reached.update(near)
    return reached == set(group)
