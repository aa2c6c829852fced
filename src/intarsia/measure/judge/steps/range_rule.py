"""Outputs made of steps of single elements: Floor, Round, comparisons, Equal, and logic on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from intarsia.ir import Expr, IRModule
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.bounds import bounds_of, leaves
from intarsia.measure.judge.steps.movement import outputs_of
from intarsia.measure.judge.steps.range_check import RangeCheck
from intarsia.support.errors import IntarsiaError


class RangeRule:
    """Elements between the smallest and the largest right value."""

    def exposed(self, module: IRModule) -> Mapping[str, Expr]:
        """See CheckRule.exposed."""
        return {
            key: expr
            for number in range(len(outputs_of(module)))
            for expr, key in _keys(module, number).items()
        }

    def checks(self, module: IRModule, runs: ReferenceRuns) -> Sequence[OutputCheck]:
        """See CheckRule.checks."""
        checks: list[OutputCheck] = []
        for number, output in enumerate(outputs_of(module)):
            keys = _keys(module, number)
            try:
                bounds = bounds_of(output, keys, runs) if keys else None
            except IntarsiaError:
                continue
            expected = runs.outputs[number]
            if bounds is None or bounds.low.shape != expected.shape:
                continue
            low = np.minimum(bounds.low.astype(expected.dtype), expected)
            high = np.maximum(bounds.high.astype(expected.dtype), expected)
            checks.append(RangeCheck(number, runs.names[number], expected, low, high))
        return checks


def _keys(module: IRModule, number: int) -> dict[Expr, str]:
    """Names of the values that an output's bounds need."""
    return {leaf: f"step{number}.{i}" for i, leaf in enumerate(leaves(outputs_of(module)[number]))}
