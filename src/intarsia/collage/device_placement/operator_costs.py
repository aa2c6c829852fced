"""What each operator of a program costs on each device, by whoever evaluates candidates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from intarsia.collage.device_placement.device_program import DeviceProgram
from intarsia.collage.device_placement.device_targets import device_targets
from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Var,
    structural_digest,
    with_fields,
)
from intarsia.measure.device_timing import timed_on_device
from intarsia.target import UNCONSTRAINED, Target, VirtualDevice
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import Evaluator, evaluator_of_part
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.whole_evaluator import WholeEvaluator


def operator_seconds(
    program: DeviceProgram, devices: Sequence[VirtualDevice], toolchains: Sequence[str], evaluator: Evaluator
) -> dict[Call, tuple[float, ...]]:
    """Seconds of each call on each device, alone, by the best of the device's toolchains.

    On a GPU it is timed without copies, which the placement has as well (`measure.device_timing`). Equal
    operators on equal values, and devices of one target, share an evaluation. Where it fails, as for
    an operator that the toolchain refuses, the cost is infinite.

    Args:
        program: Program with the calls; its values are tensors of static shape.
        devices: Devices that they may run on.
        toolchains: Toolchains for devices whose target names none.
        evaluator: Evaluator of the calls' costs, called with programs of one operator.

    Raises:
        UsageError: No toolchain compiles for a device.
        IntarsiaError: Measuring is impossible.
    """
    targets = [device_targets(device, toolchains) for device in devices]
    seconds_of: dict[tuple[str, Target], float] = {}
    seconds = {}
    for call in program.calls:
        part = operator_program(call)
        digest = structural_digest(part)
        for target in dict.fromkeys(chain.from_iterable(targets)):
            if (digest, target) not in seconds_of:
                seconds_of[digest, target] = _seconds(part, target, evaluator_of_part(evaluator, part))
        seconds[call] = tuple(min(seconds_of[digest, target] for target in row) for row in targets)
    return seconds


def operator_program(call: Call) -> IRModule:
    """A call as a program of its own: constants stay, other values become parameters, each once."""
    params: dict[Expr, Var] = {}
    args: list[Expr] = []
    for arg in call.args:
        if isinstance(arg, Constant):
            args.append(with_fields(arg, virtual_device=UNCONSTRAINED))
        elif isinstance(arg.checked_type, TensorType):
            args.append(params.setdefault(arg, Var(f"p{len(params)}", checked_type=arg.checked_type)))
        else:
            args.append(arg)  # what is absent
    bare = with_fields(call, args=tuple(args), virtual_device=UNCONSTRAINED)
    return IRModule.from_expr(Function(tuple(params.values()), bare))


def _seconds(part: IRModule, target: Target, evaluator: Evaluator) -> float:
    target = timed_on_device(target)
    given = Instruction("placement", {"whole": Choice("PartitionWhole", {"target": str(target)})})
    (found,) = WholeEvaluator(evaluator, target, given, "whole").evaluate([Trace(part)])
    return found.perf
