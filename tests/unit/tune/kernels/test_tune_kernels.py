"""Decisions on native's kernels: what is asked, what is tried, and that traces can be replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.build import build
from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var, structural_digest
from intarsia.measure.database import Database
from intarsia.native.graph import KernelDecisions
from intarsia.native.roofline import Roofline
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.tune import Trace, TuningContext
from intarsia.tune.kernel_answers import KernelAnswers
from intarsia.tune.kernels import AS_IT_IS, KernelGroup, TuneKernels, decide_kernels, kernel_groups
from intarsia.tune.kernels.answer_features import choice_subject, kernel_features
from intarsia.tune.kernels.group_times import KernelTimes
from intarsia.tune.kernels.kernel_question import KernelQuestion
from intarsia.tune.passes import (
    TuneChannelBlocks,
    TuneConvolutionForms,
    TuneFusionBorders,
    TuneKernelThreads,
    TunePacking,
)
from intarsia.tune.target_options import marked_functions

NATIVE = "cpu -toolchain=native -threads=2"
SHAPE = (1, 12, 24, 7)


def weight(made: int, read: int, taps: int = 3) -> Constant:
    generator = np.random.default_rng(made * read)
    return Constant((generator.standard_normal((made, read, taps, taps)) / (taps * read**0.5)).astype("f4"))


def program() -> IRModule:
    """Two equal layers of 12 channels, and a softmax of what another convolution makes of them."""
    x = Var("x", checked_type=TensorType.of(np.zeros(SHAPE, np.float32)))
    found: Expr = x
    for _ in range(2):
        found = call("Relu", call("Conv", found, weight(12, 12), pads=(1, 1, 1, 1)))
    found = call("Conv", found, weight(16, 12, 1))
    return IRModule.from_expr(Function((x,), call("Softmax", found, axis=-1)))


def given() -> IRModule:
    """The program given to native."""
    return PartitionWhole(NATIVE)(program())


def decisions(mod: IRModule) -> KernelDecisions:
    (text,) = {str(function.target.option("decisions") or "") for function in marked_functions(mod)}
    return KernelDecisions.parse(text)


@dataclass
class TimedTable(CostTable):
    """An evaluator that times kernels by a table.

    Attributes:
        seconds: Function from decisions to the seconds of each group, by its key.
        timed: Number of candidates in each call.
    """

    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    timed: list[int] = field(default_factory=list)

    def time_kernels(self, candidates: Sequence[Trace], groups: Sequence[str]) -> list[tuple[float, ...]]:
        self.timed.append(len(candidates))
        return [
            tuple(self.seconds[key][str(decisions(candidate.out_mod).of(key))] for key in groups)
            for candidate in candidates
        ]


def seconds(pass_: TuneKernels, *times: tuple[float, ...]) -> dict[str, dict[str, float]]:
    """Seconds of each group of the program by its decision: by rule, and with the choices in order."""
    table: dict[str, dict[str, float]] = {}
    questions = {key: item for item in pass_.questions(groups(), "") for key in item.groups}
    for group, row in zip(groups(), times, strict=True):
        table[group.key] = {"": row[0]}
        choices = questions[group.key].choices.values() if group.key in questions else ()
        for choice, took in zip(choices, row[1:], strict=True):
            table[group.key][str(decisions(choice.apply(given())).of(group.key))] = took
    return table


def groups() -> tuple[KernelGroup, ...]:
    return kernel_groups(given())


def test_groups_have_their_work_and_equal_layers_are_one() -> None:
    found = {group.operators: group for group in groups()}
    assert set(found) == {("Conv", "Relu"), ("Conv",), ("Softmax",)}
    layers = found["Conv", "Relu"]
    assert layers.flop >= 2 * 2 * 12 * 12 * 9 * 24 * 7
    assert layers.calls == 3, "two layers, and the conversion of the input"
    assert (layers.threads, layers.rule.anchors) == (2, (0,))
    assert [group.key for group in kernel_groups(program(), NATIVE)] == [group.key for group in groups()]
    assert kernel_groups(program()) == ()
    assert kernel_groups(program(), "cpu -toolchain=reference") == ()
    assert kernel_groups(PartitionWhole("cpu -toolchain=reference")(program())) == ()


def test_without_times_all_questions_are_asked() -> None:
    ctx = TuningContext(CostTable())
    found = TuneKernelThreads().instructions(Trace(given()), ctx)
    assert [item.decisions for item in found] == [(AS_IT_IS, "one")] * 3
    assert {item.name.rpartition(" ")[0] for item in found} == {
        "threads of conv_relu",
        "threads of conv",
        "threads of softmax",
    }


def test_only_what_can_pay_is_tried_and_the_rest_is_said() -> None:
    tuned = TuneFusionBorders()
    layers = groups()[0].label
    table = TimedTable(seconds=seconds(tuned, (60.0, 50.0), (0.3,), (10.0,)))
    ctx = TuningContext(table)
    inside = ctx.for_candidates("pass", Trace(given()))
    (found,) = tuned.instructions(Trace(given()), inside)
    assert (found.name, found.decisions) == (f"kernels of {layers}", (AS_IT_IS, "epilogue apart"))
    assert table.timed == [1, 2]


@dataclass
class TableWithAnswers(TimedTable):
    """An evaluator that times kernels by a table, with answers of other models."""

    kernel_answers: KernelAnswers = field(default_factory=KernelAnswers)


def test_what_saved_nothing_on_similar_kernels_is_not_timed(tmp_path: Path) -> None:
    tuned, (first, *_) = TuneFusionBorders(), groups()
    times = seconds(tuned, (60.0, 50.0), (0.3,), (10.0,))
    questions = [item for item in tuned.questions(groups(), "") if item.groups == (first.key,)]
    subject, features = choice_subject(questions[0], "epilogue apart", [first]), kernel_features([first])
    with Database.open(tmp_path / "kept.db") as database:
        for number, after in enumerate((10.0, 10.5, 9.9)):
            KernelAnswers.read(database, "here", str(number)).keep(subject, features, 10.0, after)
        answers = KernelAnswers.read(database, "here", "this")
        table = TableWithAnswers(seconds=times, kernel_answers=answers)
        inside = TuningContext(table).for_candidates("pass", Trace(given()))
        (nothing,) = tuned.instructions(Trace(given()), inside)
        assert nothing.decisions == (AS_IT_IS,)
        assert table.timed == [1], "the program as it is, and no variant"
        assert any("similar kernels of other models" in child.name for child in inside.node.children)


def test_what_is_timed_answers_later_questions(tmp_path: Path) -> None:
    tuned, (first, *_) = TuneFusionBorders(), groups()
    times = seconds(tuned, (60.0, 50.0), (0.3,), (10.0,))
    with Database.open(tmp_path / "kept.db") as database:
        for model in ("one", "another"):
            table = TableWithAnswers(
                seconds=times, kernel_answers=KernelAnswers.read(database, "here", model)
            )
            tuned.instructions(Trace(given()), TuningContext(table))
        answers = KernelAnswers.read(database, "here", "this")
        (subject,) = answers.answers
        expected = answers.expect(subject, kernel_features([first]))
    assert expected is not None
    assert expected.mean == pytest.approx(1 / 6)


@dataclass
class TableWithRoofline(TimedTable):
    """An evaluator that times kernels by a table, on a machine with a roofline.

    Attributes:
        machine: The roofline.
    """

    machine: Roofline = field(default_factory=lambda: Roofline(1.0, 1.0, 0))

    def roofline(self, threads: int) -> Roofline:
        assert threads == 2
        return self.machine


def test_what_is_near_the_roofline_is_not_tried() -> None:
    """The first kernel is slower than the program's best rates, but as fast as the machine can be."""
    tuned = TuneFusionBorders()
    layers = groups()[0]
    times = seconds(tuned, (60.0, 50.0), (0.3,), (10.0,))

    def asked(machine: Roofline) -> tuple[str, ...]:
        table = TableWithRoofline(seconds=times, machine=machine)
        (instruction,) = tuned.instructions(Trace(given()), TuningContext(table))
        return instruction.decisions

    assert asked(Roofline(1e12, 1e12, 0)) == (AS_IT_IS, "epilogue apart")
    assert asked(Roofline(1e12, layers.bytes_moved / 60.0, 0)) == (AS_IT_IS,), "its bytes take that long"
    fast = max(group.flop / times[group.key][""] for group in groups())
    assert asked(Roofline(fast / 1e3, 1e12, 0)) == (AS_IT_IS, "epilogue apart"), "another kernel is faster"


