"""Quantisation in a run: what is refused, what is measured and said, and which candidates take part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parallel_programs import image
from tests.quantised_programs import program, residual_network, weights

import intarsia as ia
from intarsia.driver.baselines import default_precision_entrants
from intarsia.driver.error_budget import ErrorBudget, check_quantisation
from intarsia.driver.quantisation import Quantisation, prepare_quantisation, quantised_entrants
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.judge.accuracy import error_bound, judged_trials, with_error_bound
from intarsia.measure.judge.trials import trials_for
from intarsia.measure.measure_input import Workload
from intarsia.measure.whole_run import run_arrays
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.support.errors import InputError, UsageError
from intarsia.target import Target
from intarsia.tune.passes import TuneQuantization
from intarsia.tune.quantise.layer_errors import LayerErrors
from intarsia.tune.quantise.precision_problem import LayerCost, PrecisionProblem

BUDGET = ErrorBudget(0.2, None)


def arrays(count: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.standard_normal((count, 2, 4, 6, 6)).astype(np.float32)}


def prepared(budget: ErrorBudget = BUDGET, mod: IRModule | None = None, **given: Any) -> Quantisation:
    data = given.pop("calibration", arrays())
    return prepare_quantisation(mod or residual_network(), data, budget, 0, lambda text: None)


@pytest.mark.parametrize(
    ("calibration", "tolerance", "max_drop", "exact", "message"),
    [
        ("x.npz", None, None, False, r"^calibration inputs are given, but not how large errors may be"),
        (None, None, 0.1, False, r"^a largest drop of a metric is given, but no inputs to measure it on"),
        ("x.npz", None, -0.1, False, r"^the largest drop is -0.1, expected 0 or more"),
        ("x.npz", 0.1, None, True, r"^exact results are required, but calibration is for narrower types"),
    ],
)
def test_options_that_do_not_go_together(
    calibration: str | None, tolerance: float | None, max_drop: float | None, exact: bool, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_quantisation(calibration, tolerance, max_drop, exact=exact)


def test_the_error_on_inputs_held_back_is_said() -> None:
    result = prepared()
    (note,) = result.notes
    assert note.startswith("int8 has an error of 0.")
    assert " dB) on 3 input sets of the arrays (3 used to calibrate, " in note
    np.testing.assert_array_equal(result.inputs["x"], arrays()["x"][1])
    (item,) = result.passes
    assert isinstance(item, TuneQuantization)
    assert item.tolerance == 0.2


def test_more_error_than_is_allowed() -> None:
    result = prepared(ErrorBudget(1e-4, None))
    assert result.passes == ()
    assert result.notes[0].endswith("more than is allowed: it is not tried")


def test_a_metric_of_the_user_decides() -> None:
    """The labels come with the inputs."""
    seen: list[Any] = []

    def metric(outputs: Any, expected: Any, labels: Any) -> float:
        seen.append(labels.tolist())
        return float(outputs is expected)

    data = arrays() | {"labels": np.arange(12).reshape(6, 2)}
    assert prepared(ErrorBudget(None, 0.5, metric), calibration=data).passes == ()
    assert seen[0] == [2, 3], "whether it fits the outputs is tried first"
    assert seen[1::2] == [[2, 3], [6, 7], [10, 11]]
    (item,) = prepared(ErrorBudget(None, 1.0, metric), calibration=data).passes
    assert isinstance(item, TuneQuantization)
    assert 0 < item.tolerance < 0.5


def test_a_metric_without_a_limit_or_that_does_not_fit() -> None:
    with pytest.raises(UsageError, match=r"^a metric is given, but not how much it may drop"):
        check_quantisation("x.npz", 0.1, None, "cosine", exact=False)
    with pytest.raises(UsageError, match=r"^unknown metric 'f1'"):
        check_quantisation("x.npz", None, 0.1, "f1", exact=False)
    data = arrays() | {"labels": np.zeros((6, 3), np.int64)}
    with pytest.raises(UsageError, match=r"^an example has 3 labels, but the first output has 2 classes"):
        prepared(ErrorBudget(None, 0.5), calibration=data)


def test_random_inputs_are_said_to_be_random() -> None:
    first, second = prepared(calibration="random").notes
    assert first.startswith("calibrated on random inputs: errors on real inputs will differ")
    assert "random inputs" in second


def test_nothing_to_quantise() -> None:
    result = prepared(mod=program(call("Relu", image(2, 4, 6, 6))))
    assert result.passes == ()
    assert result.notes == (
        "nothing to quantise: the model has no convolution or product with constant weights",
    )


def test_inputs_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'^input "x" is missing'):
        prepared(calibration={})
    with pytest.raises(InputError, match="holds no"):
        prepared(calibration=tmp_path)


def test_each_engine_runs_the_program_in_integers() -> None:
    mod = residual_network()
    result = prepared(mod=mod)
    targets = [Target.for_toolchain(name) for name in ("onnxruntime", "reference")]
    (entrant,) = quantised_entrants(Workload(mod), targets, result.passes)
    assert entrant.name == "onnxruntime int8"
    candidate = instantiate(mod, entrant.input.target, entrant.input.candidate)
    assert error_bound(candidate) == 0.2
    assert "QuantizeLinear" in str(candidate)
    trials = trials_for(mod, result.inputs)
    assert len(trials) == 3
    (trial,) = judged_trials(trials, candidate)
    outputs = run_arrays(ia.build(candidate), trial.inputs)
    assert trial.gate.check(outputs).passed
    assert not trials[0].gate.check(outputs).passed


def test_a_program_without_calibration_is_judged_by_all_sets() -> None:
    mod = program(call("MatMul", image(2, 4), weights(4, 4)))
    trials = trials_for(mod, {"x": np.ones((2, 4), np.float32)})
    assert judged_trials(trials, mod) == list(trials)


@pytest.mark.slow
def test_layers_are_chosen_among_three_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are fixed: of layers, float32 4, bfloat16 2, int8 1; of programs, less with bfloat16."""

    def timed(annotated: IRModule, errors: LayerErrors, target: Target) -> PrecisionProblem:
        pairs = zip(errors.int8, errors.bfloat16, strict=True)
        return PrecisionProblem(tuple(LayerCost(4.0, 1.0, wide, 2.0, narrow) for wide, narrow in pairs))

    def raced(mods: Sequence[IRModule], *given: Any) -> list[float]:
        return [1.0 if "to=16" in str(mod) else 2.0 for mod in mods]

    monkeypatch.setattr("intarsia.driver.quantisation.has_bfloat16", lambda: True)
    monkeypatch.setattr("intarsia.driver.quantisation.precision_problem", timed)
    monkeypatch.setattr("intarsia.driver.quantisation.program_times", raced)
    mod, notes = residual_network(32), list[str]()
    rng = np.random.default_rng(0)
    images = {"x": rng.standard_normal((4, 2, 32, 6, 6)).astype(np.float32)}
    targets = [Target.for_toolchain(name) for name in ("openvino", "reference")]
    result = prepare_quantisation(mod, images, BUDGET, 0, notes.append, targets, front=True)
    (item,) = result.passes
    assert isinstance(item, TuneQuantization)
    mixed = [text for text in item.layers if "bfloat16" in text]
    assert mixed
    assert any("bfloat16 in " in note and ", by times on openvino: error 0.00" in note for note in notes)
    entrants = quantised_entrants(Workload(mod), targets[:1], result.passes)
    assert entrants[0].name == "openvino int8"
    for entrant in entrants[1:]:
        candidate = instantiate(mod, Target.for_toolchain("reference"), entrant.input.candidate)
        (trial,) = judged_trials(trials_for(mod, result.inputs), candidate)
        assert trial.gate.check(run_arrays(ia.build(candidate), trial.inputs)).passed
        assert "bfloat16" in str(candidate) or "int8" in str(candidate)


