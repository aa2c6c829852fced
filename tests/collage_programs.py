"""Programs as dataflow graphs, and partitioning them by hand, for tests of Collage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import NestedSubGraph, SubGraph, SubGraphConfig, parallel_rewrite
from intarsia.ir import Attrs, Call, IRModule, Op, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types, verify

REFERENCE = {"Compiler": "reference", "target": "cpu -toolchain=reference"}


def program(text: str) -> IRModule:
    """A typed module from its text; `T` stands for a tensor of two floats."""
    return infer_types(parse_module(re.sub(r"(?<=[:>] )T\b", "Tensor[(2,), float32]", text)))


def main_graph(mod: IRModule) -> DataflowGraph:
    return DataflowGraph.of(mod["main"])


def calls(graph: DataflowGraph, name: str = "") -> list[int]:
    """Indices of all calls of operators, or of one operator, in order."""
    found = [
        (node.index, node.expr.op.name)
        for node in graph
        if isinstance(node.expr, Call) and isinstance(node.expr.op, Op)
    ]
    return [index for index, own in found if name in ("", own)]


def partitioned(
    mod: IRModule,
    indices: Sequence[int],
    config: SubGraphConfig,
    labels: Mapping[str, Sequence[int]] | None = None,
) -> IRModule:
    """The module with some nodes of @main in a function for the reference toolchain.

    Labels say which of them are to be Composite functions inside. An invalid sub-graph changes nothing.
    """
    graph = main_graph(mod)
    nested = (
        NestedSubGraph(SubGraph.of(graph, own), Attrs({"Composite": label}))
        for label, own in (labels or {}).items()
    )
    sub_graph = SubGraph.of(graph, indices, nested).with_attrs(REFERENCE)
    if not sub_graph.is_valid(config):
        return mod
    after = mod.with_function("main", parallel_rewrite(graph, [sub_graph]))
    verify(after)
    return after


def assert_program(found: IRModule, text: str) -> None:
    """Fail unless a module is what a text says."""
    expected = program(text)
    assert structural_equal(found, expected), f"found:\n{found}\nexpected:\n{expected}"