def test_fewer_operations_do_not_beat_the_bytes() -> None:
    layers = groups()[0]
    times = KernelTimes({layers.key: 60.0}, {layers.key: layers}, Roofline(1.0, layers.bytes_moved / 50.0, 0))
    question = KernelQuestion("form", (layers.key,), {}, has_less_work=True)
    assert times.most_saved(question) == pytest.approx(10.0, rel=1e-3)
    assert replace(times, roofline=None).most_saved(question) == pytest.approx(30.0)


def test_a_bandwidth_that_a_larger_kernel_exceeds_was_measured_too_low() -> None:
    large, small = sorted(groups(), key=lambda group: -group.bytes_moved)[:2]
    roofline = Roofline(1e30, large.bytes_moved / 120.0, 0)  # the large one would take 120 s at least
    bound = 120.0 * small.bytes_moved / large.bytes_moved
    for took, share in ((60.0, 0.5), (120.0, 1.0), (240.0, 1.0)):
        seconds = {large.key: took, small.key: bound + 1.0}
        times = KernelTimes(seconds, {large.key: large, small.key: small}, roofline)
        question = KernelQuestion("form", (small.key,), {}, has_less_work=True)
        fewer = min(0.5 * (bound + 1.0), bound + 1.0 - share * bound)
        most = max(fewer, times.most_saved(replace(question, has_less_work=False)))
        assert times.most_saved(question) == pytest.approx(most, rel=1e-3, abs=1e-3)
        assert most <= bound + 1.0 - share * bound + 1e-3


