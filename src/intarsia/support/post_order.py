"""The order in which every node of an acyclic graph comes after its children."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TypeVar

_Node = TypeVar("_Node")


def post_order_of(
    roots: Iterable[_Node], children: Callable[[_Node], Sequence[_Node]], stop: Container[_Node] = ()
) -> Iterator[_Node]:
    """Yield every distinct node below the roots (included) after its children, first children first.

    Without recursion; linear in nodes and edges. Nodes are compared by identity, so they have to be kept
    alive by the graph: `children` must not make new ones. What a consumer adds to `stop` meanwhile counts.

    Args:
        roots: Nodes to start from.
        children: Called once with each node; returns what has to come before it.
        stop: Nodes that are left out, and with them what is only below them (a set or dict).
    """
    seen: set[int] = set()
    for root in roots:
        stack: list[_Node | None] = [root]
        entered: list[_Node] = []  # the node that ends at each None of the stack, innermost last
        while stack:
            node = stack.pop()
            if node is None:
                yield entered.pop()
            elif id(node) not in seen and node not in stop:
                seen.add(id(node))
                below = children(node)
                if below:
                    entered.append(node)
                    stack.append(None)
                    stack.extend(reversed(below))
                else:
                    yield node
