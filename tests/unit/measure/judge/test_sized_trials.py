"""Input sets at several sizes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import DimRange, IRModule, with_dim_ranges
from intarsia.measure.judge.examination import examine
from intarsia.measure.judge.quorum import JudgeLimits
from intarsia.measure.judge.sized_trials import sized_trials
from intarsia.measure.sizes import SizeSample
from intarsia.support.errors import IntarsiaError

LIMITS = JudgeLimits(is_checked=False)
SAMPLES = (SizeSample({"n": 4}, 0.5), SizeSample({"n": 1}, 0.5), SizeSample({"n": 7}))


def softmax() -> IRModule:
    return from_onnx(model_of("g (float[n, 3] x) => (float[n, 3] y) { y = Softmax (x) }"))


def inputs(rows: int) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {"x": np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)}


def test_each_size_has_a_trial_with_its_weight() -> None:
    trials = sized_trials(softmax(), inputs(4), SAMPLES, LIMITS)
    kinds = [(trial.name, trial.inputs["x"].shape[0], trial.weight, trial.label) for trial in trials]
    assert kinds[0] == ("ordinary", 4, 0.5, "n=4")
    assert kinds[-2:] == [("n=1", 1, 0.5, "n=1"), ("n=7", 7, 0.0, "n=7")]
    assert all(weight == 0 and label == "" for _, _, weight, label in kinds[1:-2])
    assert "usual sizes: n=4; others: n=1; n=7" in trials[0].gate.reference


def test_a_right_program_passes_and_one_that_ignores_the_size_does_not() -> None:
    trials = sized_trials(softmax(), inputs(4), SAMPLES, LIMITS)
    assert examine(build(softmax()), trials).passed
    wrong = from_onnx(
        model_of(
            "g (float[n, 3] x) => (float[n, 3] y) <int64[2] shape = {4, 3}> "
            "{ f = Softmax <axis = 0> (x) s = Softmax (x) "
            "d = Sub (f, f) y = Add (s, d) }"
        )
    )
    assert examine(build(wrong), trials).passed
    mixing = from_onnx(model_of("g (float[n, 3] x) => (float[n, 3] y) { y = Softmax <axis = 0> (x) }"))
    assert not examine(build(mixing), trials).passed


def test_sizes_that_no_judge_computes_are_left_out() -> None:
    halves = from_onnx(
        model_of("g (float[n] x) => (float[m, 2] y) <int64[2] t = {-1, 2}> { y = Reshape (x, t) }")
    )
    samples = (SizeSample({"n": 4}, 1.0), SizeSample({"n": 3}), SizeSample({"n": 6}))
    trials = sized_trials(halves, {"x": np.arange(4, dtype=np.float32)}, samples, LIMITS)
    assert [trial.name for trial in trials if trial.label] == ["ordinary", "n=6"]
    assert "not checked, as no judge computes them: n=3" in trials[0].gate.reference


def test_static_programs_have_the_usual_trials() -> None:
    static = from_onnx(model_of("g (float[2, 3] x) => (float[2, 3] y) { y = Softmax (x) }"))
    trials = sized_trials(static, inputs(2), (), LIMITS)
    assert len(trials) == 3
    assert all(trial.weight == 0 for trial in trials)


def test_the_first_size_must_be_computable() -> None:
    halves = from_onnx(
        model_of("g (float[n] x) => (float[m, 2] y) <int64[2] t = {-1, 2}> { y = Reshape (x, t) }")
    )
    with pytest.raises(Exception, match="Reshape"):
        sized_trials(halves, {"x": np.arange(3, dtype=np.float32)}, (SizeSample({"n": 3}, 1.0),), LIMITS)


def test_sizes_that_are_only_checked_are_left_out_when_the_time_is_up() -> None:
    ticks = iter(range(0, 1000, 100))
    limits = JudgeLimits(seconds=40.0, is_checked=False)
    samples = (*SAMPLES, SizeSample({"n": 9}))
    trials = sized_trials(softmax(), inputs(4), samples, limits, clock=lambda: float(next(ticks)))
    assert [trial.label for trial in trials if trial.label] == ["n=4", "n=1", "n=7"]
    assert "not checked, as the time was up: n=9" in trials[0].gate.reference


def test_usual_sizes_that_no_judge_computes_are_an_error_that_names_the_option_for_others() -> None:
    text = "g (float[n] x) => (float[m, 2] y) <int64[2] t = {-1, 2}> { y = Reshape (x, t) }"
    halves = with_dim_ranges(from_onnx(model_of(text)), {"n": DimRange(3, 9)})
    samples = (SizeSample({"n": 3}, 1.0), SizeSample({"n": 6}))
    with pytest.raises(IntarsiaError) as caught:
        sized_trials(halves, {"x": np.arange(3, dtype=np.float32)}, samples, LIMITS)
    assert caught.value.help.startswith("it was tried with n=3..9; ")
    assert "--shape n=LOW..HIGH" in caught.value.help
