"""Candidates that are right on one call only, or on one kind of inputs only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.examination import examine_calls, poisoned
from intarsia.measure.judge.trials import Trial, trials_for
from intarsia.op import call

Array = npt.NDArray[Any]
Call = Callable[[Mapping[str, Array]], Sequence[Array]]


def softmax_program() -> IRModule:
    x = Var("x", checked_type=TensorType((8, 32), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call("Softmax", x, axis=-1)))


def integer_program() -> IRModule:
    x = Var("x", checked_type=TensorType((6, 5), DType.INT64))
    return IRModule.from_expr(Function((x,), call("Add", x, Constant(np.array([3], np.int64)))))


@pytest.fixture(scope="module")
def softmax_trials() -> tuple[Trial, ...]:
    module = softmax_program()
    return trials_for(module, random_inputs(module["main"]))


def softmax(x: Array, shift: bool = True) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(x - x.max(-1, keepdims=True) if shift else x)
        return np.asarray(powers / powers.sum(-1, keepdims=True))


def test_three_kinds_of_inputs_are_tried(softmax_trials: Sequence[Trial]) -> None:
    assert [trial.name for trial in softmax_trials] == ["ordinary", "large", "edges"]
    report = examine_calls(lambda inputs: [softmax(inputs["x"])], softmax_trials)
    assert report.passed
    assert [(error.inputs, error.verdict) for error in report.by_inputs] == [
        ("ordinary", "right"),
        ("large", "right"),
        ("edges", "right"),
    ]
    assert max(error.max_rel for error in report.by_inputs) == report.max_rel_error


def test_a_softmax_without_its_maximum_is_caught(softmax_trials: Sequence[Trial]) -> None:
    report = examine_calls(lambda inputs: [softmax(inputs["x"], shift=False)], softmax_trials)
    assert not report.passed
    assert report.message.startswith("large inputs: output ")
    assert [(error.inputs, error.verdict) for error in report.by_inputs] == [
        ("ordinary", "right"),
        ("large", "wrong"),
    ]
    assert report.by_inputs[1].excess > 1 >= report.by_inputs[0].excess
    assert report.by_inputs[1].output


def test_the_first_result_for_ever_is_caught(softmax_trials: Sequence[Trial]) -> None:
    first: list[Array] = []

    def stale(inputs: Mapping[str, Array]) -> Sequence[Array]:
        first.append(softmax(inputs["x"]))
        return [first[0]]

    report = examine_calls(stale, softmax_trials)
    assert not report.passed
    assert report.message.startswith("large inputs: output ")
    assert report.message.endswith("; it is the result of an earlier call: state is kept")


def test_right_on_the_first_call_only_is_caught(softmax_trials: Sequence[Trial]) -> None:
    calls: list[int] = []

    def tired(inputs: Mapping[str, Array]) -> Sequence[Array]:
        calls.append(1)
        return [softmax(inputs["x"]) + np.float32(len(calls) > len(softmax_trials))]

    report = examine_calls(tired, softmax_trials)
    assert not report.passed
    assert report.message.startswith("second call with the same inputs: ")


def test_results_in_the_same_memory_are_caught(softmax_trials: Sequence[Trial]) -> None:
    memory = np.empty((8, 32), np.float32)

    def aliasing(inputs: Mapping[str, Array]) -> Sequence[Array]:
        memory[...] = softmax(inputs["x"])
        return [memory]

    report = examine_calls(aliasing, softmax_trials)
    assert not report.passed
    assert report.message == 'output "output_0" of an earlier call was overwritten by a later one'


def test_integers_that_wrap_are_caught() -> None:
    module = integer_program()
    trials = trials_for(module, random_inputs(module["main"]))
    assert examine_calls(lambda inputs: [inputs["x"] + 3], trials).passed
    for narrow in (np.int8, np.int32):
        wrapping: Call = lambda inputs, narrow=narrow: [(inputs["x"] + 3).astype(narrow).astype(np.int64)]  # type: ignore[misc]  # noqa: E731
        assert not examine_calls(wrapping, trials).passed


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "complex64"])
def test_poison_is_no_result(dtype: str) -> None:
    array = poisoned(np.zeros((2, 3), dtype))
    assert array.shape == (2, 3)
    assert array.dtype == dtype
    assert not (array == 0).any()
