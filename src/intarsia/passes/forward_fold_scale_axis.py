"""Multiplications by constants per channel, folded into the weights after them."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Expr, Function, IRModule, post_order
from intarsia.passes.fold_scale.forward import ForwardPlan
from intarsia.passes.fold_scale.scale import scale_of
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.transform import FunctionPass, PassContext, register_pass
from intarsia.transform.diagnostic import DiagnosticLevel


@register_pass
@dataclass(frozen=True)
class ForwardFoldScaleAxis(FunctionPass, opt_level=2, required=("InferType",)):
    """Moves multiplications by constants on to the weights that use what is multiplied.

    From `conv(x * s, w)` to `conv(x, w * s)`, through the same operators as `BackwardFoldScaleAxis`, sums
    excepted. All uses must take the factors, which may differ along the axis of the input channels; weights
    are constants. Padding with zeros does not matter: they stay zeros. Linear in the program and weights.

    Before:
        def @main(%x: Tensor[(5, 2), float32]) {
          MatMul(Relu(Mul(%x, meta[Constant][0])), meta[Constant][1])
        }
    After:
        def @main(%x: Tensor[(5, 2), float32]) { MatMul(Relu(%x), meta[Constant][1]) }
    Constants:
        [3.0, 4.0] zeros(2, 1)
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without the multiplications that weights take."""
        order = list(post_order(function))
        if not any(map(scale_of, order)):
            return function
        plan = ForwardPlan.of(order)
        if ctx.is_diagnosing:
            _diagnose(order, plan, ctx)
        return rewrite_original(function, plan.replace)


def _diagnose(order: list[Expr], plan: ForwardPlan, ctx: PassContext) -> None:
    """Diagnose the multiplications that stay."""
    for expr in order:
        if scale_of(expr) is None or expr in plan.dropped:
            continue
        taken = plan.accepted.get(expr)
        reason = (
            "not all uses of its result have weights" if taken is None else "they cannot take its factors"
        )
        ctx.diagnose(expr, DiagnosticLevel.MISSED, f"is not moved into weights behind it: {reason}")
