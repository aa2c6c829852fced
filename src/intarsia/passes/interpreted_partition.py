"""A program with control flow for a toolchain that compiles none: its branches and bodies are compiled."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, Function, GlobalVar, If, IRModule, Op, post_order
from intarsia.op.operator_predicate import operator_predicate, takes_control_flow
from intarsia.passes.decompose_recurrent import MOST_STEPS
from intarsia.passes.infer_type import InferType
from intarsia.passes.outline_bodies import OutlineBodies
from intarsia.passes.partition_for import partition_for
from intarsia.passes.pipelines import default_heuristic
from intarsia.passes.recurrent.form import is_recurrent
from intarsia.passes.recurrent_to_scan import RecurrentToScan
from intarsia.target import Target
from intarsia.transform import PassContext

_BODY_OPERATORS: Final = frozenset({"Loop", "Scan"})


def interpreted_partition(module: IRModule, target: Target) -> IRModule | None:
    """Give a toolchain everything but the control flow of a program, which stays to be interpreted.

    Bodies of Loop and Scan become functions (`OutlineBodies`), recurrent layers that the toolchain refuses
    become scans (`RecurrentToScan`), and regions of what the toolchain supports are marked in all functions.
    The rest stays unmarked.

    Args:
        module: Typed.
        target: With the toolchain.

    Returns:
        The program; None if the toolchain takes control flow itself, if there is none, if the program is
        planned for devices, or if the toolchain supports nothing of it.
    """
    toolchain = str(target.toolchain)
    if takes_control_flow(toolchain) or not _needs_interpreter(module, toolchain) or _is_planned(module):
        return None
    context = PassContext()
    scanned = InferType()(RecurrentToScan(most_steps=MOST_STEPS)(module, context), context)
    simplified = default_heuristic()(scanned, context)
    outlined = InferType()(OutlineBodies()(simplified, context), context)
    partitioned = partition_for(outlined, str(target))
    is_marked = any("Compiler" in function.attrs for function in partitioned.graph_functions.values())
    return partitioned if is_marked else None


def _needs_interpreter(module: IRModule, toolchain: str) -> bool:
    """Whether a program branches, repeats, calls functions, or has a recurrent layer that becomes a Scan."""
    predicate = operator_predicate(toolchain)
    for expr in post_order(*module.graph_functions.values()):
        match expr:
            case If() | Call(op=GlobalVar()):
                return True
            case Call(op=Op(name=name, domain="")) if name in _BODY_OPERATORS:
                return True
            case Call() if is_recurrent(expr) and not predicate(expr):
                return True
            case _:
                pass
    return False


def _is_planned(module: IRModule) -> bool:
    functions = (item for item in module.graph_functions.values() if isinstance(item, Function))
    return any(expr.virtual_device.virtual_device_id is not None for expr in post_order(*functions))
