"""Swish as a sigmoid and products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intarsia.ir import Call, Constant, Expr, Function, IRModule, with_fields
from intarsia.op import call, rewrite_typed
from intarsia.passes.rules.tensor_facts import dtype_of, operator_name
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class DecomposeSwish(FunctionPass, opt_level=0, required=("InferType",)):
    """Replaces Swish, an operator since opset 24, for engines that have no kernel for it.

    Before:
        def @main(%x: Tensor[(2, 3), float32]) {
          Swish(%x)
        }
    After:
        def @main(%x: Tensor[(2, 3), float32]) {
          Mul(%x, Sigmoid(%x))
        }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without Swish."""
        after = rewrite_typed(function, _decomposed)
        assert isinstance(after, Function)
        return after


def _decomposed(expr: Expr) -> Expr:
    dtype = dtype_of(expr)
    if operator_name(expr) != "Swish" or dtype is None:
        return expr
    assert isinstance(expr, Call)
    x, alpha = expr.args[0], expr.attrs.get("alpha", 1.0)
    scaled = x if alpha == 1 else call("Mul", x, Constant(np.asarray(alpha, dtype.numpy)))
    return with_fields(call("Mul", x, call("Sigmoid", scaled)), checked_type=expr.checked_type)
