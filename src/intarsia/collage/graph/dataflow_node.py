"""One expression in a dataflow graph, and the block that it is evaluated in."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.graph.node_kind import node_label
from intarsia.ir import Constant, Expr, Function, GlobalVar, Op, Tuple
from intarsia.passes.functions.sealed import is_sealed


@dataclass(frozen=True, slots=True, eq=False)
class BasicBlock:
    """What is evaluated together: the body of a function or Let, or a branch of an If.

    Attributes:
        number: Position among the graph's blocks; enclosing ones come first, 0 is the body of the function.
        opener: Index of the function literal, Let or If that it belongs to; None for the body of the
            function that the graph is of.
    """

    number: int
    opener: int | None


@dataclass(frozen=True, slots=True, eq=False)
class DataflowNode:
    """An expression with its place in the dataflow.

    Attributes:
        index: Its number: larger than those of its inputs.
        expr: The expression.
        inputs: Its direct sub-expressions, each once. Those of a sealed function literal (Compiler,
            Primitive, Composite), whose inside is no part of the graph, are what it captures.
        outputs: Users of the value, ascending.
        is_external: Whether it is the result of the function.
        block: Block that evaluates or binds it. None for constants, operators, names of functions, the absent
            value and function literals: these can stand anywhere.
        dominator_parent: The first node that all uses lead to; None if there is none, because ways end in the
            result.
        depth: Number of nodes that dominate it in this way: parent, parent of the parent ...
    """

    index: int
    expr: Expr
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    is_external: bool
    block: BasicBlock | None
    dominator_parent: int | None
    depth: int

    def __repr__(self) -> str:
        return f"<node {self.index}: {node_label(self.expr) or type(self.expr).__name__}>"


def can_inline(expr: Expr) -> bool:
    """Whether an expression is copied to wherever it is used, so that it is never a parameter.

    These are operators, names of functions, the absent value, scalar constants, and sealed function literals.
    """
    match expr:
        case Op() | GlobalVar() | Tuple(fields=()):
            return True
        case Constant():
            return expr.data.ndim == 0
        case Function():
            return is_sealed(expr)
        case _:
            return False


def is_everywhere(expr: Expr) -> bool:
    """Whether an expression can be used by every function without being handed over.

    These are the inlinable ones and constants of any size: cutting a program between such a value and its
    users moves nothing.
    """
    return isinstance(expr, Constant) or can_inline(expr)
