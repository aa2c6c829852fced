"""What native takes of a model, and why it refuses the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from intarsia.ir import Call, Function, IRModule, Op, post_order
from intarsia.op.data_structures import is_of_data_structure
from intarsia.op.opaque import is_opaque
from intarsia.passes import FoldConstant, partition_whole
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain import toolchain

_NATIVE: Final = "native"
_REPEATING: Final = frozenset({"Loop", "Scan"})


def native_cover(module: IRModule, whole: dict[str, Any]) -> dict[str, Any]:
    """Return how many operator calls native has kernels for, and the operators without one.

    Where native takes the whole program, the calls are those of what is built of it: loops may be unrolled
    there. Else they are those of the model.

    Args:
        module: The imported model.
        whole: What became of the program that was given to native as a whole.

    Returns:
        `whole`: whether native runs the program, and computes all but control flow, sequences and optionals;
        `calls` and `covered`: the number of calls, and of those that native computes; `refused`: how often it
        refuses which operator; `opaque`: whether it refuses some, and these are all opaque.
    """
    divided = _divided(module) if whole["status"] in {"right", "wrong"} else None
    calls = _calls_of(FoldConstant()(module)) if divided is None else _calls_of(divided)
    native = toolchain(_NATIVE)
    if divided is None:
        covered = [call for call in calls if native.supports(call)]
    else:
        covered = _calls_of(divided, compiler=_NATIVE)
    taken = set(covered)
    refused = [
        call
        for call in calls
        if call not in taken and not (is_control_flow(call) or is_of_data_structure(call))
    ]
    return {
        "status": "right",
        "whole": divided is not None and not refused,
        "calls": len(calls),
        "covered": len(covered),
        "refused": dict(Counter(str(call.op) for call in refused).most_common()),
        "opaque": bool(refused) and all(map(is_opaque, refused)),
    }


def is_control_flow(call: Call) -> bool:
    """Whether a call repeats a body, which the interpreter does."""
    return isinstance(call.op, Op) and not call.op.domain and call.op.name in _REPEATING


def _divided(module: IRModule) -> IRModule | None:
    """Return the program as it is built for native as a whole; None if it is refused."""
    try:
        return partition_whole(module, Target.for_toolchain(_NATIVE))
    except CompileError:
        return None


def _calls_of(module: IRModule, compiler: str | None = None) -> list[Call]:
    """Return the calls of operators in all functions, or in those that are given to a toolchain."""
    functions = [item for item in module.functions.values() if isinstance(item, Function)]
    if compiler is not None:
        functions = [item for item in functions if item.attrs.get("Compiler") == compiler]
    found = [expr for item in functions for expr in post_order(item) if isinstance(expr, Call)]
    return [call for call in found if isinstance(call.op, Op)]
