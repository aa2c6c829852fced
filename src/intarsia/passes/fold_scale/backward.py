"""Scales moved from results to the weights that make them: found from producers to consumers, moved back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from intarsia.ir import Call, Constant, Expr, with_fields
from intarsia.passes.fold_scale.carrier import carrier_of
from intarsia.passes.fold_scale.factor import multiplied_again, of_factor
from intarsia.passes.fold_scale.layer import layer_of
from intarsia.passes.fold_scale.placement import may_replace
from intarsia.passes.fold_scale.scale import (
    FLOATS,
    Acceptance,
    Scale,
    acceptance_of,
    scale_of,
    scaled_constant,
)
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, has_same_shape, operator_name

_SUMS = frozenset({"Add", "Sub"})


@dataclass(slots=True)
class BackwardPlan:
    """What becomes of each expression of a function.

    Attributes:
        uses: Number of uses of an expression.
        accepted: Scales that an expression takes, if it is used once.
        pending: The scale that an expression is to take.
        dropped: Multiplications that go away: their argument takes them.
        awaited: Operands of multiplications, directly or through operators that carry scales or add.
            Weights are read for these only.
    """

    uses: Counter[Expr]
    accepted: dict[Expr, Acceptance] = field(default_factory=dict)
    pending: dict[Expr, Scale] = field(default_factory=dict)
    dropped: dict[Expr, int] = field(default_factory=dict)
    awaited: set[Expr] = field(default_factory=set)

    @classmethod
    def of(cls, order: list[Expr], uses: Counter[Expr]) -> BackwardPlan:
        """The plan for a function's expressions, in post-order. Linear in the program and its weights."""
        plan = cls(uses)
        for expr in reversed(order):
            plan._await(expr)
        for expr in order:
            acceptance = plan._acceptance(expr)
            if acceptance is not None:
                plan.accepted[expr] = acceptance
        for expr in reversed(order):
            plan._push(expr)
        return plan

    def _await(self, expr: Expr) -> None:
        """Record the arguments of an expression that scales may be moved to."""
        scale, carrier = scale_of(expr), carrier_of(expr)
        if scale is not None and isinstance(expr, Call):
            self.awaited.add(expr.args[scale[0]])
        elif expr in self.awaited and carrier is not None:
            self.awaited.add(carrier.data)
        elif expr in self.awaited and isinstance(expr, Call) and operator_name(expr) in _SUMS:
            self.awaited.update(expr.args)

    def _from_operand(self, operand: Expr) -> Acceptance | None:
        return self.accepted.get(operand) if self.uses[operand] == 1 else None

    def _acceptance(self, expr: Expr) -> Acceptance | None:
        if scale_of(expr) is not None:
            return self._of_multiplication(expr)
        if self.uses[expr] != 1 or expr not in self.awaited:
            return None
        layer = layer_of(expr)
        if layer is not None:
            return layer.accepts_output()
        carrier = carrier_of(expr)
        if carrier is not None:
            below = self._from_operand(carrier.data)
            return None if below is None else carrier.from_data(below)
        return self._of_sum(expr) if operator_name(expr) in _SUMS else None

    def _of_multiplication(self, expr: Expr) -> Acceptance | None:
        """That of the argument, if it takes the factors; or else the factors can be multiplied."""
        assert isinstance(expr, Call)
        found = scale_of(expr)
        assert found is not None
        position, scale = found
        operand = expr.args[position]
        below = self._from_operand(operand)
        if below is not None and below.takes(scale) and may_replace(expr, operand):
            self.dropped[expr] = position
            return below.after(scale)
        return of_factor(expr, position)

    def _of_sum(self, expr: Expr) -> Acceptance | None:
        """What both operands take; constants take anything along an axis that does not make them larger."""
        assert isinstance(expr, Call)
        left, right = expr.args
        dims = dims_of(expr)
        if dims is None or dtype_of(expr) not in FLOATS or left is right:
            return None
        first, second = (self._of_summand(operand, expr) for operand in (left, right))
        if first is None or second is None or (isinstance(left, Constant) and isinstance(right, Constant)):
            return None
        return first.meet(second)

    def _of_summand(self, operand: Expr, total: Expr) -> Acceptance | None:
        dims, whole = dims_of(operand), dims_of(total)
        assert whole is not None
        if isinstance(operand, Constant):
            return _of_constant(operand, len(whole))
        acceptance = self._from_operand(operand)
        if acceptance is None or dims is None or len(dims) != len(whole):
            return None
        axis = acceptance.axis
        if axis is None:
            return acceptance if has_same_shape(operand, total) else None
        return acceptance if isinstance(dims[axis], int) and dims[axis] == whole[axis] else None

    def _push(self, expr: Expr) -> None:
        """Hand what an expression is to take, and what it is itself if it is dropped, to its arguments."""
        scale = self.pending.get(expr)
        if expr in self.dropped:
            self._push_multiplication(expr, scale)
            return
        if scale is None or layer_of(expr) is not None or scale_of(expr) is not None:
            return
        carrier = carrier_of(expr)
        if carrier is not None:
            self.pending[carrier.data] = carrier.to_data(scale)
            return
        assert isinstance(expr, Call)
        self.pending.update({arg: scale for arg in expr.args if not isinstance(arg, Constant)})

    def _push_multiplication(self, expr: Expr, scale: Scale | None) -> None:
        assert isinstance(expr, Call)
        found = scale_of(expr)
        assert found is not None
        position, own = found
        self.pending[expr.args[position]] = own.times(scale)

    def replace(self, old: Expr, current: Expr) -> Expr:
        """What stands for an expression of the program, given the same over rewritten arguments."""
        if old in self.dropped:
            assert isinstance(current, Call)
            return current.args[self.dropped[old]]
        scale = self.pending.get(old)
        if scale is None or not isinstance(current, Call):
            return current
        layer = layer_of(current)
        if layer is not None:
            return layer.with_output_scaled(scale)
        if operator_name(current) in _SUMS:
            return _with_constants_scaled(current, scale)
        return multiplied_again(current, scale) if scale_of(current) else current


def _of_constant(constant: Constant, rank: int) -> Acceptance | None:
    """What a summand takes that is a constant: scales along its only long axis, if it has any."""
    shape = constant.data.shape
    long_axes = [axis + rank - len(shape) for axis, size in enumerate(shape) if size != 1]
    if not constant.data.size or len(long_axes) > 1:
        return None
    return acceptance_of(long_axes[0] if long_axes else None, constant)


def _with_constants_scaled(call: Call, scale: Scale) -> Expr:
    dims = dims_of(call)
    assert dims is not None
    factors = scale.broadcast(len(dims))
    args = (scaled_constant(arg, factors) if isinstance(arg, Constant) else arg for arg in call.args)
    return with_fields(call, args=tuple(args))
