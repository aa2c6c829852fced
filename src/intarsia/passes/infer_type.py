"""Types of every expression, from those of its children."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakSet

from intarsia.ir import IRModule
from intarsia.op import infer_types, verify
from intarsia.transform import ModulePass, PassContext, register_pass
from intarsia.transform.program_check import PROGRAM_CHECKS

_CHECKED: WeakSet[IRModule] = WeakSet()
"""Modules that the pass has returned: it need not read them again."""

PROGRAM_CHECKS.register("operators", verify)


@register_pass
@dataclass(frozen=True)
class InferType(ModulePass):
    """Fills in the types that are not known, and checks the others (DESIGN section 2).

    Types are inferred when a call is built, and passes keep them; what is left are parsed programs without
    annotations, calls of recursive functions, and programs that were changed without `op.rewrite_typed`.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(2,), float32]) -> Tensor[(2,), float32] { Relu(%x) }
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with all types that can be known.

        Raises:
            InvalidModelError: Types that do not fit.
        """
        if mod in _CHECKED:
            return mod
        typed = infer_types(mod)
        _CHECKED.add(typed)
        return typed
