"""A pass on some functions of a module only."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from intarsia.ir import Function, IRModule, PrimFunc, with_module_fields
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.function_pass import SKIP_OPTIMIZATION
from intarsia.transform.module_pass import ModulePass
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_registry import register_pass


@register_pass
@dataclass(frozen=True)
class ApplyPassToFunction(ModulePass):
    """Runs a pass, and keeps its changes to functions with a wholly matching name; the others stay.

    Functions that the pass adds are kept, whatever their name. Passes that it requires do not run by
    themselves; `Sequential([a_pass])` runs them too, on the same functions.

    Attributes:
        applied: The pass.
        pattern: Regular expression for names of functions.
        error_if_no_match: Whether it is an error that no function matches.

    Raises:
        UsageError: `applied` is no pass.
    """

    applied: Pass
    pattern: str
    error_if_no_match: bool = False

    def __post_init__(self) -> None:
        """Check what is often given instead of a pass."""
        if not isinstance(self.applied, Pass):
            raise UsageError(
                f"ApplyPassToFunction takes a pass, got {self.applied!r}",
                help="get_pass makes a pass of a name, parentheses one of a class",
            )

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with the matching functions transformed.

        Raises:
            UsageError: The pattern is no regular expression, or nothing matches and something should.
        """
        try:
            matches = re.compile(self.pattern).fullmatch
        except re.error as error:
            raise UsageError(f"{self.pattern!r} is no regular expression: {error}") from None
        others = {var: f for var, f in mod.functions.items() if matches(var.name) is None}
        if len(others) == len(mod.functions):
            if self.error_if_no_match:
                known = ", ".join(f"@{var.name}" for var in mod.functions) or "none"
                raise UsageError(f"no function matches {self.pattern!r}", help=f"the module has: {known}")
            return mod
        shown = {var: _skipped(function) for var, function in others.items()}
        after = self.applied(with_module_fields(mod, functions={**mod.functions, **shown}), ctx)
        names = {var.name: function for var, function in others.items()}
        kept = {var: names.pop(var.name, function) for var, function in after.functions.items()}
        lost = {var: function for var, function in others.items() if var.name in names}
        return with_module_fields(mod, functions={**kept, **lost}, attrs=after.attrs)


def _skipped(function: Function | PrimFunc) -> Function | PrimFunc:
    """The function, marked so that function passes need not work on it."""
    attrs = function.attrs.updated(**{SKIP_OPTIMIZATION: 1})
    return replace(function, attrs=attrs)
