"""The dataflow inside each scope of a function, as numbered nodes with fusion kinds."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import (
    Call,
    Expr,
    Function,
    Op,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    children,
    post_order,
)
from intarsia.ir.scope import is_atom, place
from intarsia.ir.types import ANY, Dim
from intarsia.op import OpPatternKind, op_pattern
from intarsia.op.constant_argument import has_open_shape
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_random
from intarsia.passes.functions.sealed import sealed_scopes
from intarsia.passes.fusion.dominator_tree import DominatorTree


@dataclass(frozen=True, slots=True)
class FusionGraph:
    """Compound expressions of a function; a value used in another scope is a result of the graph.

    Attributes:
        nodes: The expressions, each after what it uses.
        kinds: The fusion kind of each.
        consumers: Users of each value in the same scope, with the kind of the use.
        is_result: For each, whether it is used elsewhere.
    """

    nodes: tuple[Expr, ...]
    kinds: tuple[OpPatternKind, ...]
    consumers: tuple[tuple[tuple[int, OpPatternKind], ...], ...]
    is_result: tuple[bool, ...]

    @classmethod
    def of(cls, function: Function) -> FusionGraph:
        """The graph of a global function. What sealed functions hold takes part as opaque nodes."""
        placed = place(function)
        home = {expr: scope for scope, members in placed.members.items() for expr in members}
        sealed = sealed_scopes(placed)
        nodes = tuple(expr for expr in post_order(function) if expr in home)
        number = {expr: index for index, expr in enumerate(nodes)}
        kinds = tuple(OpPatternKind.OPAQUE if sealed[home[expr]] else fusion_kind(expr) for expr in nodes)
        consumers: list[list[tuple[int, OpPatternKind]]] = [[] for _ in nodes]
        is_result = [False] * len(nodes)
        for index, expr in enumerate(nodes):
            for position, child in enumerate(children(expr)):
                if is_atom(child):
                    continue
                if (expr, position) in placed.inner or home[child] is not home[expr]:
                    is_result[number[child]] = True
                else:
                    consumers[number[child]].append((index, use_kind(expr, kinds[index], child)))
        return cls(nodes, kinds, tuple(map(tuple, consumers)), tuple(is_result))

    def dominators(self) -> DominatorTree:
        """The post-dominators of the graph."""
        tree = DominatorTree(len(self.nodes))
        for index in reversed(range(len(self.nodes))):
            tree.add(index, self.consumers[index], self.is_result[index])
        return tree


def fusion_kind(expr: Expr) -> OpPatternKind:
    """How an expression behaves in fusion, apart from how its arguments are used.

    Opaque are operators whose shape argument is computed, which inside a function of its own would be a
    variable; small values that are known at compile time, which outside of it would be known no more; and
    draws of random numbers, so that fusion can be undone wherever it was done.
    """
    match expr:
        case Call(op=Op() as op):
            is_fixed = has_open_shape(expr) or known_value(expr) is not None or is_random(expr)
            return OpPatternKind.OPAQUE if is_fixed else op_pattern(op)
        case TupleGetItem():
            return OpPatternKind.ELEMWISE
        case Tuple():
            return OpPatternKind.TUPLE
        case _:
            return OpPatternKind.OPAQUE


def use_kind(user: Expr, kind: OpPatternKind, used: Expr) -> OpPatternKind:
    """How an expression uses one of its arguments: element by element, if it is not stretched."""
    if kind > OpPatternKind.BROADCAST or not isinstance(user, Call):
        return kind
    return OpPatternKind.ELEMWISE if _keeps_shape(user, used) else OpPatternKind.BROADCAST


def _keeps_shape(call: Call, used: Expr) -> bool:
    """Whether the result has the shape of the argument, as far as types show, however dims turn out."""
    others = [arg.checked_type for arg in call.args if arg is not used]
    if not others:
        return True
    type_, result = call.checked_type, used.checked_type
    if not isinstance(type_, TensorType) or not isinstance(result, TensorType):
        return False
    if type_.shape is None or result.shape is None or len(type_.shape) != len(result.shape):
        return False
    return all(
        _is_same(a, b) or all(_is_one(other, len(type_.shape) - axis) for other in others)
        for axis, (a, b) in enumerate(zip(type_.shape, result.shape, strict=True))
    )


def _is_same(left: Dim, right: Dim) -> bool:
    return left == right and left != ANY


def _is_one(type_: object, from_end: int) -> bool:
    """Whether an argument has size 1, or no axis, at a place counted from the last axis."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return False
    dim = type_.shape[-from_end] if from_end <= len(type_.shape) else 1
    return not isinstance(dim, SymbolicDim) and dim == 1
