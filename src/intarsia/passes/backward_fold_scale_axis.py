"""Multiplications by constants per channel, folded into the weights before them."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, IRModule, children, post_order
from intarsia.passes.fold_scale.backward import BackwardPlan
from intarsia.passes.fold_scale.scale import scale_of
from intarsia.passes.fold_scale.shift import shifted_operand, with_shift
from intarsia.passes.rules.rewrite_original import count_uses, rewrite_original
from intarsia.transform import DiagnosticLevel, FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class BackwardFoldScaleAxis(FunctionPass, opt_level=2, required=("InferType",)):
    """Moves multiplications by constants back to the weights that make what is multiplied.

    From `conv(x, w) * s` to `conv(x, w * s)`, also through Relu, LeakyRelu and MaxPool (positive factors),
    average pools, Pad, Transpose, and sums of which both sides take the factors. Factors may differ along the
    axis of the output channels; weights are constants, and all on the way is used once. Weights are computed
    in float64 and rounded once. A scale that meets another Mul on its way is multiplied into that.

    Additions of constants per channel right after a layer go into its bias. Linear in the program and its
    weights.

    Before:
        def @main(%x: Tensor[(5, 1), float32]) {
          Mul(Relu(Gemm(%x, meta[Constant][0], meta[Constant][1])), meta[Constant][2])
        }
    After:
        def @main(%x: Tensor[(5, 1), float32]) { Relu(Gemm(%x, meta[Constant][0], meta[Constant][3])) }
    Constants:
        zeros(1, 2) [1.0, 2.0] [3.0, 4.0] [3.0, 8.0]

    Attributes:
        shift: Whether additions go into the bias.
    """

    shift: bool = True

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without the multiplications that its weights take."""
        order = list(post_order(function))
        has_scales = any(map(scale_of, order))
        has_shifts = self.shift and any(shifted_operand(expr) is not None for expr in order)
        if not has_scales and not has_shifts:
            return function
        uses = count_uses(function)
        plan = BackwardPlan.of(order if has_scales else [], uses)
        if ctx.is_diagnosing:
            _diagnose(order, plan, ctx)

        def rule(old: Expr, current: Expr) -> Expr:
            after = plan.replace(old, current)
            position = shifted_operand(after) if self.shift and old not in plan.dropped else None
            if position is None or uses[children(old)[1 + position]] != 1:
                return after
            return with_shift(after) or after

        return rewrite_original(function, rule)


def _diagnose(order: list[Expr], plan: BackwardPlan, ctx: PassContext) -> None:
    """Say which multiplications stay."""
    for expr in order:
        scale = scale_of(expr)
        if scale is None or expr in plan.dropped or not isinstance(expr, Call):
            continue
        uses = plan.uses[expr.args[scale[0]]]
        reason = (
            f"what it multiplies has {uses} uses" if uses > 1 else "no weights before it take its factors"
        )
        ctx.diagnose(expr, DiagnosticLevel.MISSED, f"is not moved into weights: {reason}")
