"""`tune`: the fastest right candidate wins, and every other one has a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.faulty_toolchains import FORGETFUL, Forgetful, faulty_toolchains
from tests.onnx_models import model_of

import intarsia as ia
from intarsia.driver.progress import Progress, TuneStage
from intarsia.frontend.zoo import build_model
from intarsia.ir import DType, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.testbed import local
from intarsia.op import call
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import UnsupportedModelError, UsageError, VerificationError
from intarsia.tune.contest.candidate_record import CandidateRecord, Status

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The faulty ones, here and in the workers."""
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, "tests.faulty_toolchains_at_hand"))
    with faulty_toolchains():
        yield


def relu() -> IRModule:
    x = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call("Relu", x)))


def target(name: str) -> str:
    return f"cpu -toolchain={name}"


def fates(result: ia.TuneResult) -> dict[str, CandidateRecord]:
    return {record.name: record for record in result.candidates}


def test_a_program_with_a_loop_takes_part_on_native_as_one_candidate() -> None:
    text = """g (float[4,4] x, int64 n) => (float[4,4] y) {
        c = Constant <value = bool {1}>()
        y = Loop (n, c, x) <body = step (int64 i, bool on, float[4,4] s) => (bool go, float[4,4] t) {
          p = MatMul(s, x) t = Tanh(p) go = Identity(on) }> }"""
    inputs = {"x": np.eye(4, dtype=np.float32), "n": np.array(3)}
    names = ("native", "reference")
    result = ia.tune(
        ia.from_onnx(model_of(text)), inputs=inputs, budget="0.5s", targets=[target(name) for name in names]
    )
    found = fates(result)
    assert set(names) <= set(found)
    # A disturbed first measurement may rule it out of the race.
    assert found["native"].status in {Status.MEASURED, Status.SLOW}, found["native"].reason


@pytest.mark.parametrize("budget", ["0.2s", "5s"], ids=["without a search", "with a search"])
def test_a_program_with_a_branch_and_an_operator_without_kernel_is_unsupported(budget: str) -> None:
    text = """g (float[4,4] x, bool c) => (float[4,4] y, float z) {
        z = Det(x)
        y = If (c) <then_branch = a () => (float[4,4] t) { t = Relu(x) },
          else_branch = b () => (float[4,4] e) { e = Neg(x) }> }"""
    names = ("native", "reference")
    result = ia.tune(ia.from_onnx(model_of(text)), budget=budget, targets=[target(name) for name in names])
    record = fates(result)["native"]
    assert record.status is Status.UNSUPPORTED
    assert record.reason == (
        "native cannot compile this: it has no kernels for these calls of Det; the first at node 'z'"
    )


def test_only_a_right_candidate_wins_and_the_others_say_why() -> None:
    names = ("wrong", "failing", "refusing", "missing", "crashing", "right")
    result = ia.tune(relu(), budget="0.2s", targets=[target(name) for name in names])
    found = fates(result)
    assert result.chosen.name == "right"
    assert {name: record.status for name, record in found.items()} == {
        "right": Status.MEASURED,
        "wrong": Status.WRONG,
        "failing": Status.FAILED,
        "refusing": Status.UNSUPPORTED,
        "missing": Status.UNAVAILABLE,
        "crashing": Status.CRASHED,
    }
    assert found["failing"].reason == "the engine lost its nerve; in kernel main_failing"
    assert "operator 'Relu' is beneath this toolchain" in found["refusing"].reason
    assert "it is not installed" in found["missing"].reason
    assert 'output "output_0"' in found["wrong"].reason
    assert [record.timing is None for record in found.values()] == [False, True, True, True, True, True]


def test_nothing_right_is_an_error_that_tells_each_fate() -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        ia.tune(relu(), budget="0.2s", targets=[target("refusing"), target("failing")])
    assert caught.value.problem == (
        "no candidate computes the model right: "
        "refusing: unsupported: operator 'Relu' is beneath this toolchain; in kernel main_refusing; "
        "failing: failed: the engine lost its nerve; in kernel main_failing"
    )


