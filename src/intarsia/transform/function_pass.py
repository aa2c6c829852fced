"""Passes that see one graph function at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from intarsia.ir import Function, IRModule, with_module_fields
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.pass_context import PassContext

SKIP_OPTIMIZATION: Final = "SkipOptimization"
"""Attribute of functions that no function pass touches."""


def is_skipped(function: Function) -> bool:
    """Whether function passes leave a function alone: it is marked so, or belongs to a toolchain."""
    return SKIP_OPTIMIZATION in function.attrs or "Compiler" in function.attrs


class FunctionPass(Pass):
    """A pass over each graph function on its own (seed pass_infra, function-level passes).

    It cannot add or remove functions. Functions marked `SkipOptimization` or `Compiler` are left alone.
    """

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Each sees the module as it was before the pass; changes apply when all are done."""
        functions = {
            var: self._function(var.name, function, mod, ctx)
            if isinstance(function, Function) and not is_skipped(function)
            else function
            for var, function in mod.functions.items()
        }
        return with_module_fields(mod, functions=functions)

    def _function(self, name: str, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        try:
            after = self.transform_function(function, mod, ctx)
        except Exception as error:
            error.add_note(f"in function @{name}")
            raise
        if not isinstance(after, Function):
            raise UsageError(
                f"pass {self.info.name} returned {type(after).__name__} for @{name}, expected a Function",
                help="return the function that it was given if there is nothing to change",
            )
        return after

    @abstractmethod
    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function after the pass; `function` itself if nothing changes."""
