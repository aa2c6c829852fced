"""The tuning passes of the seed as a user would write them: examples/tuning."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.parallel_programs import convolutions, image
from tests.parallel_programs import program as results_of
from tests.tuning_passes import CostTable, NoteHeuristic, mock

from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.measure.whole_run import run_arrays
from intarsia.op import call
from intarsia.passes import InferType, partition_whole
from intarsia.target import Target
from intarsia.transform import Pass, Sequential
from intarsia.tune import Trace, TuningContext, TuningPass

EXAMPLES = Path(__file__).parents[3] / "examples" / "tuning"


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def example(name: str) -> ModuleType:
    return import_module(name)


def branches() -> IRModule:
    x = image()
    return InferType()(results_of(x, *(call("Relu", each) for each in convolutions(x))))


def parallel(*eval_passes: TuningPass) -> TuningPass:
    made: TuningPass = example("tuning_parallel_conv2d").TuningParallelConv2d(eval_passes)
    return made


def layout(*eval_passes: TuningPass) -> TuningPass:
    made: TuningPass = example("tuning_layout").TuningLayout(eval_passes)
    return made


def computes_the_same(one: IRModule, other: IRModule) -> None:
    inputs = random_inputs(one["main"], 0)
    target = Target("cpu -toolchain=reference")
    results = [
        run_arrays(build(mod if "Compiler=" in str(mod) else partition_whole(mod, target)), inputs)
        for mod in (one, other)
    ]
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


def test_the_counts_of_the_seed() -> None:
    heuristic = NoteHeuristic()
    rows: list[tuple[list[Pass], int]] = [
        ([parallel()], 2),
        ([layout()], 3),
        ([heuristic, layout()], 3),
        ([parallel(), layout()], 2 + 3),
        ([parallel(layout())], 2 * 3),
        ([layout(parallel())], 3 * 2),
        ([layout(parallel(mock()))], 3 * 2 * 5),
        ([layout(parallel(), mock())], 3 * (2 + 5)),
    ]
    for passes, expected in rows:
        ctx = TuningContext(CostTable())
        Sequential(passes)(branches(), ctx)
        assert ctx.num_evals == expected


def test_the_switch_and_the_layout_find_what_is_planted() -> None:
    table = CostTable(lambda mod: 1.0 if "Split" in str(mod) and "layout" in str(mod) else 2.0)
    found = parallel(layout())(branches(), TuningContext(table))
    assert table.cost(found) == 1.0
    computes_the_same(branches(), found)


def test_taso_goes_over_a_hill_if_alpha_allows() -> None:
    def cost(mod: IRModule) -> float:
        text = str(mod)
        return 1.02 + text.count("Conv(") * 0.001 if "Split" not in text else 0.5 + text.count("Relu(") * 0.1

    taso = example("taso").Taso
    ctx = TuningContext(CostTable(cost))
    best = taso()(branches(), ctx)
    assert "Split" in str(best)
    assert ctx.num_evals >= 2
    computes_the_same(branches(), best)
    stuck = TuningContext(CostTable(lambda mod: 1.0 if "Split" not in str(mod) else 3.0))
    assert taso(alpha=1.0)(branches(), stuck) is not None
    assert stuck.num_evals <= ctx.num_evals


def test_collage_gives_each_call_to_who_was_fastest() -> None:
    def cost(mod: IRModule) -> float:
        text = str(mod)
        likes = "openvino" if "Conv" in text else "onnxruntime"
        return 1.0 if f"toolchain={likes}" in text else 2.0

    ctx = TuningContext(CostTable(cost))
    collage = example("collage").Collage
    trace = collage().tune(Trace(branches()), ctx)
    assert ctx.num_evals == 2 * 6 + 1
    (step,) = trace.steps
    targets = step.instruction.choice(step.decision).args["targets"]
    assert sorted(targets.values()).count("cpu -toolchain=openvino") == 3
    text = str(trace.out_mod)
    assert 'Compiler="openvino"' in text
    assert 'Compiler="onnxruntime"' in text
    computes_the_same(branches(), trace.out_mod)
    again = Trace.from_json(trace.to_json(), branches())
    assert str(again.out_mod) == text
