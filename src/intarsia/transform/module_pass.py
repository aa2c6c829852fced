"""Passes that see the whole module: they may add and remove functions."""

from __future__ import annotations

from abc import abstractmethod

from intarsia.ir import IRModule
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.pass_context import PassContext


class ModulePass(Pass):
    """A pass over the whole program (seed pass_infra, module-level passes)."""

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module that `transform_module` makes."""
        return self.transform_module(mod, ctx)

    @abstractmethod
    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module after the pass; `mod` itself if nothing changes."""
