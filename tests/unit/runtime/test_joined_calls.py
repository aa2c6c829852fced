"""Calls that a pool runs as one: which they are, what each gets, and what happens if that fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from tests.fake_kernels import FakeKernel, f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.joined_calls import joining_complaint
from intarsia.runtime.json_record import Record
from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.plan import RunKernel, TensorInfo
from intarsia.runtime.plan_json import plan_from_json, plan_to_json
from intarsia.runtime.pool import Pool
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.support.errors import ArtifactError, ExecutionError, InputError, UsageError

PATIENCE = 60


class Recorder(FakeKernel):
    """Doubles its input; fails for a 13; waits for its gate before the first call."""

    def __init__(self) -> None:
        super().__init__(fake("double").source)
        self.is_open = threading.Event()
        self.entered = threading.Event()
        self.sizes: list[int] = []

    def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
        assert count == 1
        return [self]

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        (x,) = inputs
        assert isinstance(x, np.ndarray)
        self.sizes.append(len(x))
        self.entered.set()
        assert self.is_open.wait(PATIENCE)
        if (x == 13).any():
            raise ValueError("unlucky")
        return super().run(inputs, outputs)


def program(kernel: Kernel, *infos: TensorInfo) -> Executable:
    a, y = infos or (f32("a", "n", 2), f32("y", "n", 2))
    return Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, y]), [kernel])


def rows(*numbers: float) -> Array:
    return np.array([[number, -number] for number in numbers], np.float32)


def results_of(*calls: Array, batch: int) -> tuple[list[object], list[int]]:
    """What each call gives while another one has held up the only stream; and the items of each run."""
    kernel = Recorder()
    with Pool(program(kernel), 1, batch=batch) as pool:
        first = pool.submit(rows(0))
        assert kernel.entered.wait(PATIENCE)
        futures = [pool.submit(call) for call in calls]
        kernel.is_open.set()
        first.result(PATIENCE)
        found = [future.exception(PATIENCE) or future.result() for future in futures]
    return found, kernel.sizes[1:]


def test_waiting_calls_run_as_one_and_each_gets_its_rows() -> None:
    calls = [rows(1), rows(2, 3), rows(4), rows(5, 6), rows(7)]
    found, sizes = results_of(*calls, batch=4)
    assert sizes == [4, 3]
    for result, call in zip(found, calls, strict=True):
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, call * 2)
        assert result.base is None, "it keeps no other call's rows alive"


def test_a_call_larger_than_the_batch_runs_by_itself() -> None:
    found, sizes = results_of(rows(1, 2, 3), rows(4), batch=2)
    assert sizes == [3, 1]
    np.testing.assert_array_equal(found[0], rows(1, 2, 3) * 2)


def test_an_error_of_one_call_is_not_that_of_the_others() -> None:
    found, sizes = results_of(rows(1), rows(13), rows(2), batch=8)
    assert sizes == [3, 1, 1, 1]
    assert isinstance(found[1], ExecutionError)
    np.testing.assert_array_equal(found[0], rows(1) * 2)
    np.testing.assert_array_equal(found[2], rows(2) * 2)


def test_wrong_inputs_are_refused_before_they_are_joined() -> None:
    kernel = Recorder()
    kernel.is_open.set()
    with Pool(program(kernel), 1, batch=8) as pool, pytest.raises(InputError):
        pool.submit(np.zeros((1, 3), np.float32))
    assert kernel.sizes == []


@pytest.mark.parametrize(
    ("infos", "culprit"),
    [
        ((f32("a", 1, 2), f32("y", 1, 2)), "a"),
        ((f32("a", "n", 2), f32("y", 2)), "y0"),
        ((f32("a", "n", 2), f32("y")), "y0"),
    ],
)
def test_programs_whose_calls_cannot_be_joined(infos: tuple[TensorInfo, TensorInfo], culprit: str) -> None:
    exe = program(Recorder(), *infos)
    assert f'"{culprit}" does not' in joining_complaint(exe.plan)
    with pytest.raises(UsageError, match="calls cannot be joined"):
        Pool(exe, 1, batch=2)


def test_a_plan_keeps_its_streams() -> None:
    plan = program(Recorder()).plan
    for choice in (None, StreamChoice(4, 2, 8)):
        changed = type(plan)(**{**{name: getattr(plan, name) for name in plan.__slots__}, "streams": choice})
        record = json.loads(json.dumps(plan_to_json(changed)))
        assert plan_from_json(Record(record, "plan")).streams == choice
    with pytest.raises(ArtifactError, match="streams"):
        plan_from_json(Record({**record, "streams": {"streams": 0, "threads": 1, "batch": 1}}, "plan"))
