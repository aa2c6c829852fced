"""Dropping of global functions that nothing reaches."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import IRModule, with_module_fields
from intarsia.ir.variant import variants
from intarsia.passes.functions.call_graph import CallGraph
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class RemoveUnusedFunctions(ModulePass, opt_level=1):
    """Drops global functions, graph and loop functions, that are not reachable from the entries.

    A function that carries `global_symbol` is dropped as well, unless it is an entry: calls are found by
    name of the function, never by symbol. A module that has none of the entries is a library, of which
    nothing can be said to be unused, and stays as it is. Variants of @main are entries as @main is.

    Before:
        def @main(%x: Tensor[(2,), float32]) { @used(%x) }
        def @used(%x: Tensor[(2,), float32]) { Relu(%x) }
        def @unused(%x: Tensor[(2,), float32]) { @used(%x) }
    After:
        def @main(%x: Tensor[(2,), float32]) { @used(%x) }
        def @used(%x: Tensor[(2,), float32]) { Relu(%x) }

    Attributes:
        entry: Names of the functions that are called from outside.
    """

    entry: tuple[str, ...] = ("main",)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module without them."""
        roots = self.entry if "main" not in self.entry else (*self.entry, *variants(mod))
        reachable = CallGraph.of(mod).reachable(roots)
        if not reachable:
            return mod
        functions = {var: one for var, one in mod.functions.items() if var.name in reachable}
        return with_module_fields(mod, functions=functions)
