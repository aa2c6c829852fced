"""Whether a toolchain takes a node with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.ir import Call, Expr, Function, Op
from intarsia.op.operator_predicate import OperatorPredicate
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.regions.toolchain_call import is_supported


@dataclass(frozen=True, slots=True)
class UnitSupport:
    """A toolchain's operator predicate, for units of a graph.

    Attributes:
        graph: The graph.
        predicate: Whether the toolchain runs a call of an operator.
        toolchain: Its name, for the Composite functions that are made for it.
    """

    graph: DataflowGraph
    predicate: OperatorPredicate
    toolchain: str

    def takes(self, index: int) -> bool:
        """Whether the toolchain runs every call in the unit of a node; True where there is none.

        Calls of global functions and of function values are not taken. Linear in the unit.
        """
        return all(map(self._takes, self.graph.exprs(self.graph.unit(index))))

    def _takes(self, expr: Expr) -> bool:
        match expr:
            case Call(op=Op()):
                return must_be_lowered(expr) and self.predicate(expr)
            case Call(op=Function() as function) if not is_sealed(function):
                return True
            case Call():
                return must_be_lowered(expr) and is_supported(expr, self.toolchain, self.predicate)
            case _:
                return True
