"""Scales moved from data to the weights that use them: found from consumers to producers, moved on."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.ir import Call, Expr, children
from intarsia.passes.fold_scale.carrier import carrier_of
from intarsia.passes.fold_scale.factor import multiplied_again, of_factor
from intarsia.passes.fold_scale.layer import layer_of
from intarsia.passes.fold_scale.placement import may_replace
from intarsia.passes.fold_scale.scale import Acceptance, Scale, scale_of


@dataclass(slots=True)
class ForwardPlan:
    """What becomes of each expression of a function.

    Attributes:
        accepted: Scales that all uses of an expression take in its place; None if some use takes none.
        pulled: The scale that is taken out of an expression, for its uses to take.
        dropped: Multiplications that go away: their uses take them.
        scaled: Multiplications, and what carries their results. Weights are read for these only.
    """

    accepted: dict[Expr, Acceptance | None] = field(default_factory=dict)
    pulled: dict[Expr, Scale] = field(default_factory=dict)
    dropped: dict[Expr, int] = field(default_factory=dict)
    scaled: set[Expr] = field(default_factory=set)

    @classmethod
    def of(cls, order: list[Expr]) -> ForwardPlan:
        """The plan for a function's expressions, in post-order. Linear in the program and its weights."""
        plan = cls()
        for expr in order:
            carrier = carrier_of(expr)
            if scale_of(expr) is not None or (carrier is not None and carrier.data in plan.scaled):
                plan.scaled.add(expr)
        for expr in reversed(order):
            plan._offer(expr)
        for expr in order:
            plan._pull(expr)
        return plan

    def _offer(self, expr: Expr) -> None:
        """Record the scales that the arguments of an expression may hand on to it."""
        position, offer = self._own_offer(expr)
        operand = expr.args[position] if isinstance(expr, Call) and offer is not None else None
        for child in children(expr):
            taken = offer if child is operand else None
            before = self.accepted.get(child, taken)
            self.accepted[child] = None if before is None or taken is None else before.meet(taken)

    def _own_offer(self, expr: Expr) -> tuple[int, Acceptance | None]:
        """Which argument of a call can be scaled, and by what."""
        layer = layer_of(expr)
        if layer is not None:
            is_scaled = layer.call.args[layer.data_position] in self.scaled
            return layer.data_position, layer.accepts_input() if is_scaled else None
        found = scale_of(expr)
        if found is not None:
            return found[0], self._of_multiplication(expr, *found)
        carrier, taken = carrier_of(expr), self.accepted.get(expr)
        if carrier is None or taken is None:
            return 0, None
        return 0, carrier.from_result(taken)

    def _of_multiplication(self, expr: Expr, position: int, scale: Scale) -> Acceptance | None:
        """What its uses take besides its factors; or else the factors can be multiplied."""
        assert isinstance(expr, Call)
        taken = self.accepted.get(expr)
        if taken is not None and taken.takes(scale) and may_replace(expr, expr.args[position]):
            self.dropped[expr] = position
            return taken.after(scale)
        return of_factor(expr, position)

    def _pull(self, expr: Expr) -> None:
        if expr in self.dropped:
            self._pull_multiplication(expr)
            return
        carrier = carrier_of(expr)
        scale = None if carrier is None else self.pulled.get(carrier.data)
        if carrier is not None and scale is not None:
            self.pulled[expr] = carrier.to_result(scale)

    def _pull_multiplication(self, expr: Expr) -> None:
        scale = scale_of(expr)
        assert isinstance(expr, Call)
        assert scale is not None
        position, own = scale
        self.pulled[expr] = own.times(self.pulled.get(expr.args[position]))

    def replace(self, old: Expr, current: Expr) -> Expr:
        """What stands for an expression of the program, given the same over rewritten arguments."""
        if not isinstance(old, Call) or not isinstance(current, Call):
            return current
        if old in self.dropped:
            return current.args[self.dropped[old]]
        layer = layer_of(old)
        factor = None if layer is not None else scale_of(old)
        if layer is not None:
            scale, rewritten = self.pulled.get(old.args[layer.data_position]), layer_of(current)
            return current if scale is None or rewritten is None else rewritten.with_input_scaled(scale)
        scale = None if factor is None else self.pulled.get(old.args[factor[0]])
        return current if scale is None else multiplied_again(current, scale)