def test_what_saves_nothing_alone_is_not_tried_on_the_program() -> None:
    tuned = TuneFusionBorders()
    table = TimedTable(seconds=seconds(tuned, (60.0, 61.0), (0.3,), (10.0,)))
    (found,) = tuned.instructions(Trace(given()), TuningContext(table))
    assert found.decisions == (AS_IT_IS,)


def test_what_may_be_noise_is_not_tried_on_the_program() -> None:
    tuned = TuneFusionBorders()
    table = TimedTable(seconds=seconds(tuned, (60.0, 58.0), (0.3,), (10.0,)))
    (found,) = tuned.instructions(Trace(given()), TuningContext(table))
    assert found.decisions == (AS_IT_IS,), "3 % of the program, but no more of the kernel"


def test_what_cannot_pay_is_not_even_timed() -> None:
    tuned = TuneKernelThreads()
    table = TimedTable(seconds=seconds(tuned, (60.0, 1.0), (30.0, 1.0), (10.0, 1.0)))
    ctx = TuningContext(table)
    mod = given()
    for _ in range(2):
        inside = ctx.for_candidates("pass", Trace(mod))
        (found,) = tuned.instructions(Trace(mod), inside)
        assert found.decisions == (AS_IT_IS,), "starting threads takes microseconds, these kernels seconds"
        assert "not tried: 3 decisions, share of the time x possible gain below 1%" in str(inside.node)
    assert table.timed == [1], "kernels of one program are timed once"


def test_choices_are_ordered_by_what_they_save() -> None:
    tuned = TuneKernelThreads()
    rows = [(60e-6, 50e-6), (60e-6, 40e-6), (1e-7, 1e-7)]
    ctx = TuningContext(TimedTable(seconds=seconds(tuned, *rows)))
    found = tuned.instructions(Trace(given()), ctx)
    layers, pointwise, _ = (group.label for group in groups())
    assert [item.name for item in found] == [f"threads of {pointwise}", f"threads of {layers}"]


@pytest.mark.processes
def test_the_best_choices_are_decided_together_and_replayed() -> None:
    tuned = TuneKernelThreads()
    rows = [(60e-6, 50e-6), (60e-6, 40e-6), (1e-7, 1e-7)]
    table = TimedTable(lambda mod: 10.0 - len(decisions(mod).by_key), seconds=seconds(tuned, *rows))
    best = tuned.tune(Trace(given()), TuningContext(table))
    layers, pointwise, _ = (group.key for group in groups())
    assert str(decisions(best.out_mod)) == ",".join(sorted([f"{layers}:threads=1", f"{pointwise}:threads=1"]))
    assert replayed_digest(best, __name__, "given") == structural_digest(best.out_mod)


