"""Decisions of several passes on kernels, timed together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.planned_meter import PlannedMeter
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var, structural_digest
from intarsia.native.graph import KernelDecisions
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.support.errors import UsageError
from intarsia.tune import Trace, TuningContext
from intarsia.tune.kernels import AS_IT_IS, kernel_groups
from intarsia.tune.passes import TuneFusionBorders, TuneKernelsJointly, TuneKernelThreads, TuneLayout
from intarsia.tune.run_control import RunControl
from intarsia.tune.target_options import marked_functions

NATIVE = "cpu -toolchain=native -threads=2"
SLOW, FAST = 60e-6, 30e-6
"""Seconds of a kernel by rule, and with a decision that it likes."""


def given() -> IRModule:
    """Three products with epilogues, of different sizes; the first one is the largest."""
    generator = np.random.default_rng(0)
    x = Var("x", checked_type=TensorType.of(np.zeros((16, 24), np.float32)))
    result: Expr = x
    for rows, columns in ((24, 96), (96, 32), (32, 40)):
        weight = Constant(generator.standard_normal((rows, columns)).astype(np.float32))
        result = call("Relu", call("MatMul", result, weight))
    return PartitionWhole(NATIVE)(IRModule.from_expr(Function((x,), result)))


def decided(mod: IRModule) -> dict[str, str]:
    """The text of the decisions on each group, by its key."""
    (text,) = {str(function.target.option("decisions") or "") for function in marked_functions(mod)}
    decisions = KernelDecisions.parse(text)
    return {key: str(decisions.of(key)) for key in keys() if str(decisions.of(key))}


def keys() -> list[str]:
    return [group.key for group in kernel_groups(given())]


@dataclass
class LikedDecisions(CostTable):
    """Times each kernel by a table; a program costs the sum of its kernels.

    The largest kernel is as fast as any can be.

    Attributes:
        liked: Text of the decision with which a kernel is fast, by its key.
        built: Decisions of the programs of each call that times kernels.
    """

    liked: dict[str, str] = field(default_factory=dict)
    built: list[list[dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cost = lambda mod: sum(self.seconds(mod))

    def seconds(self, mod: IRModule) -> tuple[float, ...]:
        texts = decided(mod)
        largest, *others = keys()
        rest = (FAST if self.liked.get(key) == texts.get(key, "") else SLOW for key in others)
        return (SLOW if largest in texts else FAST / 10, *rest)

    def time_kernels(self, candidates: Sequence[Trace], groups: Sequence[str]) -> list[tuple[float, ...]]:
        assert list(groups) == keys()
        self.built.append([decided(candidate.out_mod) for candidate in candidates])
        return [self.seconds(candidate.out_mod) for candidate in candidates]


THREADS_THEN_BORDERS = TuneKernelsJointly(passes=(TuneKernelThreads(), TuneFusionBorders()))


def test_likely_choices_of_all_kernels_are_one_program_and_the_others_come_later() -> None:
    _, first, second = keys()
    table = LikedDecisions(liked={first: "threads=1", second: "borders=0"})
    best = THREADS_THEN_BORDERS.tune(Trace(given()), TuningContext(table))
    assert decided(best.out_mod) == table.liked
    likely, others = [programs[1:] for programs in table.built if len(programs) > 1]
    assert [set(program) for program in likely] == [{first, second}], "one program, with a choice for each"
    assert all(program not in likely for program in others)


@dataclass
class TimedDecisions(PlannedMeter, LikedDecisions):
    """A table whose programs take a second each to build and time, by its own clock."""

    def time_kernels(self, candidates: Sequence[Trace], groups: Sequence[str]) -> list[tuple[float, ...]]:
        self.spent += len(candidates)
        return super().time_kernels(candidates, groups)


@pytest.mark.parametrize(
    ("seconds", "programs", "skipped"),
    [(100.0, [1, 2, 1, 2], []), (3.5, [1, 2], ["further choices of kernels: too little time is left"])],
    ids=["enough", "too little"],
)
def test_other_choices_are_built_where_there_is_time(
    seconds: float, programs: list[int], skipped: list[str]
) -> None:
    _, first, second = keys()
    table = TimedDecisions(liked={first: "threads=1", second: "borders=0"})
    control = RunControl(seconds=seconds, meter=table)
    best = THREADS_THEN_BORDERS.tune(Trace(given()), TuningContext(table, control=control))
    assert [len(row) for row in table.built] == programs
    assert [str(item)[: len(skipped[0])] for item in control.skipped] == skipped
    assert best.cost < sum(table.seconds(given())), "what the first round has gained is kept"


def test_a_kernel_is_not_changed_by_two_decisions_that_were_not_timed_together() -> None:
    _, first, second = keys()
    table = LikedDecisions(liked={first: "borders=0", second: "borders=0"})
    ctx = TuningContext(table)
    best = THREADS_THEN_BORDERS.tune(Trace(given()), ctx)
    assert decided(best.out_mod) == table.liked
    assert all(len(text.split(":")) == 1 for text in decided(best.out_mod).values())


def test_without_a_gain_the_program_stays() -> None:
    table = LikedDecisions()
    mod = given()
    assert THREADS_THEN_BORDERS(mod, TuningContext(table)) is mod
    assert sum(len(programs) - 1 for programs in table.built) == 2, "a program for each choice of a kernel"


def test_without_times_of_kernels_each_kernel_has_one_question() -> None:
    ctx = TuningContext(CostTable(lambda mod: float(len(decided(mod)))))
    best = THREADS_THEN_BORDERS.tune(Trace(given()), ctx)
    assert {step.decision for step in best.steps} == {AS_IT_IS}
    assert len(best.steps) == len(keys())


@dataclass
class PlantedFailure(LikedDecisions):
    """One decision fails, in one of the ways in which candidates do.

    Attributes:
        bad: Key of the kernel, and the text of the decision.
        is_built: Whether the program with it is built, and its kernels run: then its results are wrong.
    """

    bad: tuple[str, str] = ("", "")
    is_built: bool = False

    def __post_init__(self) -> None:
        self.cost = lambda mod: math.inf if self.fails(mod) else sum(self.seconds(mod))

    def fails(self, mod: IRModule) -> bool:
        key, text = self.bad
        return decided(mod).get(key) == text

    def time_kernels(self, candidates: Sequence[Trace], groups: Sequence[str]) -> list[tuple[float, ...]]:
        times = super().time_kernels(candidates, groups)
        nothing = (math.inf,) * len(groups)
        return [
            nothing if self.fails(candidate.out_mod) and not self.is_built else seconds
            for candidate, seconds in zip(candidates, times, strict=True)
        ]


@pytest.mark.parametrize("is_built", [False, True], ids=["does not run", "wrong results"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_failing_choice_of_a_kernel_costs_the_others_nothing(place: int, is_built: bool) -> None:
    kernels = keys()[1:]
    liked = dict.fromkeys(kernels, "threads=1")
    table = PlantedFailure(liked=liked, bad=(kernels[place], "threads=1"), is_built=is_built)
    best = TuneKernelsJointly(passes=(TuneKernelThreads(),)).tune(Trace(given()), TuningContext(table))
    assert decided(best.out_mod) == {kernels[1 - place]: "threads=1"}
    assert not best.has_failed


def test_a_choice_that_fails_is_named_and_not_tried_again() -> None:
    _, first, second = keys()
    table = PlantedFailure(liked={first: "threads=1", second: "threads=1"}, bad=(first, "threads=1"))
    ctx = TuningContext(table)
    TuneKernelsJointly(passes=(TuneKernelThreads(),)).tune(Trace(given()), ctx)
    (failed,) = [child.name for child in ctx.node.children if child.name.startswith("failed")]
    labels = {group.key: group.label for group in kernel_groups(given())}
    assert failed == f"failed: threads of {labels[first]}: one"
    alone = [program for programs in table.built for program in programs if program == {first: "threads=1"}]
    assert len(alone) == 1


@pytest.mark.processes
def test_what_is_decided_is_replayed() -> None:
    _, first, second = keys()
    table = LikedDecisions(liked={first: "threads=1", second: "borders=0"})
    best = THREADS_THEN_BORDERS.tune(Trace(given()), TuningContext(table))
    assert replayed_digest(best, __name__, "given") == structural_digest(best.out_mod)


def test_programs_without_native_are_left_alone() -> None:
    mod = PartitionWhole("cpu -toolchain=reference")(IRModule.from_expr(given()["main"]))
    assert TuneKernelsJointly()(mod, TuningContext(CostTable())) is mod


def test_other_passes_are_refused() -> None:
    with pytest.raises(UsageError, match="TuneLayout does not decide on kernels"):
        TuneKernelsJointly(passes=(TuneLayout(),))
    with pytest.raises(UsageError, match="there is no pass on kernels"):
        TuneKernelsJointly(passes=())
