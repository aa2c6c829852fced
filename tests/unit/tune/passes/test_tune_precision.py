"""Narrower types within a bound, as decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isfinite

import pytest
from tests.partitioned_programs import partitioned, unpartitioned
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.ir import IRModule, structural_digest
from intarsia.measure.judge.accuracy import error_bound
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.transform.pass_trace import plain_options
from intarsia.transform.replay import made_pass
from intarsia.tune import Choice, Instruction, MeasuringEvaluator, Trace, TuningContext, TuningPass
from intarsia.tune.passes import TuneFlags, TunePrecision

OPENVINO, REFERENCE = "cpu -toolchain=openvino -threads=1", "cpu -toolchain=reference"
POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=3, min_repeats=3, min_repeat_seconds=0)
WORKLOAD = Workload(unpartitioned())


def program() -> IRModule:
    return partitioned(first=REFERENCE, second=OPENVINO)


def context(**costs: float) -> TuningContext:
    """A narrower type costs what is said of it: less than 1 pays."""

    def cost(mod: IRModule) -> float:
        text = str(mod)
        found = 10.0
        for dtype, factor in costs.items():
            if f"-inference_precision={dtype}" in text:
                found *= factor
            if f"Tensor[(64, 64), {dtype}]" in text:
                found *= 2 * factor
        return found

    return TuningContext(CostTable(cost))


def test_each_toolchain_is_decided_on() -> None:
    ctx = context(float16=0.4, bfloat16=0.6)
    best = TunePrecision(tolerance=0.01).tune(Trace(program()), ctx)
    assert [step.decision for step in best.steps] == ["float16", "float16"]
    assert ctx.num_evals == 1 + 2 + 2
    assert error_bound(best.out_mod) == 0.01


def test_it_may_pay_for_one_toolchain_only() -> None:
    ctx = context(float16=0.9, bfloat16=0.8)
    best = TunePrecision(tolerance=0.01).tune(Trace(program()), ctx)
    assert [step.decision for step in best.steps] == ["bfloat16", "as it is"]


@pytest.mark.parametrize("factor", [1.0, 0.99, inf])
def test_as_it_is_wins_ties(factor: float) -> None:
    mod = program()
    found = TunePrecision(tolerance=0.01)(mod, context(float16=factor, bfloat16=factor))
    assert found is mod
    assert error_bound(found) is None


def test_other_toolchains_and_types_are_left_alone() -> None:
    ctx = context(float16=0.1, bfloat16=0.2)
    item = TunePrecision(tolerance=0.01, toolchains=("openvino",), precisions=("bfloat16",))
    best = item.tune(Trace(program()), ctx)
    assert [step.decision for step in best.steps] == ["bfloat16"]
    assert ctx.num_evals == 2


def test_a_program_without_the_toolchain_goes_through_as_one_candidate() -> None:
    mod, ctx = program(), context()
    assert TunePrecision(tolerance=0.01, toolchains=("native",))(mod, ctx) is mod
    assert ctx.num_evals == 1


def test_flags_are_decided_for_each_precision() -> None:
    ctx = context(float16=0.1)
    flags = TuneFlags(flags=("partitioner",))
    item = TunePrecision((flags,), tolerance=0.01, target=OPENVINO, precisions=("float16",))
    best = item.tune(Trace(unpartitioned()), ctx)
    assert [step.decision for step in best.steps] == ["Applied", "float16", "as it is"]
    assert ctx.num_evals == 2 * 2


@dataclass(frozen=True)
class TuneToolchain(TuningPass):
    """Who gets the whole."""

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        return [
            Instruction("toolchain", [Choice("PartitionWhole", {"target": t}) for t in (REFERENCE, OPENVINO)])
        ]


def test_as_an_eval_pass_it_decides_for_each_candidate() -> None:
    ctx = context(float16=0.8)
    item = TunePrecision(tolerance=0.01, precisions=("float16",))
    best = TuneToolchain((item,)).tune(Trace(unpartitioned()), ctx)
    assert [step.decision for step in best.steps] == ["1", "float16"]
    assert ctx.num_evals == 2 * 2


def test_the_pass_is_plain_data() -> None:
    item = TunePrecision(tolerance=0.01, precisions=("bfloat16",), toolchains=("openvino",))
    assert made_pass("TunePrecision", json.loads(json.dumps(plain_options(item)))) == item


@pytest.mark.slow
def test_a_trace_is_replayed_in_another_process() -> None:
    best = TunePrecision(tolerance=0.01).tune(Trace(program()), context(float16=0.1, bfloat16=0.2))
    assert replayed_digest(
        best, "tests.unit.tune.passes.test_tune_precision", "program"
    ) == structural_digest(best.out_mod)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TunePrecision(tolerance=0), "the error bound is 0; expected a positive number"),
        (lambda: TunePrecision(tolerance=0.1, precisions=()), "there is no precision to choose"),
        (lambda: TunePrecision(tolerance=0.1, precisions=("int8",)), "dtype is 'int8'"),
        (
            lambda: TunePrecision(tolerance=0.1)(unpartitioned(), context()),
            "no target for the whole program is given",
        ),
    ],
)
def test_what_is_wrong_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


@pytest.fixture(scope="module")
def testbed() -> Iterator[LocalTestbed]:
    with LocalTestbed.open(Host.detect(), workers=1, limits=TestbedLimits(policy=POLICY)) as opened:
        yield opened


def lowered(dtype: str, tolerance: float) -> Trace:
    """A program of three layers in which the reference computes in a narrower type."""
    item = TunePrecision(tolerance=tolerance, precisions=(dtype,), target=REFERENCE)
    ctx = context(**{dtype: 0.1})
    return item.tune(Trace(WORKLOAD.module), ctx)


@pytest.mark.slow
@pytest.mark.parametrize("by_decisions", [False, True])
def test_the_bound_is_kept_and_loosens_nothing_else(testbed: LocalTestbed, by_decisions: bool) -> None:
    judge = MeasuringEvaluator(WORKLOAD, Target(REFERENCE), Measurer(testbed), by_decisions=by_decisions)
    within, beyond = lowered("bfloat16", 0.05), lowered("bfloat16", 1e-4)
    unbounded = Trace(WORKLOAD.module)
    unbounded.add(Instruction("precision", [Choice("ToMixedPrecision", {"dtype": "bfloat16"})]), "0")
    found = judge.evaluate([within, beyond, unbounded])
    assert isfinite(found[0].perf)
    assert [each.perf for each in found[1:]] == [inf, inf]
    assert all("wrong answer" in each.fate for each in found[1:])


@pytest.mark.slow
def test_precision_of_a_real_engine_is_measured(testbed: LocalTestbed) -> None:
    judge = MeasuringEvaluator(WORKLOAD, Target(OPENVINO), Measurer(testbed), by_decisions=True)
    ctx = TuningContext(judge)
    best = TunePrecision(tolerance=0.05, target=OPENVINO).tune(Trace(WORKLOAD.module), ctx)
    assert ctx.counts.measured == 3
    assert best.perf is not None
    assert 0 < best.perf < 1
    assert "wrong" not in str(ctx.node)