def test_nothing_right_at_sizes_that_were_assumed_names_the_option_for_others() -> None:
    model = model_of("g (float[batch, 4] x) => (float[batch, 4] y) { y = Relu(x) }")
    with pytest.raises(UnsupportedModelError) as caught:
        ia.tune(model, budget="0.2s", targets=[target("refusing"), target("failing")])
    assert caught.value.help == (
        "it was tried with batch=1..8; if the model needs other sizes, give them: "
        "--shape batch=LOW..HIGH, or dims={...} in Python"
    )


def test_every_registered_toolchain_is_a_candidate_by_default() -> None:
    result = ia.tune(relu(), budget="0.2s")
    assert {"onnxruntime", "openvino", "reference", "missing"} <= set(fates(result))


def test_the_winner_is_the_fastest_measured_candidate() -> None:
    targets = [target("onnxruntime"), target("openvino")]
    # Without a search: a winner that was not shown to be faster than a toolchain by itself yields to that.
    result = ia.tune(build_model("mnist"), budget="1s", targets=targets, passes=[], partitions=False)
    first, second = result.candidates
    assert first.chosen
    assert first.timing is not None
    assert second.timing is not None
    # Who drops out of a race early may have the lower median, where the machine was disturbed later.
    is_slower_by_rounds = second.ratio is not None and second.ratio.ratio >= 1.0
    assert second.timing.median >= first.timing.median or is_slower_by_rounds
    assert first.ratio is None or first.ratio.ratio == 1.0  # no race where one looks hopeless


def test_the_executable_computes_what_the_reference_does(tmp_path: Path) -> None:
    result = ia.tune(relu(), budget="0.2s", targets=[target("onnxruntime")])
    x = np.array([[-1, 0, 1], [2, -3, 4]], np.float32)
    np.testing.assert_array_equal(result.executable(x), np.maximum(x, 0))
    path = tmp_path / "relu.intarsia"
    result.save(path)
    loaded = ia.load(path)
    np.testing.assert_array_equal(loaded(x=x), np.maximum(x, 0))
    assert loaded.self_test() == 0.0


def test_progress_goes_through_all_stages() -> None:
    seen: list[Progress] = []
    targets = [target("onnxruntime"), target("onnxruntime") + " -threads=1"]
    # Without a search, for which a fast machine has time.
    ia.tune(relu(), budget="1s", targets=targets, passes=[], partitions=False, on_progress=seen.append)
    stages = list(dict.fromkeys(item.stage for item in seen))
    assert stages[:3] == [TuneStage.IMPORT, TuneStage.REFERENCE, TuneStage.MEASURE]
    # On a busy machine one measurement can be three times the other: then nothing is left to race.
    assert stages[3:] in ([TuneStage.RACE], [])
    assert seen[-1].fraction == 1.0


def test_given_inputs_and_threads_are_used() -> None:
    x = np.full((2, 3), -5, np.float32)
    result = ia.tune(relu(), budget="0.2s", targets=[target("onnxruntime")], inputs={"x": x}, threads=1)
    np.testing.assert_array_equal(result.self_test.inputs[0], x)
    assert (
        result.chosen.target == "cpu -threads=1 -toolchain=onnxruntime"
        or "-threads=1" in result.chosen.target
    )


def test_the_result_is_plain_data() -> None:
    result = ia.tune(relu(), budget="0.2s", targets=[target("right"), target("wrong")])
    data = json.loads(json.dumps(result.to_json()))
    assert data["chosen"] == "right"
    assert data["candidates"][1]["status"] == "wrong"
    assert result.explain().startswith("model: right was chosen.\n  wrong: wrong: output")


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([], "the list of targets is empty"),
        (["cpu"], "the target 'cpu' names no toolchain"),
    ],
)
def test_bad_targets(targets: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ia.tune(relu(), targets=targets)
    assert caught.value.problem == message


def test_only_wrong_results_are_a_failed_verification() -> None:
    with pytest.raises(VerificationError) as caught:
        ia.tune(relu(), budget="0.2s", targets=[target("wrong")])
    assert caught.value.exit_code == 4


def test_random_models_are_told_apart_from_wrong_toolchains() -> None:
    x = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))
    module = IRModule.from_expr(Function((x,), call("RandomNormalLike", x)))
    with pytest.raises(VerificationError) as caught:
        ia.tune(module, budget="0.2s", targets=[target("reference")])
    assert caught.value.help == (
        "the model draws random numbers (RandomNormalLike), and results that depend on them cannot be checked"
    )


