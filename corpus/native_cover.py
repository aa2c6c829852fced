"""Count the operators of a model that native has kernels for, and those that it refuses."""

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
    """Return the number of operator calls that native has kernels for, and the operators without one.

    If native runs the whole program, the calls are those of the partitioned program, in which loops may be
    unrolled; otherwise they are those of the model.

    Args:
        module: Imported model.
        whole: Outcome of the step that runs the whole program on native.

    Returns:
        `whole`: whether native runs the program, and computes all but control flow, sequences and optionals;
        `calls` and `covered`: number of calls, and of those that native computes; `refused`: number of calls
        of each refused operator; `opaque`: whether there are refused calls, all of opaque operators.
    """
    partitioned = _partition(module) if whole["status"] in {"right", "wrong"} else None
    calls = _calls_of(FoldConstant()(module)) if partitioned is None else _calls_of(partitioned)
    native = toolchain(_NATIVE)
    if partitioned is None:
        covered = [call for call in calls if native.supports(call)]
    else:
        covered = _calls_of(partitioned, compiler=_NATIVE)
    covered_set = set(covered)
    refused = [
        call
        for call in calls
        if call not in covered_set and not (is_control_flow(call) or is_of_data_structure(call))
    ]
    return {
        "status": "right",
        "whole": partitioned is not None and not refused,
        "calls": len(calls),
        "covered": len(covered),
        "refused": dict(Counter(str(call.op) for call in refused).most_common()),
        "opaque": bool(refused) and all(map(is_opaque, refused)),
    }


def is_control_flow(call: Call) -> bool:
    """Whether a call repeats a body, which the interpreter does."""
    return isinstance(call.op, Op) and not call.op.domain and call.op.name in _REPEATING


def _partition(module: IRModule) -> IRModule | None:
    """Return the program as it is built for native as a whole; None if it is refused."""
    try:
        return partition_whole(module, Target.for_toolchain(_NATIVE))
    except CompileError:
        return None


def _calls_of(module: IRModule, compiler: str | None = None) -> list[Call]:
    """Return the operator calls of all functions, or of those that a toolchain compiles."""
    functions = [item for item in module.functions.values() if isinstance(item, Function)]
    if compiler is not None:
        functions = [item for item in functions if item.attrs.get("Compiler") == compiler]
    calls = [expr for item in functions for expr in post_order(item) if isinstance(expr, Call)]
    return [call for call in calls if isinstance(call.op, Op)]
