"""Calls of small functions become what they compute."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Function, IRModule
from intarsia.passes.functions.call_inlining import Inlining, inline_calls
from intarsia.passes.functions.sealed import is_sealed
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class Inline(ModulePass, opt_level=1):
    """Replaces calls of global functions that are marked `Inline=1` by their bodies.

    Nothing else is inlined unless it is named: whether a call is worth its function's size is for the
    writer of the program, or a tuning pass, to say. Each call gets variables of its own, and an argument is
    evaluated once, as before. Recursive functions stay, as do functions that passes skip or that belong to a
    toolchain. The function stays in the module: see RemoveUnusedFunctions.

    Before:
        def @main(%x: Tensor[(2,), float32]) { @twice(Relu(%x)) }
        def @twice(%y: Tensor[(2,), float32]) attributes {Inline=1} { Add(%y, %y) }
    After:
        def @main(%x: Tensor[(2,), float32]) { %0 = Relu(%x); Add(%0, %0) }
        def @twice(%y: Tensor[(2,), float32]) attributes {Inline=1} { Add(%y, %y) }

    Attributes:
        names: Further global functions whose calls are replaced.
        literals: Whether calls of function literals that are used nowhere else are replaced, too; not those
            that are fused, matched for a toolchain or given to one.
    """

    names: tuple[str, ...] = ()
    literals: bool = False

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module without those calls."""
        return inline_calls(mod, Inlining(self._is_inlined, self._is_literal_inlined))

    def _is_inlined(self, name: str, function: Function) -> bool:
        return bool(function.attrs.get("Inline")) or name in self.names

    def _is_literal_inlined(self, literal: Function, uses: int) -> bool:
        return self.literals and uses == 1 and not is_sealed(literal)
