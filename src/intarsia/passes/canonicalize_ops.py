"""One spelling of what can be said in several ways, so that the passes after it look for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, IRModule
from intarsia.op import rewrite_typed
from intarsia.passes.canonicalize.activation import gelu_or_hard_swish, swish
from intarsia.passes.canonicalize.matrix_product import decompose_gemm
from intarsia.passes.canonicalize.shape_change import as_cast, as_reshape
from intarsia.passes.canonicalize.variadic import chain_of_sums, sum_of_two
from intarsia.passes.canonicalize.window import explicit_window
from intarsia.passes.rules.rule_table import RuleTable, merged, rules_for
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class CanonicalizeOps(FunctionPass, opt_level=1, required=("InferType",)):
    """Says with one operator what can be said with several, by the rules of `passes.canonicalize`.

    What an engine was measured to run slower, or refuses, is off by default. Linear in the program.

    Before:
        def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32], %b: Tensor[(4,), float32]) {
          Gemm(%x, %w, %b)
        }
    After:
        def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 4), float32], %b: Tensor[(4,), float32]) {
          Add(MatMul(%x, %w), %b)
        }

    Attributes:
        gemm: Gemm as MatMul and Add (both engines make one layer of these again).
        window: Pads, strides and the like of convolutions and pools as numbers.
        flatten: Flatten as Reshape, and CastLike as Cast.
        squeeze: Squeeze and Unsqueeze as Reshape. Off, as transposes can be moved through those only.
        activation: Written-out Gelu and HardSwish as these operators.
        swish: `x * sigmoid(x)` as Swish. Off, as onnxruntime has no Swish.
        sums: Sum and Mean of more than two as chains of Add. Off, as each link is another pass over memory.
    """

    gemm: bool = True
    window: bool = True
    flatten: bool = True
    squeeze: bool = False
    activation: bool = True
    swish: bool = False
    sums: bool = False

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function in the chosen spelling."""
        rules = merged(self._tables())

        def rule(expr: Expr) -> Expr:
            for one in rules.get(operator_name(expr), ()):
                assert isinstance(expr, Call)
                found = one(expr)
                if found is not None:
                    return found
            return expr

        after = rewrite_typed(function, rule)
        assert isinstance(after, Function)
        return after

    def _tables(self) -> Iterator[RuleTable]:
        """The rules that are on."""
        yield rules_for("Sum", sum_of_two)
        if self.gemm:
            yield rules_for("Gemm", decompose_gemm)
        if self.window:
            yield rules_for("Conv ConvTranspose MaxPool AveragePool LpPool", explicit_window)
        if self.flatten:
            yield {"Flatten": (as_reshape,), "CastLike": (as_cast,)}
        if self.squeeze:
            yield rules_for("Squeeze Unsqueeze", as_reshape)
        if self.activation:
            yield rules_for("Mul Div", gelu_or_hard_swish)
        if self.swish:
            yield rules_for("Mul", swish)
        if self.sums:
            yield rules_for("Sum Mean", chain_of_sums)