@pytest.mark.processes
def test_a_run_measures_integers_and_says_the_error() -> None:
    notes: list[str] = []
    result = ia.tune(
        residual_network(),
        budget=4,
        targets=["onnxruntime", "openvino"],
        calibration=arrays(),
        tolerance=0.3,
        partitions=False,
        passes=[],
        on_note=notes.append,
    )
    names = {record.name for record in result.candidates}
    assert {"onnxruntime", "onnxruntime int8", "openvino int8"} <= names
    errors = {record.name: record.max_error or 0.0 for record in result.candidates}
    assert errors["onnxruntime int8"] > 1e-3 > errors["onnxruntime"]
    assert any(note.startswith("int8 has an error of") for note in notes)
    explained = str(result.explain())
    assert "int8" in explained or not any(r.chosen and "int8" in r.name for r in result.candidates)


@pytest.mark.processes
def test_without_calibration_nothing_is_in_integers() -> None:
    result = ia.tune(residual_network(), budget=3, targets=["onnxruntime"], tolerance=0.3)
    assert not [record.name for record in result.candidates if "int8" in record.name]


@pytest.mark.parametrize(
    ("features", "bound", "names"),
    [
        (
            ("avx512f", "avx512bf16"),
            0.1,
            ["openvino threads=1 (default precision)", "native multiply_in=bfloat16"],
        ),
        (("avx512f", "avx512bf16"), None, []),
        (("avx2",), 0.1, []),
    ],
)
def test_toolchains_take_part_in_bfloat16(
    features: tuple[str, ...], bound: float | None, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    isa = Isa("x86_64", "generic", features, ())
    monkeypatch.setattr("intarsia.driver.baselines.Isa.host_without_compiler", lambda: isa)
    mod = residual_network()
    workload = Workload(mod if bound is None else with_error_bound(mod, bound))
    targets = [Target.of_text(text) for text in ("cpu -toolchain=openvino -threads=1", "native")]
    entrants = default_precision_entrants(workload, targets)
    assert [entrant.name for entrant in entrants] == names
    options = ("inference_precision", "multiply_in")
    precisions = [entrant.input.target.option(name) for entrant, name in zip(entrants, options, strict=False)]
    assert precisions == ["bfloat16"] * len(names)
