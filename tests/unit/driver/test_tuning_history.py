"""A run without a budget applies what an earlier run has found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.faulty_toolchains import faulty_toolchains

import intarsia as ia
from intarsia.collage.placement.placement import Partition, Placement
from intarsia.collage.placement.plan import Plan
from intarsia.driver.tuning_history import plan_of_trace, trace_of
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate
from intarsia.measure.testbed import local
from intarsia.op import call
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.tune.choice import Choice
from intarsia.tune.tuned_candidate import tuned_candidate

NATIVE = Target("cpu", "native")
HOST = Host.detect()
LAYOUT = ("layout: NHWC", Choice("ConvertLayout", {"layout": "NHWC"}))
PLACED = Placement(
    (
        Partition("main", "cpu -toolchain=native", (1,), "MatMul"),
        Partition("main", "cpu -toolchain=openvino", (2,), "Relu"),
    )
).candidate


def network(seed: int, size: int = 16) -> IRModule:
    x = Var("x", checked_type=TensorType((4, size), DType.FLOAT32))
    weights = np.random.default_rng(seed).normal(size=(size, size)).astype(np.float32)
    return IRModule.from_expr(Function((x,), call("Relu", call("MatMul", x, Constant(weights)))))


@pytest.mark.parametrize(
    ("candidate", "target"),
    [
        (WHOLE, NATIVE),
        (tuned_candidate((LAYOUT,), WHOLE), NATIVE.with_options(threads=1)),
        (PLACED, Target("cpu")),
    ],
)
def test_a_plan_and_its_trace_say_the_same(candidate: Candidate, target: Target) -> None:
    mod = network(0)
    plan = Plan.of_candidate(mod, candidate, target, model="net", host=HOST, measured_seconds=0.5)
    trace = trace_of(mod, plan)
    assert trace.perf == 0.5
    assert plan_of_trace(trace, "net", HOST) == plan


@pytest.fixture
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, "tests.faulty_toolchains_at_hand"))
    with faulty_toolchains():
        yield


@pytest.mark.processes
@pytest.mark.usefixtures("_toolchains")
def test_a_run_without_a_budget_takes_the_decisions_for_other_weights(tmp_path: Path) -> None:
    targets, notes = ["cpu -toolchain=right"], list[str]()
    with Database.open(tmp_path / "runs.db") as database:
        first = ia.tune(network(1), budget=0.5, targets=targets, database=database)
        second = ia.tune(network(2), budget=0, targets=targets, database=database, on_note=notes.append)
        assert second.plan.is_same(first.plan)
        assert [record.name for record in second.candidates] == ["right"]
        assert "applying 1 decisions of an earlier run; nothing is searched" in notes
        x = np.ones((4, 16), np.float32)
        weights = np.random.default_rng(2).normal(size=(16, 16)).astype(np.float32)
        np.testing.assert_allclose(second.executable(x), np.maximum(x @ weights, 0), rtol=1e-4)
        with pytest.raises(UsageError, match="no earlier run has tuned a model of this structure"):
            ia.tune(network(1, size=17), budget=0, targets=targets, database=database)


def test_a_run_without_a_budget_searches_nothing() -> None:
    with pytest.raises(UsageError, match="a budget of 0 searches nothing, so that it takes no trials"):
        ia.tune(network(1), budget=0, trials=3)
    with pytest.raises(UsageError, match="no earlier run has tuned"):
        ia.tune(network(1), budget=0)
