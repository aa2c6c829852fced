"""A program as a judge runs it."""

from __future__ import annotations

from intarsia.ir import Expr, Function, IRModule, with_fields, with_module_fields
from intarsia.op.opaque import is_defined, opaque_operators
from intarsia.op.rewrite_typed import rewrite_typed
from intarsia.passes import partition_for, partition_whole
from intarsia.passes.interpreted_partition import refuse_unsupported
from intarsia.target import Target, VirtualDevice
from intarsia.target.reference import REFERENCE_TARGET


def judged_program(module: IRModule, target: Target) -> IRModule:
    """Give a program to a judge, but for registered operators: their reference functions compute them.

    So several judges confirm what surrounds such an operator, and none of them judges the operator by the
    compute rule that is on trial.

    Args:
        module: Program without marked toolchains.
        target: Target of the judge.

    Raises:
        CompileError: Beside registered operators the program has an operator that the judge does not support.
    """
    is_mixed = target != REFERENCE_TARGET and any(item.is_defined for item in opaque_operators(module))
    if not is_mixed:
        return partition_whole(module, target)
    functions = {
        var: rewrite_typed(function, _given_to_reference) if isinstance(function, Function) else function
        for var, function in module.functions.items()
    }
    marked = with_module_fields(module, functions=functions)  # type: ignore[arg-type]  # the rule keeps kinds
    partitioned = partition_for(marked, str(target))
    refuse_unsupported(partitioned, str(target.toolchain))
    return partitioned


def _given_to_reference(expr: Expr) -> Expr:
    if not is_defined(expr):
        return expr
    device = VirtualDevice(REFERENCE_TARGET.device_type, target=REFERENCE_TARGET)
    return with_fields(expr, virtual_device=device)
