"""What reaches what, and what is recursive, in programs and against the definition."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.ir.parser import parse_module
from intarsia.passes.functions.call_graph import CallGraph

PROGRAM = """
    def @main(%x: Tensor[(2,), float32]) { @f(@g(%x)) }
    def @f(%x: Tensor[(2,), float32]) { Relu(%x) }
    def @g(%x: Tensor[(2,), float32]) { @h(%x) }
    def @h(%x: Tensor[(2,), float32]) { @g(@f(%x)) }
    def @self(%x: Tensor[(2,), float32]) { @self(%x) }
"""


def test_references_of_a_program() -> None:
    graph = CallGraph.of(parse_module(PROGRAM))
    assert {name: set(callees) for name, callees in graph.callees.items()} == {
        "main": {"f", "g"},
        "f": set(),
        "g": {"h"},
        "h": {"f", "g"},
        "self": {"self"},
    }
    assert graph.reachable(["main"]) == {"main", "f", "g", "h"}
    assert graph.reachable(["self", "unknown"]) == {"self"}
    assert graph.recursive() == {"g", "h", "self"}


NAMES = "abcdef"
GRAPHS = st.fixed_dictionaries({name: st.lists(st.sampled_from(NAMES), max_size=3) for name in NAMES})


@settings(max_examples=examples(100), deadline=None)
@given(GRAPHS)
def test_recursive_functions_reach_themselves(callees: Mapping[str, list[str]]) -> None:
    graph = CallGraph({name: tuple(dict.fromkeys(some)) for name, some in callees.items()})
    expected = {name for name in NAMES if name in graph.reachable(graph.callees[name])}
    assert graph.recursive() == expected


@settings(max_examples=examples(100), deadline=None)
@given(GRAPHS)
def test_callees_come_first_but_for_circles(callees: Mapping[str, list[str]]) -> None:
    graph = CallGraph({name: tuple(dict.fromkeys(some)) for name, some in callees.items()})
    order = graph.callees_first()
    assert sorted(order) == list(NAMES)
    for name in NAMES:
        for callee in graph.callees[name]:
            is_circle = name in graph.reachable([callee])
            assert is_circle or order.index(callee) < order.index(name)


def test_long_chains_of_functions(length: int) -> None:
    size = length
    graph = CallGraph({str(number): (str((number + 1) % size),) for number in range(size)})
    assert len(graph.recursive()) == size
    graph = CallGraph(
        {str(number): (str(number + 1),) if number + 1 < size else () for number in range(size)}
    )
    assert graph.recursive() == frozenset()
    assert graph.callees_first()[0] == str(size - 1)
