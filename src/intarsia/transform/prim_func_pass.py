"""Passes that see one loop function at a time."""

from __future__ import annotations

from abc import abstractmethod

from intarsia.ir import IRModule, PrimFunc, with_module_fields
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.function_pass import SKIP_OPTIMIZATION
from intarsia.transform.pass_context import PassContext


class PrimFuncPass(Pass):
    """A pass over each loop function on its own; those marked `SkipOptimization` are left alone.

    Source: seed pass_infra, CreatePrimFuncPass.
    """

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Each sees the module as it was before the pass; changes apply when all are done."""
        functions = {
            var: self._prim_func(var.name, function, mod, ctx)
            if isinstance(function, PrimFunc) and SKIP_OPTIMIZATION not in function.attrs
            else function
            for var, function in mod.functions.items()
        }
        return with_module_fields(mod, functions=functions)

    def _prim_func(self, name: str, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        try:
            after = self.transform_prim_func(function, mod, ctx)
        except Exception as error:
            error.add_note(f"in loop function @{name}")
            raise
        if not isinstance(after, PrimFunc):
            raise UsageError(
                f"pass {self.info.name} returned {type(after).__name__} for @{name}, expected a PrimFunc",
                help="return the loop function that it was given if there is nothing to change",
            )
        return function if after == function else after

    @abstractmethod
    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """The loop function after the pass; `function` itself if nothing changes."""
