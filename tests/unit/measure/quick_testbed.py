"""A small workload, and a place to measure it in no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tests.unit.measure.hazards as hazards
from tests.ir_programs import relu, var

from intarsia.ir import Constant, Function, IRModule
from intarsia.measure.measure_input import Candidate, MeasureInput, Workload
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.target import Host, Target

REFERENCE = Target("cpu -toolchain=reference")
POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=6, min_repeats=6, min_repeat_seconds=0)
"""Few calls, and the same number in each process: seven and one that is compared; in races one each turn."""

HOST = Host.detect()
MEMORY = 512 << 20


def small_program() -> IRModule:
    """Relu of a sum with a constant."""
    x = var()
    weights = Constant(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    return IRModule.from_expr(Function((x,), relu(call("Add", x, weights))))


WORKLOAD = Workload(small_program(), "small")


def as_input(candidate: Candidate) -> MeasureInput:
    """The candidate for the small workload."""
    return MeasureInput(WORKLOAD, REFERENCE, candidate)


def quick_testbed(parent: Path, limit_s: float = 60.0) -> LocalTestbed:
    """A testbed of two builders whose workers know `hazards`; a task may add `MEMORY`."""
    limits = TestbedLimits(limit_s, limit_s, MEMORY, POLICY, turn=POLICY)
    return LocalTestbed.open(HOST, workers=2, limits=limits, preload=(hazards.__name__,), parent=parent)
