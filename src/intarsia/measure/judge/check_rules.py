"""Assign checks to the outputs of a program.

A rule claims outputs with numbers that cannot be compared one by one, such as the indices of a TopK. It may
expose inner values of the program: the judges then compute them as further outputs. Outputs that no rule
claims
are judged by their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from intarsia.ir import Expr, IRModule
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.numeric_check import NumericCheck, real_parts
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.quantised_outputs import quantised_outputs
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.inner_steps import InnerStepRule
from intarsia.measure.judge.steps.pick_rule import PickRule
from intarsia.measure.judge.steps.range_check import RangeCheck
from intarsia.measure.judge.steps.range_rule import RangeRule
from intarsia.measure.judge.steps.selection_rule import SelectionRule
from intarsia.measure.judge.steps.suppression_rule import SuppressionRule
from intarsia.measure.judge.tolerance import EXACT, QUANTIZATION_STEP, Tolerance, tolerance_for
from intarsia.measure.judge.tolerance_check import ToleranceCheck
from intarsia.measure.work import Work

_FLOATS: Final = frozenset({ElementKind.FLOAT, ElementKind.COMPLEX})
_JUMP: Final = (2.0**-8, 2.0**-2)
"""Between these fractions of the slack, noise is a jump. The slack is 8 times the RMS change of runs with
forced steps. A run in which one of many steps flips is off by 1/32 of that change or more, one in which all
flip by twice of it at most."""
_ONE_STEP: Final = Tolerance(atol=1.0)


class CheckRule(Protocol):
    """A rule that makes checks for outputs that are not plain numbers."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """Return the values of @main, outside of branches and bodies, that its checks need, by key."""

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """Return the checks of the outputs that it claims.

        Args:
            module: The program.
            runs: Results of the judges; an exposed value is missing if no judge could compute it.
        """


CHECK_RULES: Final[list[CheckRule]] = [
    PickRule(),
    SelectionRule(),
    SuppressionRule(),
    RangeRule(),
    InnerStepRule(),
]
"""The first rule that claims an output has it."""


def exposed_values(module: IRModule) -> dict[str, Expr]:
    """Return the exposed values of all rules."""
    return {key: expr for rule in CHECK_RULES for key, expr in rule.exposed(module).items()}


def output_checks(module: IRModule, runs: ReferenceRuns, work: Work) -> tuple[OutputCheck, ...]:
    """Return the checks of all outputs of a program.

    Args:
        module: The program.
        runs: Results of the judges.
        work: The work of the program.
    """
    checks: list[OutputCheck] = []
    claimed: set[int] = set()
    for rule in CHECK_RULES:
        for check in rule.checks(module, runs):
            if not claimed & set(check.positions):
                checks.append(check)
                claimed |= set(check.positions)
    steps = quantised_outputs(module)
    rest = (number for number in range(len(runs.outputs)) if number not in claimed)
    checks += [_default_check(number, runs, work, steps.get(number)) for number in rest]
    return tuple(sorted(checks, key=lambda check: check.positions))


def _default_check(position: int, runs: ReferenceRuns, work: Work, step: float | None) -> OutputCheck:
    name, expected, noise = runs.names[position], runs.outputs[position], runs.spreads[position]
    kind, slack = element_kind(expected.dtype), runs.slacks[position]
    flips = [array != 0 for array in (noise, slack) if array is not None]
    if kind is ElementKind.INTEGER and step is None and not work.quantized and flips:
        return _flipping_check(position, name, expected, np.logical_or.reduce(flips))
    if kind not in _FLOATS:
        return ToleranceCheck(position, name, expected, EXACT if step is None else _ONE_STEP)
    if noise is None or expected.dtype.itemsize == 1:
        tolerance = tolerance_for(expected.dtype, work.reduction_length, work.depth, work.quantized)
        return ToleranceCheck(position, name, expected, tolerance)
    allowed = max(_step(expected, noise), step or 0.0) if work.quantized else 0.0
    if slack is not None:
        noise = _without_jumps(noise, slack)
    return NumericCheck(position, name, expected, noise, allowed, slack=slack)


def _without_jumps(noise: Array, slack: Array) -> Array:
    """Return the noise with 0 at jumps of steps, which are no noise of the surrounding rows and columns.

    The noise of elements that may jump but did not in any run stays: without it the noise of a group would be
    that of the few elements that are left, which may have none by chance.
    """
    least, most = _JUMP
    is_jump = (noise > least * slack) & (noise <= most * slack)
    return np.where(is_jump, 0, noise).astype(noise.dtype)


def _flipping_check(position: int, name: str, expected: Array, flips: Array) -> OutputCheck:
    """Return a check of integers that accepts any value where trusted runs differ."""
    if not flips.any():
        return ToleranceCheck(position, name, expected, EXACT)
    is_truth = expected.dtype == np.bool_
    least, most = (False, True) if is_truth else (np.iinfo(expected.dtype).min, np.iinfo(expected.dtype).max)
    low, high = (np.where(flips, end, expected).astype(expected.dtype) for end in (least, most))
    return RangeCheck(position, name, expected, low, high)


def _step(expected: Array, noise: Array) -> float:
    """Return the difference that one flipped rounding may cause: at least one step of 8 bits."""
    values = real_parts(expected)
    extent = float(values.max(initial=0.0) - values.min(initial=0.0))
    extent = extent if math.isfinite(extent) else 0.0
    flipped = float(noise.max(initial=0.0, where=noise < math.inf))
    return max(2.0 * flipped, 1.5 * extent * QUANTIZATION_STEP)
