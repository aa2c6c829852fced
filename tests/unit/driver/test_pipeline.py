"""`tune` with tuning passes: what they decide on the program takes part as candidates for the whole model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.faulty_toolchains import faulty_toolchains

import intarsia as ia
from intarsia.collage.placement.plan import Plan
from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.tuning_pipelines import deciding_passes
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.testbed import Measured, local
from intarsia.op import call
from intarsia.passes import FoldConstant
from intarsia.report.tuning_record import TuningRecord
from intarsia.support.errors import UsageError
from intarsia.tune.passes import TunePipeline

pytestmark = pytest.mark.processes

TARGET = "cpu -toolchain=right"
SIZE = 384


@pytest.fixture(autouse=True)
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, "tests.faulty_toolchains_at_hand"))
    with faulty_toolchains():
        yield


def wasteful() -> IRModule:
    """Products of constants, which `default_heuristic` computes once and for all; this toolchain does not."""
    x = Var("x", checked_type=TensorType((1, SIZE), DType.FLOAT32))
    weights = Constant(np.eye(SIZE, dtype=np.float32) / 2)
    square = call("MatMul", weights, call("MatMul", weights, call("MatMul", weights, weights)))
    return IRModule.from_expr(Function((x,), call("MatMul", x, square)))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "measurements.db") as found:
        yield found


def test_the_winner_is_what_was_decided(tmp_path: Path, database: Database) -> None:
    seen: list[Progress] = []
    path = tmp_path / "wasteful.plan"
    result = ia.tune(
        wasteful(), budget="60s", targets=[TARGET], database=database, plan=path, on_progress=seen.append
    )
    assert (result.chosen.name, result.chosen.is_whole) == ("right tuned", False)
    assert result.explanation.decisions == ("pipeline: default_heuristic",)
    assert TuneStage.TUNE in {progress.stage for progress in seen}
    x = np.ones((1, SIZE), np.float32)
    np.testing.assert_allclose(result.executable(x), x / 16, rtol=1e-6)

    (tree,) = result.explanation.tuning
    assert tree.name == "tuning"
    assert chosen(tree) >= {"default_heuristic"}
    assert any("TunePipeline" in note for note in result.explanation.notes)

    kept = Plan.read(path)
    assert kept == result.plan
    assert [text for text, _ in kept.decisions] == ["pipeline: default_heuristic"]
    again = ia.tune(wasteful(), budget="60s", targets=[TARGET], database=database)
    assert again.finished_at is not None
    assert again.plan.is_same(result.plan)
    locked = ia.tune(wasteful(), plan=path, locked=True)
    np.testing.assert_allclose(locked.executable(x), x / 16, rtol=1e-6)
    assert locked.plan.is_same(result.plan)
    result.save(tmp_path / "wasteful.intarsia")
    np.testing.assert_allclose(ia.load(tmp_path / "wasteful.intarsia")(x), x / 16, rtol=1e-6)


def chosen(record: TuningRecord) -> set[str]:
    """Decisions that a pass has chosen."""
    own = {record.name} if record.is_chosen else set()
    return own.union(*map(chosen, record.children))


def test_heuristic_passes_alone_take_part_too() -> None:
    result = ia.tune(wasteful(), budget="60s", targets=[TARGET], passes=[FoldConstant()])
    assert result.explanation.decisions == ("InferType: Applied", "FoldConstant: Applied")


@pytest.mark.parametrize("asked", [{"passes": []}, {"passes": ["TuneLayout"]}], ids=["none", "no images"])
def test_what_decides_nothing_changes_nothing(asked: dict[str, list[str]]) -> None:
    result = ia.tune(wasteful(), budget="60s", targets=[TARGET], passes=asked["passes"])
    assert [record.name for record in result.candidates] == ["right"]
    assert result.explanation.decisions == ()


def test_trials_are_a_budget_for_everything() -> None:
    """The baseline is one trial; the rest goes to the passes, as with a budget of seconds."""
    asked: list[str] = []
    measure = local.LocalTestbed.measure

    def noted(testbed: local.LocalTestbed, inputs: Sequence[MeasureInput]) -> Iterator[Measured]:
        asked.extend(item.candidate.digest for item in inputs)
        return measure(testbed, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local.LocalTestbed, "measure", noted)
        result = ia.tune(wasteful(), budget="30s", trials=3, targets=[TARGET])
    assert result.chosen.name == "right tuned"
    assert 1 < len(asked) <= 3


def test_what_the_trials_do_not_suffice_for_is_said() -> None:
    notes: list[str] = []
    result = ia.tune(wasteful(), budget="30s", trials=1, targets=[TARGET], on_note=notes.append)
    assert result.chosen.name == "right"
    assert any("the baselines have used the 1 trials" in note for note in notes)
    assert any("the baselines have used the 1 trials" in note for note in result.explanation.notes)


def test_what_decides() -> None:
    names = [item.info.name for item in deciding_passes(None, None)]
    assert names == [item.info.name for item in deciding_passes("default_tuning", None)]
    assert "TunePipeline" in names
    assert deciding_passes(None, ["TunePipeline"]) == (TunePipeline(),)
    assert deciding_passes(None, []) == ()
    with pytest.raises(UsageError, match="either a pipeline or passes"):
        deciding_passes("default_tuning", [])
    with pytest.raises(UsageError, match="unknown pipeline 'fast'"):
        deciding_passes("fast", None)
    with pytest.raises(UsageError, match="unknown pass 'Fast'"):
        ia.tune(wasteful(), targets=[TARGET], passes=["Fast"])


def test_a_locked_run_decides_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a locked run takes no passes"):
        ia.tune(wasteful(), plan=tmp_path / "any.plan", locked=True, passes=[])
