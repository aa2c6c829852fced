"""The graph of the program that was tuned, with the toolchain of each node."""

from __future__ import annotations

from dataclasses import replace

from tests.ir_programs import add, relu, var

from intarsia.collage.placement.placement import Partition
from intarsia.driver.explain.function import ChosenPartition
from intarsia.driver.explain.program_graph import (
    program_graph,
    toolchains_by_name,
    toolchains_by_number,
)
from intarsia.ir import Expr, Function, IRModule, Span, Tuple, TupleGetItem
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.report.run_records import GraphNode
from intarsia.target import Target

NATIVE = Target("cpu -toolchain=native")


def named(expr: Expr, name: str) -> Expr:
    return replace(expr, span=Span("m.onnx", name))


def chain() -> IRModule:
    x = var()
    first = named(relu(x), "first")
    return IRModule.from_expr(Function((x,), named(add(first, named(relu(first), "second")), "sum")))


def test_nodes_and_what_they_read() -> None:
    assert program_graph(chain(), {0: "native", 1: "native", 3: "openvino"}) == (
        GraphNode(0, "", "x", "", ""),
        GraphNode(1, "Relu", "first", "0", "native"),
        GraphNode(2, "Relu", "second", "1", ""),
        GraphNode(3, "Add", "sum", "1..2", "openvino"),
    )


def test_values_flow_through_tuples() -> None:
    x = var()
    pair = Tuple((relu(x), x))
    nodes = program_graph(IRModule.from_expr(Function((x,), relu(TupleGetItem(pair, 0)))), {})
    assert [node.operator for node in nodes] == ["", "Relu", "Relu"]
    assert nodes[-1].inputs == "0..1"  # what the tuple holds


def test_toolchains_of_partitions() -> None:
    parts = [
        ChosenPartition(Partition("main", str(NATIVE), (1, 2), "Relu+Relu")),
        ChosenPartition(Partition("other", "cpu -toolchain=openvino", (1,), "Relu")),
    ]
    assert toolchains_by_number(parts) == {1: "native", 2: "native"}


def test_toolchains_after_decisions_by_name() -> None:
    """A pass has removed "first": it has no toolchain, however its number is used now."""
    x = var()
    changed = IRModule.from_expr(Function((x,), named(add(x, named(relu(x), "second")), "sum")))
    placed = instantiate(changed, NATIVE, WHOLE)
    assert toolchains_by_name(chain(), placed) == {2: "native", 3: "native"}
