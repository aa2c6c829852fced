"""Find the pass that changes a program's results: bisection by the numeric gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target
from intarsia.transform import Bisection, Pass, PassContext, bisect_passes

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a program's results.

    Attributes:
        is_right: Whether its results agree with the reference.
        max_error: Largest difference relative to the reference's largest value; None if it could not run.
        message: Message of the error, or "".
    """

    is_right: bool
    max_error: float | None
    message: str


@dataclass(frozen=True, slots=True)
class PassBisection:
    """The result of a search for a wrong pass, with the verdict on each program that was run.

    Attributes:
        bisection: The passes, and the wrong one.
        verdicts: Verdicts by the program that was run (identity).
        reference: Origin of the reference result, for messages.
    """

    bisection: Bisection
    verdicts: Mapping[IRModule, Verdict]
    reference: str


def find_wrong_pass(
    mod: IRModule,
    sequence: Pass,
    inputs: Mapping[str, Array],
    target: Target,
    *,
    exhaustive: bool = False,
    ctx: PassContext | None = None,
) -> PassBisection:
    """Find the first pass of a sequence after which a program computes something else.

    Args:
        mod: The program; its own result on the reference toolchain is what is right.
        sequence: The passes.
        inputs: Arrays by parameter name.
        target: Target for the programs between the passes; functions that passes marked keep their
            toolchains.
        exhaustive: Whether to run the program after every pass that changed it.
        ctx: Level and names to run the passes under; default: the current context.

    Raises:
        ExecutionError: Not even the reference computes the program before the passes.
    """
    gate = Gate.for_module(mod, inputs)
    verdicts: dict[IRModule, Verdict] = {}

    def is_right(candidate: IRModule) -> bool:
        if candidate not in verdicts:
            verdicts[candidate] = judge_program(candidate, inputs, target, gate)
        return verdicts[candidate].is_right

    bisection = bisect_passes(sequence, mod, is_right, exhaustive=exhaustive, ctx=ctx)
    return PassBisection(bisection, verdicts, gate.reference)


def judge_program(mod: IRModule, inputs: Mapping[str, Array], target: Target, gate: Gate) -> Verdict:
    """Run a program and judge it; a program that cannot be compiled or run is wrong too.

    Args:
        mod: The program; functions that passes marked keep their toolchains.
        inputs: Arrays by parameter name.
        target: Target for a program without marked functions.
        gate: Expected result for these inputs.
    """
    is_partitioned = any("Compiler" in function.attrs for function in mod.graph_functions.values())
    try:
        executable = build(mod if is_partitioned else partition_whole(mod, target))
        report = gate.check(run_arrays(executable, inputs))
    except IntarsiaError as error:
        return Verdict(False, None, error.problem)
    return Verdict(report.passed, report.max_rel_error, "" if report.passed else report.message)
