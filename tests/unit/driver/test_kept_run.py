"""Finished runs in the database: told again where the same is asked, and only there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import intarsia as ia
from intarsia.build import build
from intarsia.driver import tune_run
from intarsia.driver.kept_run import KeptRun, question_digest
from intarsia.driver.progress import Progress
from intarsia.driver.result import TuneResult
from intarsia.driver.tuning_pipelines import deciding_passes
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.measure.judge.examination import examine_calls
from intarsia.measure.judge.gate_report import GateReport
from intarsia.measure.judge.trials import Trial
from intarsia.measure.measure_input import Workload
from intarsia.measure.whole_run import run_arrays
from intarsia.op import call
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError
from intarsia.support.plain_record import from_plain, to_plain
from intarsia.target import Host, Target
from intarsia.toolchain.this_host import this_host
from intarsia.tune.contest.candidate_record import CandidateRecord, Status

pytestmark = pytest.mark.processes

TARGETS = ("cpu -toolchain=reference", "cpu -toolchain=onnxruntime")


def mlp() -> IRModule:
    x = Var("x", checked_type=TensorType((4, 8), DType.FLOAT32))
    weights = Constant(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    return IRModule.from_expr(Function((x,), call("Relu", call("MatMul", x, weights))))


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database.open(tmp_path / "measurements.db")


def tuned(database: Database, **asked: object) -> TuneResult:
    given = {"budget": "1s", "targets": TARGETS, "database": database, **asked}
    return ia.tune(mlp(), **given)  # type: ignore[arg-type]  # each of its own type


def test_the_same_question_is_answered_again(database: Database, tmp_path: Path) -> None:
    first = tuned(database)
    again = tuned(database)
    assert first.finished_at is None
    assert again.finished_at is not None
    assert again.candidates == first.candidates
    assert again.explanation == first.explanation
    assert again.plan == first.plan
    for mine, others in zip(again.self_test.outputs, first.self_test.outputs, strict=True):
        np.testing.assert_array_equal(mine, others)
    again.save(tmp_path / "again.intarsia")
    assert ia.load(tmp_path / "again.intarsia").self_test() < 1e-4


@pytest.mark.parametrize(
    "asked", [{"budget": "2s"}, {"seed": 1}, {"targets": TARGETS[:1]}, {"trials": 1}, {"partitions": False}]
)
def test_another_question_is_another(database: Database, asked: dict[str, object]) -> None:
    tuned(database)
    assert tuned(database, **asked).finished_at is None


def test_a_plan_that_the_run_has_written_asks_nothing_new(database: Database, tmp_path: Path) -> None:
    plan = tmp_path / "mlp.plan"
    assert tuned(database, plan=plan).finished_at is None
    assert tuned(database, plan=plan).finished_at is not None
    other = replace(tuned(database).plan, whole=Target.parse(TARGETS[0]))
    other = (
        other if not other.is_same(tuned(database).plan) else replace(other, whole=Target.parse(TARGETS[1]))
    )
    other.write(plan)
    assert tuned(database, plan=plan).finished_at is None


def test_a_stopped_run_is_not_kept(database: Database) -> None:
    wishes: list[bool] = []

    def note(progress: Progress) -> None:
        wishes.extend([True] * (progress.measured is not None and progress.measured.done == 1))

    stopped = tuned(database, on_progress=note, should_stop=lambda: bool(wishes))
    assert stopped.stopped
    assert tuned(database).finished_at is None


@pytest.mark.parametrize("least", [0.0, 100.0], ids=["always", "on large inputs"])
def test_a_winner_that_is_wrong_now_is_measured_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, least: float
) -> None:
    """An update that a version number does not tell of, or a damaged library."""
    tuned(database)

    def examine(executable: Executable, trials: Sequence[Trial]) -> GateReport:
        def wrong(inputs: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
            is_wrong = any(np.abs(array).max() >= least for array in inputs.values())
            return [array + is_wrong for array in run_arrays(executable, inputs)]

        return examine_calls(wrong, trials)

    monkeypatch.setattr(tune_run, "examine", examine)
    assert tuned(database).finished_at is None


def test_a_winner_that_cannot_be_built_now_is_measured_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(database)
    refused: list[IRModule] = []

    def refusing(module: IRModule) -> Executable:
        if not refused:
            refused.append(module)
            raise CompileError("the engine is out of order")
        return build(module)

    monkeypatch.setattr(tune_run, "build", refusing)
    assert tuned(database).finished_at is None
    assert refused


@pytest.mark.parametrize("outcome", ["{", "{}", '{"candidates":[],"plan":{},"explanation":"{}"}', "null"])
def test_a_run_of_another_version_is_asked_again(database: Database, outcome: str) -> None:
    workload = Workload(mlp(), "mlp", {})
    first = tuned(database)
    key = question_digest(
        workload,
        this_host(),
        [Target.parse(text) for text in TARGETS],
        seconds=1.0,
        trials=None,
        seed=0,
        searches=True,
        passes=deciding_passes(None, None),
        plan=None,
    )
    kept = database.find_run(key)
    assert kept is not None
    assert KeptRun.from_text(kept.outcome).candidates == first.candidates
    database.keep_run(replace(kept, outcome=outcome))
    with pytest.raises(ValueError, match=r"a finished run in the database|Expecting|it "):
        KeptRun.from_text(outcome)
    assert tuned(database).finished_at is None


def test_what_is_kept_is_json_in_ascii(database: Database) -> None:
    result = tuned(database)
    run = KeptRun(result.candidates, result.plan, result.explanation)
    text = run.to_text()
    assert text.isascii()
    assert json.loads(text)["plan"]["model"] == result.plan.model
    assert KeptRun.from_text(text) == run


def test_another_machine_is_another_question() -> None:
    workload = Workload(mlp(), "mlp", {})
    asked = {"seconds": 1.0, "trials": None, "seed": 0, "searches": True, "passes": (), "plan": None}
    here, there = this_host(), Host.detect(root=Path("/nowhere"), cores=3)
    digests = {question_digest(workload, host, (), **asked) for host in (here, there)}  # type: ignore[arg-type]  # each of its own type
    assert len(digests) == 2


def test_latencies_by_size_come_back() -> None:
    record = CandidateRecord(
        "a", "cpu -toolchain=native", Status.MEASURED, by_size=(("n=1", 1e-3), ("n=8", 4e-3))
    )
    assert from_plain(CandidateRecord, json.loads(json.dumps(to_plain(record))), "it") == record
