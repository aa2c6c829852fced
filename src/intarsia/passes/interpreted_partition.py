"""A program with control flow for a toolchain that compiles none: its branches and bodies are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from intarsia.ir import Call, Function, GlobalVar, If, IRModule, Op, post_order
from intarsia.op.data_structures import is_of_data_structure
from intarsia.op.operator_predicate import operator_predicate, takes_control_flow
from intarsia.passes.capture_states import CaptureStates
from intarsia.passes.decompose_recurrent import MOST_STEPS, is_short_layer
from intarsia.passes.infer_type import InferType
from intarsia.passes.interpreted_moves import with_interpreted_moves
from intarsia.passes.known_sizes import with_known_sizes
from intarsia.passes.outline_bodies import OutlineBodies
from intarsia.passes.partition_at_sizes import partition_at_sizes
from intarsia.passes.partition_for import partition_for
from intarsia.passes.pipelines import default_heuristic
from intarsia.passes.recurrent.form import is_recurrent
from intarsia.passes.recurrent_to_scan import RecurrentToScan
from intarsia.passes.refine_states import RefineStates
from intarsia.passes.select_branches import SelectBranches
from intarsia.passes.unroll_loops import UnrollLoops
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE
from intarsia.transform import PassContext

_BODY_OPERATORS: Final = frozenset({"Loop", "Scan"})
_MOST_SHOWN: Final = 8
_FEW_CALLS: Final = 64
"""Calls that loops become at most where nothing refuses them: the interpreter took 65 us for five small steps
that take 3 us as one kernel (Zen 4)."""


def interpreted_partition(module: IRModule, target: Target) -> IRModule | None:
    """Give a toolchain everything but the control flow of a program, which stays to be interpreted.

    Recurrent layers of many steps, or of any number, become scans (`RecurrentToScan`), states of loops get
    static types where they have them (`RefineStates`) or are captured (`CaptureStates`), small branches
    become a choice of values (`SelectBranches`), loops that become few calls are unrolled (`UnrollLoops`),
    bodies of others become functions (`OutlineBodies`), and regions of what the toolchain supports are marked
    in all functions. Where that leaves something, longer loops are unrolled. Operators of sequences and
    optionals are given to the reference: no toolchain of tensors has them, and they compute nothing. Anything
    else that the toolchain does not support is refused, as in a program without control flow: it is no
    program of this toolchain.

    Args:
        module: Typed.
        target: Target, with the toolchain.

    Returns:
        The program; None if the toolchain takes control flow itself, if there is none, if the program is
        planned for devices, or if the toolchain supports nothing of it.

    Raises:
        CompileError: The toolchain does not support an operator that is neither control flow nor of sequences
            or optionals.
    """
    toolchain = str(target.toolchain)
    if takes_control_flow(toolchain) or not _needs_interpreter(module, toolchain) or _is_planned(module):
        return None
    context = PassContext.current().inner()
    sized = with_known_sizes(InferType()(module, context))
    scanned = InferType()(RecurrentToScan(most_steps=MOST_STEPS)(sized, context), context)
    captured = CaptureStates()(RefineStates()(scanned, context), context)
    unrolled = UnrollLoops(most_calls=_FEW_CALLS)(SelectBranches()(captured, context), context)
    simplified = default_heuristic()(unrolled, context)
    partitioned = _with_regions(simplified, target, context)
    if any(unsupported_calls(partitioned)):  # perhaps because a shape depends on the number of an iteration
        unrolled = UnrollLoops()(simplified, context)
        if unrolled is not simplified:
            partitioned = _with_regions(default_heuristic()(unrolled, context), target, context)
    if all("Compiler" not in function.attrs for function in partitioned.graph_functions.values()):
        return None
    refuse_unsupported(partitioned, toolchain)
    return partition_for(partitioned, REFERENCE)  # takes operators of sequences


def _with_regions(module: IRModule, target: Target, context: PassContext) -> IRModule:
    """The program with bodies as functions, and regions of what the toolchain supports in all functions.

    If that leaves something, calls with symbolic dimensions count as supported where they are with sizes.
    """
    outlined = InferType()(OutlineBodies()(module, context), context)
    partitioned = partition_for(outlined, str(target))
    if not any(unsupported_calls(partitioned)):
        return partitioned
    moved = partition_for(with_interpreted_moves(outlined), str(target))
    sized = partition_at_sizes(moved, target, context)
    return partitioned if sized is None else sized


def unsupported_calls(partitioned: IRModule) -> Iterator[Call]:
    """Calls outside of marked functions that are neither control flow nor of sequences or optionals.

    Args:
        partitioned: A program in which all that a toolchain supports is marked for it.
    """
    functions = (item for item in partitioned.graph_functions.values() if "Compiler" not in item.attrs)
    for expr in post_order(*functions):
        match expr:
            case Call(op=Op(name=name, domain="")) if name in _BODY_OPERATORS:
                pass
            case Call(op=Op()) if not is_of_data_structure(expr):
                yield expr
            case _:
                pass


def refuse_unsupported(partitioned: IRModule, toolchain: str) -> None:
    """Refuse a program with calls that no marked function holds (`unsupported_calls`).

    Raises:
        CompileError: There are such calls; the message lists their operators.
    """
    calls = tuple(unsupported_calls(partitioned))
    if not calls:
        return
    names = list(dict.fromkeys(str(call.op) for call in calls))
    shown = ", ".join(names[:_MOST_SHOWN]) + (", ..." if len(names) > _MOST_SHOWN else "")
    error = CompileError(f"{toolchain} cannot compile this: it has no kernels for these calls of {shown}")
    first = calls[0].span
    if first is not None:
        error.add_note(f"the first at node {first.node!r}")
    raise error


def _needs_interpreter(module: IRModule, toolchain: str) -> bool:
    """Whether a program branches, repeats, calls functions, or has a recurrent layer that becomes a Scan."""
    predicate = operator_predicate(toolchain)
    for expr in post_order(*module.graph_functions.values()):
        match expr:
            case If() | Call(op=GlobalVar()):
                return True
            case Call(op=Op(name=name, domain="")) if name in _BODY_OPERATORS:
                return True
            case Call() if is_recurrent(expr) and not predicate(expr) and not is_short_layer(expr):
                return True  # a short one has a batch of any size, which the toolchain takes apart
            case _:
                pass
    return False


def _is_planned(module: IRModule) -> bool:
    functions = (item for item in module.graph_functions.values() if isinstance(item, Function))
    return any(expr.virtual_device.virtual_device_id is not None for expr in post_order(*functions))
