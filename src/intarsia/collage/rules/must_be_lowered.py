"""Which calls some toolchain has to compute, and which nodes a cover is made of."""

from __future__ import annotations

from typing import Final

from intarsia.build.kernel_table import is_marked
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet
from intarsia.ir import Call, Expr, Function, Op
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.passes.functions.sealed import is_sealed

_PLACEMENTS: Final = frozenset({"on_device", "device_copy"})


def must_be_lowered(expr: Expr) -> bool:
    """Whether an expression is a call that a toolchain has to compute; all else is left to the host.

    These are calls of operators, but for those that only say where a value lives, and calls of Composite and
    Primitive function literals. A function that has a Compiler is compiled already: calling it is left.
    """
    match expr:
        case Call(op=Op(name=name, domain=domain)):
            return domain != INTARSIA_DOMAIN or name not in _PLACEMENTS
        case Call(op=Function() as function):
            return is_sealed(function) and not is_marked(function)
        case _:
            return False


def nodes_to_cover(graph: DataflowGraph) -> IndexSet:
    """The nodes that the partitions of a function share among them: all but those that are everywhere."""
    return IndexSet.full(len(graph)) - graph.everywhere


def open_nodes(graph: DataflowGraph) -> IndexSet:
    """The nodes to cover that can be given away by themselves.

    What is inside the body of a Loop, Scan or SequenceMap cannot: it goes with its operator.
    """
    closed = 0
    for index in graph.owners:
        expr = graph[index].expr
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            closed |= graph.unit(index).bits & ~(1 << index)
    return IndexSet(nodes_to_cover(graph).bits & ~closed, len(graph))


def open_calls(graph: DataflowGraph) -> tuple[int, ...]:
    """The open nodes that must be lowered, in order."""
    return tuple(index for index in open_nodes(graph) if must_be_lowered(graph[index].expr))
