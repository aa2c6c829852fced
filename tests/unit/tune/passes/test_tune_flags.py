"""Options of toolchains as decisions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.partitioned_programs import partitioned, unpartitioned
from tests.replayed_traces import replayed_digest
from tests.speed_options import SPEED_OPTIONS
from tests.tuning_passes import CostTable

from intarsia.ir import IRModule, structural_digest
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target, TargetOption
from intarsia.transform import Sequential
from intarsia.transform.pass_trace import plain_options
from intarsia.transform.replay import made_pass
from intarsia.tune import Choice, Instruction, MeasuringEvaluator, Trace, TuningContext, TuningPass
from intarsia.tune.passes import TuneFlags, tune_flags
from intarsia.tune.strategy import Exhaustive, Greedy
from intarsia.tune.target_options import marked_functions

ONNXRUNTIME, NATIVE = "cpu -toolchain=onnxruntime", "cpu -toolchain=native"


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_flags, "usable_cores", lambda root: 4)


@dataclass(frozen=True)
class TuneToolchain(TuningPass):
    """Who gets the whole."""

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        return [
            Instruction("toolchain", [Choice("PartitionWhole", {"target": t}) for t in (ONNXRUNTIME, NATIVE)])
        ]


def program() -> IRModule:
    return partitioned(first=ONNXRUNTIME, second=NATIVE, third=ONNXRUNTIME)


def targets(mod: IRModule) -> dict[str, str]:
    return {each.name: str(each.target) for each in marked_functions(mod)}


def context(costs: dict[str, float] | None = None) -> TuningContext:
    """Each of the texts adds its cost for every target in which it stands."""

    def cost(mod: IRModule) -> float:
        texts = [str(each.target) for each in marked_functions(mod)]
        return 10 + sum(
            saved * sum(text in f"{each} " for each in texts) for text, saved in (costs or {}).items()
        )

    return TuningContext(CostTable(cost))


def test_flags_are_decided_one_after_the_other() -> None:
    ctx = context({"-threads=2 ": -4.0, "-spinning=false ": -1.0, "-memory_arena=false ": 2.0})
    flags = ("threads", "spinning", "memory_arena")
    best = TuneFlags(target=ONNXRUNTIME, flags=flags).tune(Trace(unpartitioned()), ctx)
    assert targets(best.out_mod) == {"main_onnxruntime": f"{ONNXRUNTIME} -spinning=false -threads=2"}
    assert [step.decision for step in best.steps] == ["Applied", "2", "false", "as it is"]
    assert ctx.num_evals == 1 + 2 + 1 + 1  # 4 threads are what it has
    assert ctx.counts.measured == ctx.num_evals


def test_what_changes_nothing_stays_as_it_is() -> None:
    mod, ctx = program(), context()
    assert TuneFlags()(mod, ctx) is mod
    assert ctx.num_evals == 1 + 2 * 2 + sum(
        len(option.values) - 1 for option in SPEED_OPTIONS if _is_here(option)
    )


def _is_here(option: TargetOption) -> bool:
    return bool({"onnxruntime", "native"} & set(option.toolchains))


def test_each_toolchain_has_decisions_of_its_own() -> None:
    ctx = context({"native -threads=1 ": -3.0, "onnxruntime -threads=2 ": -2.0})
    best = TuneFlags(flags=("threads",))(program(), ctx)
    one, two = f"{ONNXRUNTIME} -threads=2", f"{NATIVE} -threads=1"
    assert targets(best) == {"first": one, "second": two, "third": one}


def test_only_the_named_functions_and_toolchains_are_tuned() -> None:
    ctx = context({"-threads=1 ": -1.0})
    best = TuneFlags(flags=("threads",), functions=("third", "second"), toolchains=("onnxruntime",))(
        program(), ctx
    )
    assert targets(best) == {"first": ONNXRUNTIME, "second": NATIVE, "third": f"{ONNXRUNTIME} -threads=1"}


def test_a_program_without_the_toolchain_goes_through_as_one_candidate() -> None:
    mod, ctx = program(), context()
    assert TuneFlags(toolchains=("openvino",))(mod, ctx) is mod
    assert ctx.num_evals == 1


def test_going_back_to_the_default_leaves_the_option_out() -> None:
    ctx = context({"-spinning=false ": 5.0})
    mod = partitioned(first=f"{ONNXRUNTIME} -spinning=false")
    assert targets(TuneFlags(flags=("spinning",))(mod, ctx)) == {"first": ONNXRUNTIME}
    assert ctx.num_evals == 2


def test_numbers_of_threads_can_be_given() -> None:
    ctx = context({"-threads=3 ": -1.0})
    best = TuneFlags(flags=("threads",), threads=(1, 3, 4), target=NATIVE)(unpartitioned(), ctx)
    assert targets(best) == {"main_native": f"{NATIVE} -threads=3"}
    assert ctx.num_evals == 3


def test_as_an_eval_pass_it_decides_for_each_candidate() -> None:
    costs = {"onnxruntime ": 0.0, "native ": 3.0, "native -threads=1 ": -5.0, "onnxruntime -threads=1 ": 9.0}
    flags = TuneFlags(flags=("threads",), threads=(1, 4), strategy=Exhaustive())
    ctx = context(costs)
    joint = TuneToolchain((flags,))(unpartitioned(), ctx)
    assert targets(joint) == {"main_native": f"{NATIVE} -threads=1"}
    assert ctx.num_evals == 2 * 2
    ctx = context(costs)
    in_a_row = Sequential([TuneToolchain(), flags])(unpartitioned(), ctx)
    assert targets(in_a_row) == {"main_onnxruntime": ONNXRUNTIME}
    assert ctx.num_evals == 2 + 2


def test_the_pass_is_plain_data() -> None:
    item = TuneFlags(flags=("threads",), threads=(1, 2), target=NATIVE, strategy=Greedy(0.1))
    assert made_pass("TuneFlags", json.loads(json.dumps(plain_options(item)))) == item


@pytest.mark.slow
def test_a_trace_is_replayed_in_another_process() -> None:
    ctx = context({"-threads=1 ": -3.0, "-llvm_passes=O2 ": -1.0, "-graph_level=basic ": -1.0})
    best = TuneFlags().tune(Trace(program()), ctx)
    assert "-graph_level=basic -threads=1" in str(best.out_mod)
    assert replayed_digest(best, "tests.unit.tune.passes.test_tune_flags", "program") == structural_digest(
        best.out_mod
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TuneFlags(flags=("vibes",)), "unknown target option 'vibes'"),
        (lambda: TuneFlags(flags=("inference_precision",)), "changes results, so that it is no flag"),
        (lambda: TuneFlags(flags=("schedules",)), "-schedules has no values to choose from"),
        (lambda: TuneFlags(threads=(0,)), "target option -threads is 0; expected a whole number, at least 1"),
        (lambda: TuneFlags()(unpartitioned(), context()), "no target for the whole program is given"),
        (lambda: TuneFlags(target="cpu")(unpartitioned(), context()), "names no toolchain"),
    ],
)
def test_what_is_wrong_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.slow
def test_flags_of_a_real_engine_are_measured() -> None:
    policy = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=3, min_repeats=3, min_repeat_seconds=0)
    mod, limits = unpartitioned(), TestbedLimits(policy=policy)
    with LocalTestbed.open(Host.detect(), workers=1, limits=limits) as testbed:
        judge = MeasuringEvaluator(Workload(mod), Target(ONNXRUNTIME), Measurer(testbed), by_decisions=True)
        ctx = TuningContext(judge)
        item = TuneFlags(target=NATIVE, flags=("threads", "llvm_passes"), threads=(1, 2))
        item(mod, ctx)
    assert ctx.counts.measured == ctx.num_evals == 1 + 2 + 3
    assert str(ctx.node).count(" ms") == ctx.num_evals
