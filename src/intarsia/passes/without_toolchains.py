"""Take functions back from their toolchains: the program that was partitioned."""

from __future__ import annotations

from intarsia.ir import Expr, Function, IRModule, rewrite, with_fields, with_module_fields
from intarsia.ir.variant import variants
from intarsia.passes.inline import Inline
from intarsia.passes.remove_unused_functions import RemoveUnusedFunctions

_MARKS = ("Compiler", "global_symbol", "target")


def without_toolchains(mod: IRModule) -> IRModule:
    """Return a program without marks of toolchains: functions that were given to one are inlined.

    Variants of @main are left out: they compute what @main computes.

    Args:
        mod: The program, such as that of an artifact.
    """
    others = variants(mod)
    functions = {
        var: rewrite(item, _without_marks) if isinstance(item, Function) else item
        for var, item in mod.functions.items()
        if var.name not in others
    }
    marked = tuple(
        var.name
        for var, item in mod.graph_functions.items()
        if var.name in {after.name for after in functions} and "Compiler" in item.attrs
    )
    plain = with_module_fields(mod, functions=functions)  # type: ignore[arg-type]  # the rule keeps kinds
    return RemoveUnusedFunctions()(Inline(names=marked, literals=True)(plain))


def _without_marks(expr: Expr) -> Expr:
    if isinstance(expr, Function) and "Compiler" in expr.attrs:
        return with_fields(expr, attrs=expr.attrs.updated(**dict.fromkeys(_MARKS)))
    return expr
