"""What native takes of a model, and why it refuses the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

from intarsia.ir import Call, Function, GlobalVar, IRModule, Op, post_order
from intarsia.passes import FoldConstant
from intarsia.toolchain import toolchain


def native_cover(module: IRModule, whole: dict[str, Any]) -> dict[str, Any]:
    """Return the share of operator calls that native has kernels for, and the operators without one.

    Args:
        module: The imported model.
        whole: What became of the program that was given to native as a whole.
    """
    native = toolchain("native")
    refused: Counter[str] = Counter()
    calls = [call for call in _calls(FoldConstant()(module)) if isinstance(call.op, Op)]
    for call in calls:
        if not native.supports(call):
            refused[str(call.op)] += 1
    takes_whole = whole["status"] in {"right", "wrong"}
    return {
        "status": "right",
        "whole": takes_whole,
        "calls": len(calls),
        "covered": len(calls) if takes_whole else len(calls) - refused.total(),
        "refused": {} if takes_whole else dict(refused.most_common()),
    }


def _calls(module: IRModule) -> list[Call]:
    functions = [function for function in module.functions.values() if isinstance(function, Function)]
    found = [expr for function in functions for expr in post_order(function) if isinstance(expr, Call)]
    return [call for call in found if not isinstance(call.op, GlobalVar)]
