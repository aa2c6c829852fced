"""What was decided for a model is tried for the next one of its family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.faulty_toolchains import faulty_toolchains

import intarsia as ia
from intarsia.driver.kept_run import family_question_digest
from intarsia.driver.relatives import layers_of, likeness, nearest_plan, relative_entrant
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed import local
from intarsia.op import call
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host
from intarsia.tune import Choice
from intarsia.tune.passes import TuneLayout, TunePipeline

TARGET = "cpu -toolchain=right"
SIZE = 384


@pytest.fixture(autouse=True)
def _toolchains(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, "tests.faulty_toolchains_at_hand"))
    with faulty_toolchains():
        yield


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "measurements.db") as found:
        yield found


def wasteful(depth: int, rows: int = 1, factor: float = 0.5) -> IRModule:
    """Products of constants, which `default_heuristic` computes once and for all, and then some layers."""
    x = Var("x", checked_type=TensorType((rows, SIZE), DType.FLOAT32))
    weights = Constant(np.eye(SIZE, dtype=np.float32) * np.float32(factor))
    square = call("MatMul", weights, call("MatMul", weights, weights))
    result: Expr = call("MatMul", x, square)
    for number in range(depth):
        bias = Constant(np.full(SIZE, number + 1, np.float32))
        result = call("Relu", call("Add", result, bias))
    return IRModule.from_expr(Function((x,), result))


@pytest.mark.parametrize("relative", [wasteful(7), wasteful(3, rows=9), wasteful(3, factor=0.25)])
def test_depth_sizes_of_inputs_and_weights_make_no_difference(relative: IRModule) -> None:
    assert likeness(layers_of(wasteful(3)), layers_of(relative)) == 1.0


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("squeezenet", "squeezenet", 1.0, 1.0),
        ("squeezenet", "bert_tiny", 0.0, 0.1),
        pytest.param("bert_base", "vit_base", 0.3, 0.49, marks=pytest.mark.slow),
        pytest.param("vgg19", "gpt2", 0.0, 0.1, marks=pytest.mark.slow),
    ],
)
def test_likeness_of_networks(one: str, other: str, least: float, most: float) -> None:
    layers = [layers_of(from_onnx(build_model(name))) for name in (one, other)]
    assert least <= likeness(*layers) <= most


def test_no_layers_are_like_nothing() -> None:
    assert likeness(frozenset(), frozenset()) == 0.0


@pytest.mark.slow
def test_the_plan_of_a_relative_is_tried(database: Database) -> None:
    asked = {"budget": "60s", "targets": [TARGET], "database": database, "passes": [TunePipeline()]}
    first = ia.tune(wasteful(2), **asked)  # type: ignore[arg-type]  # each of its own type
    assert [text for text, _ in first.plan.decisions] == ["pipeline: default_heuristic"]
    second = ia.tune(wasteful(5), **asked)  # type: ignore[arg-type]  # as above
    names = [record.name for record in second.candidates]
    assert any(name.startswith("right as for") for name in names)
    assert "right" in names
    x = np.ones((1, SIZE), np.float32)
    np.testing.assert_allclose(second.executable(x), x / 8 + 15, rtol=1e-6)


@pytest.mark.slow
def test_with_a_limit_of_trials_the_plan_of_a_relative_is_left_out_with_a_reason(database: Database) -> None:
    asked = {"targets": [TARGET], "database": database, "passes": [TunePipeline()]}
    ia.tune(wasteful(2), budget="60s", **asked)  # type: ignore[arg-type]  # each of its own type
    notes: list[str] = []
    limited = ia.tune(wasteful(5), budget="60s", trials=2, on_note=notes.append, **asked)  # type: ignore[arg-type]
    assert not any(" as for " in record.name for record in limited.candidates)
    (note,) = [note for note in limited.explanation.notes if " as for " in note]
    assert note.startswith("left out: right as for ")
    assert note.endswith("the trials are left to the search: without --trials it is tried")
    assert note in notes


@pytest.mark.slow
def test_who_is_asked_otherwise_gets_no_plan(database: Database) -> None:
    """A run that forbids something is not given what another one was allowed."""
    ia.tune(wasteful(2), budget="2s", targets=[TARGET], database=database)
    host = this_host()
    targets, passes = [Target.parse(TARGET)], [TuneLayout()]
    other = family_question_digest(host, targets, searches=True, passes=passes)
    assert nearest_plan(database, other, wasteful(2)) is None
    elsewhere = replace(host, cpu_model="another")
    assert family_question_digest(elsewhere, targets, searches=True, passes=passes) != other


@pytest.mark.slow
def test_decisions_that_do_not_fit_are_left_out(database: Database) -> None:
    plan = ia.tune(
        wasteful(2), budget="60s", targets=[TARGET], database=database, passes=[TunePipeline()]
    ).plan
    (kept,) = plan.decisions
    stray = ("stray: On", Choice("PassOfAPackageThatIsGone"))
    model = wasteful(4)
    workload = Workload(model, "four")
    found = relative_entrant(workload, replace(plan, decisions=(stray, kept)))
    assert found is not None
    alone = relative_entrant(workload, plan)
    assert alone is not None
    assert found.key == alone.key
    assert relative_entrant(workload, replace(plan, decisions=(stray,))) is None
    assert relative_entrant(workload, replace(plan, whole=None)) is None
