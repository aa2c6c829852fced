"""A guess at what a program costs, from the numbers of its operations: it orders what is measured first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import Final, Self

from intarsia.ir import Call, Constant, Expr, IRModule, Op, TensorType, TupleType, Type, children, post_order
from intarsia.measure.work import multiply_adds
from intarsia.tune.substitution import Dataflow, Substitution, apply_replacement

MULTIPLY_ADD: Final = 1 / 32
"""Nanoseconds, about: one core with vectors of 8 does 32 in each."""
ELEMENT: Final = 1 / 8
"""Nanoseconds, about, for an element that is read or written, mostly in a cache."""
CALL: Final = 1000.0
"""Nanoseconds, about, for a call of a kernel."""

_FREE: Final = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
"""Operators that move no data."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramEstimate:
    """What a program may take, and each of its expressions.

    Attributes:
        flow: The program.
        costs: Nanoseconds of each expression of @main.
        known: Those that depend on constants only; they cost nothing.
        total: The sum of the costs.
    """

    flow: Dataflow
    costs: Mapping[Expr, float]
    known: AbstractSet[Expr]
    total: float

    @classmethod
    def of(cls, flow: Dataflow) -> Self:
        """The estimate of a program. Linear in it."""
        costs, known = _costs(post_order(flow.main))
        return cls(flow, costs, known, sum(costs.values()))

    def cost_after(self, one: Substitution) -> float:
        """What the program may take after a substitution. Linear in what that adds and removes."""
        flow = self.flow
        added, known = _costs(post_order(*one.new, stop=self.costs), self.known)
        if any(each in known or each in self.known for each in one.new):  # and so may be what uses it
            return estimated_cost(apply_replacement(flow, one.new, one.place))
        kept = {*one.new, *(child for each in added for child in children(each))}
        gone = {flow.expressions[at] for at in one.place} - kept
        unseen = list(gone)
        while unseen:
            below = {child for child in children(unseen.pop()) if flow.users.all_in(child, gone)}
            unseen += (new := below - gone - kept)
            gone |= new
        return self.total + sum(added.values()) - sum(self.costs[each] for each in gone)


def estimated_cost(mod: IRModule) -> float:
    """Nanoseconds that a program may take; only its order among similar programs means anything.

    Counts multiplications of convolutions and matrix products (`measure.work`), elements that go in and
    out of operators, and calls. What depends on constants only is computed before. Linear in the program.

    Pointwise operators that an engine may fuse with what they follow cost like others. Without their calls
    and traffic, rank correlations (Kendall) with times of rewritten parts hardly change: bottlenecks of
    ResNeXt-50 with openvino from 0.62 and 0.74 to 0.64 and 0.74, with onnxruntime from 0.57 and 0.61 to 0.57
    and 0.60; a layer of bert_tiny, whose rewrites differ little, from -0.21 to -0.21 and from 0.11 to 0.05.
    """
    costs, _ = _costs(post_order(mod["main"]))
    return sum(costs.values())


def _costs(
    nodes: Iterable[Expr], before: AbstractSet[Expr] = frozenset()
) -> tuple[dict[Expr, float], AbstractSet[Expr]]:
    """What each of some expressions costs, in evaluation order, and which depend on constants only.

    Args:
        nodes: The expressions.
        before: Others that depend on constants only.
    """
    costs: dict[Expr, float] = {}
    known: set[Expr] = set()
    for expr in nodes:
        costs[expr] = 0.0
        if isinstance(expr, Constant):
            known.add(expr)
        elif isinstance(expr, Call) and isinstance(expr.op, Op):
            if expr.args and all(arg in known or arg in before for arg in expr.args):
                known.add(expr)
            else:
                costs[expr] = _cost(expr, expr.op)
    return costs, known


def _cost(call: Call, op: Op) -> float:
    if op.name in _FREE and not op.domain:
        return 0.0
    moved = sum(_elements(each.checked_type) for each in (call, *children(call)[1:]))
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