@pytest.mark.parametrize("toolchain", FORGETFUL)
def test_a_toolchain_that_is_right_at_first_only_does_not_win(toolchain: type[Forgetful]) -> None:
    module = relu()
    with TOOLCHAINS.holding(toolchain.name, toolchain):
        result = ia.tune(module, budget="0.2s", targets=[target(toolchain.name), target("right")])
    found = fates(result)
    assert result.chosen.name == "right"
    assert found[toolchain.name].status is Status.WRONG
    # Stale returns the result of the first call; the other one is right on the first call only.
    assert found[toolchain.name].reason.startswith("large inputs: output ")


def test_the_self_test_keeps_its_own_copy_of_the_inputs() -> None:
    x = np.ones((2, 3), np.float32)
    result = ia.tune(relu(), budget="0.2s", targets=[target("right")], inputs={"x": x})
    x[...] = -1
    np.testing.assert_array_equal(result.self_test.inputs[0], np.ones((2, 3), np.float32))


def test_targets_with_other_options_are_told_apart() -> None:
    targets = [f"{target('onnxruntime')} -threads={count}" for count in (1, 2)]
    result = ia.tune(relu(), budget="0.2s", targets=targets)
    assert set(fates(result)) == {"onnxruntime threads=1", "onnxruntime threads=2"}


def test_wrong_candidates_that_agree_cast_doubt_on_the_reference() -> None:
    names = ("right", "wrong", "also_wrong")
    found = fates(ia.tune(relu(), budget="0.2s", targets=[target(name) for name in names]))
    assert found["wrong"].status is Status.WRONG
    doubt = "; 'cpu -toolchain=wrong' agrees with it, so that the reference may be wrong"
    assert found["also_wrong"].reason.endswith(doubt)
    alone = fates(ia.tune(relu(), budget="0.2s", targets=[target("right"), target("wrong")]))
    assert "agrees" not in alone["wrong"].reason


def records_in(database: Database) -> list[MeasureRecord]:
    return [record for each in database.summaries() for record in database.records_of(each.workload)]


class TestDatabase:
    @pytest.fixture
    def database(self, tmp_path: Path) -> Iterator[Database]:
        with Database.open(tmp_path / "measurements.db") as opened:
            yield opened

    def test_the_same_run_again_measures_nothing(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What it found is told again; where that is lost, each measurement is found."""
        targets = [target("onnxruntime"), target("openvino"), target("wrong")]
        first = ia.tune(relu(), budget="1s", targets=targets, database=database)
        records = [record.measurements for record in records_in(database)]
        seen: list[Progress] = []
        again = ia.tune(relu(), budget="1s", targets=targets, database=database, on_progress=seen.append)
        assert [record.measurements for record in records_in(database)] == records
        assert again.candidates == first.candidates
        assert [progress for progress in seen if progress.measured is not None] == []
        monkeypatch.setattr(Database, "find_run", lambda *_: None)
        again = ia.tune(relu(), budget="1s", targets=targets, database=database, on_progress=seen.append)
        assert [record.measurements for record in records_in(database)] == records
        assert again.candidates == first.candidates
        measured = [progress.measured for progress in seen if progress.measured is not None]
        assert (measured[0].done, measured[0].stored) == (3, 3)
        # A fast machine has time for a search, which is found as well.
        assert all(item.done == item.stored for item in measured)

    def test_a_wish_to_stop_ends_with_the_best_so_far(self, database: Database) -> None:
        wishes: list[bool] = []

        def note(progress: Progress) -> None:
            wishes.extend([True] * (progress.measured is not None and progress.measured.done == 1))

        targets = [target("onnxruntime"), target("openvino")]
        result = ia.tune(
            relu(),
            budget="2s",
            targets=targets,
            database=database,
            on_progress=note,
            should_stop=lambda: bool(wishes),
        )
        assert result.stopped
        assert result.chosen.name == "onnxruntime"
        assert fates(result)["openvino"].status is Status.NOT_MEASURED


def test_trials_bound_what_is_measured() -> None:
    result = ia.tune(relu(), budget="2s", trials=1, targets=[target("onnxruntime"), target("openvino")])
    assert [record.status for record in result.candidates] == [Status.MEASURED, Status.NOT_MEASURED]
