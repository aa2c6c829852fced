"""`tune` with partitions: several toolchains run a model that none of them runs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import tests.picky_toolchains as picky

import intarsia as ia
from intarsia.collage.placement.placement import Placement
from intarsia.driver.progress import Progress, TuneStage
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate, MeasureInput, PlainData
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import Measured, local
from intarsia.op import call
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import UnsupportedModelError, UsageError
from intarsia.tune.contest.candidate_record import Status

pytestmark = pytest.mark.processes

TARGETS = ("cpu -toolchain=no_relu", "cpu -toolchain=no_tanh")


@pytest.fixture(autouse=True)
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, picky.__name__))
    with (
        TOOLCHAINS.holding("no_relu", picky.NoRelu),
        TOOLCHAINS.holding("no_tanh", picky.NoTanh),
        holding_operator_predicate("no_relu", picky.NoRelu().supports),
        holding_operator_predicate("no_tanh", picky.NoTanh().supports),
    ):
        yield


def planted() -> IRModule:
    """Relu, which one toolchain lacks, and Tanh, which the other one lacks, between what both can."""
    x = Var("x", checked_type=TensorType((4, 8), DType.FLOAT32))
    weights = Constant(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    value: Expr = call("MatMul", x, weights)
    value = call("Relu", value)
    value = call("MatMul", value, weights)
    return IRModule.from_expr(Function((x,), call("Tanh", value)))


def reference(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    weights = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    return np.asarray(np.tanh(np.maximum(x @ weights, 0) @ weights), np.float32)


def test_what_nobody_runs_alone_is_divided(tmp_path: Path) -> None:
    seen: list[Progress] = []
    with Database.open(tmp_path / "measurements.db") as database:
        result = ia.tune(planted(), budget="20s", targets=TARGETS, database=database, on_progress=seen.append)
        assert not result.chosen.is_whole
        fates = {record.name: record for record in result.candidates}
        assert fates["no_relu"].status is fates["no_tanh"].status is Status.UNSUPPORTED
        assert "no_relu has no Relu" in fates["no_relu"].reason
        again = ia.tune(planted(), budget="20s", targets=TARGETS, database=database)
        assert again.chosen == result.chosen
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_allclose(result.executable(x), reference(x), rtol=1e-5)
    result.save(tmp_path / "planted.intarsia")
    np.testing.assert_allclose(ia.load(tmp_path / "planted.intarsia")(x), reference(x), rtol=1e-5)
    assert TuneStage.TUNE in {progress.stage for progress in seen}


@pytest.mark.parametrize("budget", ["1s", "20s"])
@pytest.mark.parametrize("searches_again", [False, True], ids=["told", "searched"])
def test_the_second_run_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str, *, searches_again: bool
) -> None:
    """What it found is told again; and if that is lost, what was measured counts as if it took time again."""
    asked: list[str] = []
    measure, race = local.LocalTestbed.measure, local.LocalTestbed.race

    def noted_measure(testbed: local.LocalTestbed, inputs: Sequence[MeasureInput]) -> Iterator[Measured]:
        asked.extend(item.workload.name for item in inputs)
        return measure(testbed, inputs)

    def noted_race(
        testbed: local.LocalTestbed, racers: Mapping[str, MeasureInput], limits: RaceLimits
    ) -> Raced:
        asked.append("race")
        return race(testbed, racers, limits)

    monkeypatch.setattr(local.LocalTestbed, "measure", noted_measure)
    monkeypatch.setattr(local.LocalTestbed, "race", noted_race)
    with Database.open(tmp_path / "measurements.db") as database:
        first = ia.tune(planted(), budget=budget, targets=TARGETS, database=database)
        assert asked
        asked.clear()
        if searches_again:
            monkeypatch.setattr(Database, "find_run", lambda *_: None)
        second = ia.tune(planted(), budget=budget, targets=TARGETS, database=database)
    assert asked == []
    assert second.candidates == first.candidates
    assert (second.finished_at is None) == searches_again
    assert second.plan.is_same(first.plan)
    assert second.explanation.chosen == first.explanation.chosen


def test_a_target_names_its_rule() -> None:
    """In this process and in the workers, which see the target as text."""
    named = "cpu -toolchain=reference -partition_rule=library"
    (record,) = ia.tune(planted(), budget="1s", targets=[named]).candidates
    assert (record.target, record.status) == (named, Status.MEASURED)


def test_an_unknown_rule_is_told_before_anything_is_measured() -> None:
    seen: list[Progress] = []
    with pytest.raises(UsageError, match="unknown partition rule 'best'") as caught:
        ia.tune(planted(), targets=[f"{TARGETS[0]} -partition_rule=best"], on_progress=seen.append)
    assert caught.value.__notes__ == [f'in target "{TARGETS[0]}", option -partition_rule']
    assert seen == []


def test_without_partitions_nobody_is_able() -> None:
    with pytest.raises(UnsupportedModelError, match="no_relu has no Relu"):
        ia.tune(planted(), budget="20s", targets=TARGETS, partitions=False)


def test_a_placement_is_plain_data() -> None:
    text: dict[str, PlainData] = {
        "function": "main",
        "target": TARGETS[0],
        "nodes": "1,3..4",
        "label": "MatMul",
        "composites": [],
    }
    placement = Placement.of_candidate(Candidate("collage", [text]))
    assert placement.partitions[0].nodes == (1, 3, 4)
    assert placement.candidate.trace == [text]
    assert placement.summary == "no_relu 1"
