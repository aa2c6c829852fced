from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.post_order import post_order_of


@dataclass(frozen=True)
class Node:
    """A node that is equal to others of its name, but not the same."""

    name: str
    below: tuple[Node, ...] = ()


def names(*roots: Node, stop: set[Node] | None = None) -> str:
    return "".join(node.name for node in post_order_of(roots, lambda node: node.below, stop or ()))


def test_children_come_first_and_in_order() -> None:
    assert names(Node("d", (Node("b", (Node("a"),)), Node("c")))) == "abcd"


def test_shared_nodes_come_once_also_among_several_roots() -> None:
    shared = Node("a")
    assert names(Node("b", (shared, shared)), Node("c", (shared,)), shared) == "abc"


def test_equal_nodes_are_not_the_same() -> None:
    assert names(Node("b", (Node("a"), Node("a")))) == "aab"


def test_what_is_only_below_a_stop_is_left_out() -> None:
    stop = Node("s", (Node("x"),))
    assert names(Node("b", (Node("a"), stop)), stop={stop}) == "ab"


def test_what_the_consumer_adds_to_the_stops_is_left_out() -> None:
    twin = Node("t")
    root = Node("b", (Node("a"), twin))
    done: set[Node] = set()
    order = []
    for node in post_order_of([root], lambda node: node.below, done):
        order.append(node.name)
        done.add(twin)
    assert order == ["a", "b"]


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_chains_of_diamonds_are_entered_once(size: int) -> None:
    calls = 0
    below: list[tuple[int, ...]] = [(), *((each, each) for each in range(size))]
    nodes = [str(each) for each in range(size + 1)]

    def children(name: str) -> tuple[str, ...]:
        nonlocal calls
        calls += 1
        return tuple(nodes[each] for each in below[int(name)])

    assert list(post_order_of([nodes[-1]], children)) == nodes
    assert calls == size + 1


@given(st.lists(st.sets(st.integers(0, 20)), max_size=20))
def test_is_the_order_of_recursion(edges: list[set[int]]) -> None:
    nodes: list[Node] = []
    for number, wanted in enumerate(edges):
        nodes.append(Node(str(number), tuple(nodes[each] for each in wanted if each < number)))
    expected: list[Node] = []

    def visit(node: Node) -> None:
        for inner in node.below:
            visit(inner)
        if not any(node is each for each in expected):
            expected.append(node)

    for node in nodes[::-1][:3]:
        visit(node)
    order = list(post_order_of(nodes[::-1][:3], lambda node: node.below))
    assert [id(node) for node in order] == [id(node) for node in expected]