def test_a_program_that_no_decision_makes_faster_stays() -> None:
    mod = given()
    assert TuneFusionBorders()(mod, TuningContext(CostTable())) is mod
    assert TuneChannelBlocks(target=NATIVE)(program_ := program(), TuningContext(CostTable())) is program_


def test_small_blocks_are_asked_where_the_channels_do_not_fit() -> None:
    found = {item.name: tuple(item.choices) for item in TuneChannelBlocks().questions(groups(), "")}
    lanes = {group.operators: group.lanes for group in groups()}
    assert len(found) == 2
    if lanes["Conv", "Relu"] == 8:
        assert set(found.values()) == {("4", "plain")}, "12 channels take 16 places"


@pytest.mark.slow
def test_attention_and_matrices_in_other_orders_can_be_split() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 32, 2, 16), np.float32)))
    heads = [call("Transpose", x, perm=perm) for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))]
    scores = call("Softmax", call("MatMul", heads[0], heads[1]), axis=-1)
    mod = IRModule.from_expr(Function((x,), call("Relu", call("MatMul", scores, heads[2]))))
    asked = TuneFusionBorders().questions(kernel_groups(mod, NATIVE), NATIVE)
    names = {name for item in asked for name in item.choices}
    assert {"products apart", "epilogue apart", "prologue apart"} <= names
    data = np.random.default_rng(0).standard_normal((1, 32, 2, 16)).astype(np.float32)
    (expected,) = build(mod).run_flat(data)
    for item in asked:
        for choice in item.choices.values():
            with build(choice.apply(mod)) as executable:
                (found,) = executable.run_flat(data)
                np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_decisions_join_those_that_were_made() -> None:
    first, second, _ = (group.key for group in groups())
    mod = decide_kernels(given(), {first: {"threads": "1"}})
    mod = decide_kernels(mod, {first: {"borders": "0"}, second: {"lanes": "0"}})
    assert str(decisions(mod)) == ",".join(sorted([f"{first}:threads=1:borders=0", f"{second}:lanes=0"]))


@pytest.mark.parametrize(
    "pass_",
    [TuneKernelThreads(), TuneChannelBlocks(), TuneConvolutionForms(), TunePacking(), TuneFusionBorders()],
)
def test_programs_that_give_nothing_to_native_are_left_alone(pass_: TuneKernels) -> None:
    mod = PartitionWhole("cpu -toolchain=reference")(program())
    (found,) = pass_.instructions(Trace(mod), TuningContext(CostTable()))
    assert found.decisions == (AS_IT_IS,)


def grouped_program(read: int, groups: int) -> IRModule:
    """Two grouped convolutions with as many results as inputs, behind each other."""
    x = Var("x", checked_type=TensorType.of(np.zeros((1, read * groups, 10, 10), np.float32)))
    result: Expr = x
    for _ in range(2):
        result = call(
            "Relu", call("Conv", result, weight(read * groups, read), pads=(1, 1, 1, 1), group=groups)
        )
    return IRModule.from_expr(Function((x,), result))


def test_forms_of_grouped_convolutions_are_asked_for_and_right() -> None:
    mod = PartitionWhole(NATIVE)(grouped_program(20, 4))
    questions = TuneConvolutionForms().questions(kernel_groups(mod), "")
    (question,) = questions
    assert question.name.split(" ")[0] == "form"
    assert "merged" in question.choices
    assert TuneConvolutionForms().questions(kernel_groups(given()), "") == [], "no layer has groups"
    data = np.random.default_rng(0).standard_normal((1, 80, 10, 10)).astype(np.float32)
    (expected,) = build(PartitionWhole("cpu -toolchain=reference")(grouped_program(20, 4))).run_flat(data)
    for choice in question.choices.values():
        with build(choice.apply(mod)) as executable:
            (result,) = executable.run_flat(data)
            np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-3, atol=1e-4)


def test_a_decided_form_is_replayed() -> None:
    mod = PartitionWhole(NATIVE)(grouped_program(20, 4))
    (question,) = TuneConvolutionForms().questions(kernel_groups(mod), "")
    trace = Trace(mod)
    trace.add(question.instruction(), "merged")
    assert ":form=merged" in str(decisions(trace.out_mod))
    replayed = Trace.from_json(trace.to_json(), mod)
    assert structural_digest(replayed.out_mod) == structural_digest(trace.out_mod)
