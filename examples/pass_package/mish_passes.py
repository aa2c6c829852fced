"""A pass and a pipeline that Intarsia finds by the entry point in pyproject.toml."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, IRModule, Op
from intarsia.op import call, rewrite_typed
from intarsia.transform import FunctionPass, PassContext, Sequential, register_pass, register_pipeline


@register_pass
@dataclass(frozen=True)
class FuseMish(FunctionPass, opt_level=1, required=("InferType",)):
    """Fuse `x * tanh(softplus(x))`, as exporters to old opsets write it, into Mish.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Mul(%x, Tanh(Softplus(%x))) }
    After:
        def @main(%x: Tensor[(2,), float32]) { Mish(%x) }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Return the function with fused Mish calls."""
        after = rewrite_typed(function, _fuse)
        assert isinstance(after, Function)
        return after


@register_pipeline("mish")
def mish() -> Sequential:
    """Return the pipeline: FuseMish, after InferType, which it requires."""
    return Sequential([FuseMish()])


def _fuse(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name="Mul", domain=""), args=(x, gate)) if _is_gate(gate, x):
            return call("Mish", x)
        case Call(op=Op(name="Mul", domain=""), args=(gate, x)) if _is_gate(gate, x):
            return call("Mish", x)
        case _:
            return expr


def _is_gate(gate: Expr, x: Expr) -> bool:
    """Whether `gate` is tanh(softplus(x))."""
    match gate:
        case Call(
            op=Op(name="Tanh", domain=""), args=(Call(op=Op(name="Softplus", domain=""), args=(inner,)),)
        ):
            return inner is x
        case _:
            return False
