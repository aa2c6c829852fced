"""Joint tuning finds what tuning in a row misses, with real passes and real measurements.

(x W1) W2 is two products of a row with a matrix. As x (W1 W2) it is slower by far, as long as the product of
the two matrices is computed in each run; folding constants does nothing for the first form, and makes one
product of a row of the second. So each decision alone is rejected, and both together are best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    TensorType,
    Var,
    rewrite,
    with_fields,
    with_module_fields,
)
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.passes import InferType
from intarsia.target import Host, Target
from intarsia.transform import Pass, Sequential
from intarsia.tune import (
    Choice,
    Instruction,
    MeasuringEvaluator,
    Trace,
    TuningContext,
    TuningPass,
    transformation,
)

SIZE, WIDTH = 256, 4096
"""Each form differs from the next by a factor of 10 and more: other work runs beside tests."""
# onnxruntime would do both by itself.
TARGET = Target("cpu -toolchain=onnxruntime -threads=1 -optimize=0")
POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=2, repeats=5, min_repeats=5, min_repeat_seconds=1e-3)


@transformation
def reassociated(mod: IRModule) -> IRModule:
    """(x W1) W2 as x (W1 W2)."""

    def rule(expr: Expr) -> Expr:
        if isinstance(expr, Call) and isinstance(inner := expr.args[0], Call):
            return call("MatMul", inner.args[0], call("MatMul", inner.args[1], expr.args[1]))
        return expr

    main = mod["main"]
    body = rewrite(main.body, rule)
    functions = {mod.global_var("main"): with_fields(main, body=body)}
    return InferType()(with_module_fields(mod, functions=functions))


@dataclass(frozen=True)
class TuneAssociation(TuningPass):
    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        return [Instruction("association", {"right": Choice(reassociated), "left": Choice()})]


@dataclass(frozen=True)
class TuneFolding(TuningPass):
    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        return [Instruction("folding", {"on": Choice("FoldConstant"), "off": Choice()})]


def program() -> IRModule:
    random = np.random.default_rng(0)
    first, second = (
        Constant(random.standard_normal(shape).astype(np.float32) / 20)
        for shape in ((SIZE, WIDTH), (WIDTH, SIZE))
    )
    x = Var("x", checked_type=TensorType((1, SIZE), DType.FLOAT32))
    body = call("MatMul", call("MatMul", x, first), second)
    return InferType()(IRModule.from_expr(Function((x,), body)))


@pytest.fixture(scope="module")
def testbed() -> Iterator[LocalTestbed]:
    with LocalTestbed.open(Host.detect(), workers=1, limits=TestbedLimits(policy=POLICY)) as opened:
        yield opened


def products(mod: IRModule) -> int:
    return str(mod).count("MatMul(")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ([TuneAssociation(), TuneFolding()], 2),
        ([TuneFolding(), TuneAssociation()], 2),
        ([TuneAssociation((TuneFolding(),))], 1),
        ([TuneFolding((TuneAssociation(),))], 2),
    ],
    ids=["in a row", "in the other order", "jointly", "jointly in the wrong order"],
)
def test_only_joint_tuning_finds_the_best(testbed: LocalTestbed, passes: list[Pass], expected: int) -> None:
    mod = program()
    judge = MeasuringEvaluator(Workload(mod), TARGET, Measurer(testbed), metric="least")  # others work beside
    ctx = TuningContext(judge)
    found = Sequential(passes)(mod, ctx)
    assert products(found) == expected
    assert ctx.num_evals == 4
