"""An estimate of a program's cost from operation counts; it orders candidates before they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import Final, Self

from intarsia.ir import Call, Constant, Expr, IRModule, Op, TensorType, TupleType, Type, children, post_order
from intarsia.op.work import multiply_adds
from intarsia.tune.substitution import Dataflow, Substitution, apply_replacement

MULTIPLY_ADD: Final = 1 / 32
"""Nanoseconds per multiply-add, rounded: a core at 2 GHz with two FMA units of 8 float32 lanes does 32."""
ELEMENT: Final = 1 / 8
"""Nanoseconds per element read or written, rounded, mostly in a cache."""
CALL: Final = 1000.0
"""Nanoseconds per kernel call, rounded."""

_FREE: Final = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
"""Operators that move no data."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramEstimate:
    """The estimated time of a program and of its expressions.

    Attributes:
        flow: The program.
        costs: Nanoseconds of each expression of @main.
        constant: Expressions that depend on constants only; they are folded and cost nothing.
        total: The sum of the costs.
    """

    flow: Dataflow
    costs: Mapping[Expr, float]
    constant: AbstractSet[Expr]
    total: float

    @classmethod
    def of(cls, flow: Dataflow) -> Self:
        """Estimate a program. Linear in its size."""
        costs, constant = _costs(post_order(flow.main))
        return cls(flow, costs, constant, sum(costs.values()))

    def cost_after(self, substitution: Substitution) -> float:
        """Estimate the nanoseconds after a substitution. Linear in what it adds and removes."""
        flow = self.flow
        added, constant = _costs(post_order(*substitution.new, stop=self.costs), self.constant)
        # A new constant may make its users constant as well: estimate the whole program.
        if any(expr in constant or expr in self.constant for expr in substitution.new):
            return estimated_cost(apply_replacement(flow, substitution.new, substitution.positions))
        # Removed expressions: the roots, then transitively those with no user left. A subtraction in place
        # of a new sum over the program makes one estimate independent of the program's size.
        kept = {*substitution.new, *(child for expr in added for child in children(expr))}
        gone = {flow.expressions[at] for at in substitution.positions} - kept
        unseen = list(gone)
        while unseen:
            below = {child for child in children(unseen.pop()) if flow.users.all_in(child, gone)}
            unseen += (new := below - gone - kept)
            gone |= new
        return self.total + sum(added.values()) - sum(self.costs[expr] for expr in gone)


def estimated_cost(mod: IRModule) -> float:
    """Estimate the nanoseconds of a program; only comparisons of similar programs are meaningful.

    Counts multiplications of convolutions and matrix products (`measure.work`), elements that go in and
    out of operators, and calls. What depends on constants only is computed before. Linear in the program.

    Pointwise operators that an engine may fuse with what they follow cost like others. Without their calls
    and traffic, rank correlations (Kendall) with times of rewritten parts hardly change: bottlenecks of
    ResNeXt-50 with openvino from 0.62 and 0.74 to 0.64 and 0.74, with onnxruntime from 0.57 and 0.61 to 0.57
    and 0.60; a layer of bert_tiny, where rewrites differ little, from -0.21 to -0.21 and from 0.11 to 0.05.
    """
    costs, _ = _costs(post_order(mod["main"]))
    return sum(costs.values())


def _costs(
    nodes: Iterable[Expr], before: AbstractSet[Expr] = frozenset()
) -> tuple[dict[Expr, float], AbstractSet[Expr]]:
    """Return the nanoseconds of expressions, and the set of those that depend on constants only.

    Args:
        nodes: The expressions in evaluation order.
        before: Other expressions that depend on constants only.
    """
    costs: dict[Expr, float] = {}
    constant: set[Expr] = set()
    for expr in nodes:
        costs[expr] = 0.0
        if isinstance(expr, Constant):
            constant.add(expr)
        elif isinstance(expr, Call) and isinstance(expr.op, Op):
            if expr.args and all(arg in constant or arg in before for arg in expr.args):
                constant.add(expr)
            else:
                costs[expr] = _cost(expr, expr.op)
    return costs, constant


def _cost(call: Call, op: Op) -> float:
    if op.name in _FREE and not op.domain:
        return 0.0
    moved = sum(_elements(tensor.checked_type) for tensor in (call, *children(call)[1:]))
    return MULTIPLY_ADD * multiply_adds(call) + ELEMENT * moved + CALL


def _elements(type_: Type | None) -> int:
    """Elements of a tensor or of all fields of a tuple; unknown dimensions count as 1."""
    match type_:
        case TensorType(shape=shape) if shape is not None:
            return prod(dim if isinstance(dim, int) else 1 for dim in shape)
        case TupleType(fields=fields):
            return sum(map(_elements, fields))
        case _:
            return 0
