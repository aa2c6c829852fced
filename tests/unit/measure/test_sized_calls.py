"""The timing of a candidate at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.sized_calls import SizedCall, Turns, sized_calls, time_calls
from intarsia.measure.sizes import SizeSample
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.workload_folder import WorkloadFolder

POLICY = TimingPolicy(warmup_calls=1, warmup_seconds=0.0, repeats=6, min_repeat_seconds=0.0)


def softmax() -> IRModule:
    return from_onnx(model_of("g (float[n, 3] x) => (float[n, 3] y) { y = Softmax (x) }"))


def test_a_call_for_each_timed_size(tmp_path: Path) -> None:
    samples = (SizeSample({"n": 4}, 0.5), SizeSample({"n": 1}, 0.25), SizeSample({"n": 7}))
    workload = Workload(softmax(), samples=samples, is_checked=True)
    folder = WorkloadFolder.write(workload, tmp_path)
    with build(softmax()) as executable:
        calls = sized_calls(folder, executable)
        assert [(call.label, call.weight) for call in calls] == [("n=4", 2 / 3), ("n=1", 1 / 3)]
        shapes = [np.shape(call.call()[0]) for call in calls]  # type: ignore[index]  # the flat results
        assert shapes == [(4, 3), (1, 3)]


def test_one_call_without_symbolic_dimensions(tmp_path: Path) -> None:
    mod = from_onnx(model_of("g (float[2, 3] x) => (float[2, 3] y) { y = Softmax (x) }"))
    folder = WorkloadFolder.write(Workload(mod), tmp_path)
    with build(mod) as executable:
        (call,) = sized_calls(folder, executable)
    assert (call.label, call.weight) == ("", 1.0)


@dataclass
class Clock:
    """A clock that the calls move."""

    now: int = 0

    def __call__(self) -> int:
        return self.now

    def taking(self, milliseconds: Iterator[int]) -> Callable[[], object]:
        def call() -> None:
            self.now += next(milliseconds) * 1_000_000

        return call


def test_turns_give_the_weighted_mean_and_each_part() -> None:
    time = Clock()
    calls = (
        SizedCall("n=1", 0.75, time.taking(iter([9, 1, 1])), time),
        SizedCall("n=8", 0.25, time.taking(iter([9, 5, 5])), time),
    )
    turns = Turns.warmed_up(calls, POLICY)
    for _ in range(2):
        mean, parts = turns.take()
        assert parts == pytest.approx((0.001, 0.005))
        assert mean == pytest.approx(0.75 * 0.001 + 0.25 * 0.005)


def test_costs_are_weighted_means() -> None:
    costs = time_calls((SizedCall("a", 0.5, lambda: None), SizedCall("b", 0.5, lambda: None)), POLICY)
    assert len(costs) == 6
    assert all(cost >= 0 for cost in costs)
