"""A small workload with candidates of all fates, for tests of testbeds."""

from __future__ import annotations

import numpy as np
import tests.unit.measure.odd_candidates as odd
from tests.ir_programs import relu, var

from intarsia.ir import Constant, Function, IRModule
from intarsia.measure.measure_input import Candidate, MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.testbed import Measured
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.target import Target

REFERENCE = Target("cpu -toolchain=reference")
POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=6, min_repeats=6, min_repeat_seconds=0)
LIMITS = TestbedLimits(build_seconds=4, run_seconds=60, memory_bytes=1 << 30, policy=POLICY)
PRELOAD = (odd.__name__,)


def program() -> IRModule:
    x = var()
    weights = Constant(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    return IRModule.from_expr(Function((x,), relu(call("Add", x, weights))))


WORKLOAD = Workload(program(), "small")

FATES = {
    "test right": MeasureError.OK,
    "test wrong": MeasureError.WRONG_ANSWER,
    "test nobody": MeasureError.COMPILE,
    "test raises": MeasureError.INSTANTIATION,
    "no such kind": MeasureError.INSTANTIATION,
    "test segfaults": MeasureError.CRASH,
    "test kills": MeasureError.CRASH,
    "test loops": MeasureError.BUILD_TIMEOUT,
}
"""Kinds of candidates, and what becomes of them."""


def candidate(kind: str = "test right", trace: int = 0, workload: Workload = WORKLOAD) -> MeasureInput:
    return MeasureInput(workload, REFERENCE, Candidate(kind, trace))


def one_of_each() -> list[MeasureInput]:
    return [candidate(kind, number) for number, kind in enumerate(FATES)]


def expect_fates(measured: list[Measured]) -> None:
    """Each of `one_of_each` has come once, with its fate."""
    found = {each.input.candidate.kind: each.outcome for each in measured}
    assert len(measured) == len(FATES)
    assert {kind: outcome.error for kind, outcome in found.items()} == FATES
    for kind, outcome in found.items():
        assert bool(outcome.costs) == (outcome.error is MeasureError.OK), kind
        assert bool(outcome.message) == (outcome.error is not MeasureError.OK), kind
