"""The inverse of fusion."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Function, IRModule
from intarsia.passes.functions.call_inlining import Inlining, inline_calls
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class DefuseOps(ModulePass, opt_level=1):
    """Replaces calls of functions marked `Primitive` by their bodies; undoes FuseOps.

    Literals and global functions alike; recursive functions and those given to a toolchain stay. After
    FuseOps the program is structurally equal to what it was before. Global functions stay, uncalled: see
    RemoveUnusedFunctions.

    Before:
        def @main(%x: Tensor[(2,), float32]) {
          %0 = fn (%p: Tensor[(2,), float32]) attributes {Primitive=1} { Neg(Relu(%p)) };
          %0(%x)
        }
    After:
        def @main(%x: Tensor[(2,), float32]) { Neg(Relu(%x)) }
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module without calls of them."""
        return inline_calls(mod, Inlining(_is_fused_global, _is_fused_literal))


def _is_fused_global(_: str, function: Function) -> bool:
    return "Primitive" in function.attrs


def _is_fused_literal(literal: Function, _: int) -> bool:
    return "Primitive" in literal.attrs
