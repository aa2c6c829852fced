"""Several calls of a small program at once are as many calls, each with its own result or error."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.fake_kernels import f32, fake, plan_of

import intarsia as ia
from intarsia.ir.parser import parse_module
from intarsia.native.execution.call_table import CallTable
from intarsia.passes import InferType
from intarsia.runtime.call_queue import CallQueue, WaitingCall
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.pool import Pool
from intarsia.runtime.series_length import SeriesLength
from intarsia.support.errors import InputError

PATIENCE = 60
TEXT = """#[version = "0.1"]
def @main(%x: Tensor[(3, 5), float32], %y: Tensor[(5, 4), float32]) {
  %0 = MatMul(%x, %y);
  %1 = Relu(%0);
  (Softmax(%1, axis=-1), ReduceSum(%x, keepdims=0))
}"""


@pytest.fixture(scope="module")
def exe() -> Executable:
    return ia.build(InferType()(parse_module(TEXT)), "cpu -toolchain=native -threads=1")


def inputs(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal((5, 4)).astype(np.float32)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
@settings(max_examples=examples(20))
def test_a_series_is_as_many_calls(exe: Executable, seeds: list[int]) -> None:
    assert exe.has_series
    calls = [inputs(seed) for seed in seeds]
    results = exe.run_series(calls)
    for call, found in zip(calls, results, strict=True):
        for right, result in zip(exe.run_flat(*call), found, strict=True):
            np.testing.assert_array_equal(result, right)
    kept = [np.array(value) for result in results for value in result]
    exe.run_series([inputs(9)] * len(calls))  # results are the caller's
    for value, before in zip((value for result in results for value in result), kept, strict=True):
        np.testing.assert_array_equal(value, before)


def test_a_series_of_a_closed_program_or_of_other_shapes_is_refused(exe: Executable) -> None:
    with pytest.raises(InputError):
        exe.run_series([inputs(0), (np.zeros((2, 5), np.float32), inputs(0)[1])])
    clone = exe.clone()
    clone.close()
    assert not clone.has_series


@pytest.mark.usefixtures("fake_toolchain")
def test_a_program_of_several_kernels_has_none() -> None:
    steps = [RunKernel(0, (0,), (1,)), RunKernel(0, (1,), (2,))]
    a = f32("a", 4)
    doubled_twice = Executable(plan_of(steps, [a], [2], [a] * 3), [fake("double")])
    assert not doubled_twice.has_series
    (first,), (second,) = doubled_twice.run_series([(np.ones(4, np.float32),), (np.zeros(4, np.float32),)])
    np.testing.assert_array_equal(first, np.full(4, 4, np.float32))
    np.testing.assert_array_equal(second, np.zeros(4, np.float32))


def test_the_length_of_a_series_comes_from_the_shortest_time() -> None:
    length = SeriesLength()
    assert length.calls == 1
    length.note(1, 60e-6)
    assert length.calls == 1
    length.note(1, 30e-6)
    assert length.calls == 3
    length.note(3, 900e-6)  # a long one waited for others
    assert length.calls == 3
    length.note(3, 30e-6)
    assert length.calls == 8


@pytest.mark.parametrize(
    ("idle", "most", "expected"), [(1, 8, 5), (2, 8, 3), (5, 8, 1), (1, 4, 4), (1, 1, 1)]
)
def test_a_stream_takes_its_share_of_the_calls_that_wait(idle: int, most: int, expected: int) -> None:
    queue = CallQueue(list(range(idle)), 64, lambda: 0.0)
    calls = [WaitingCall((number,)) for number in range(5)]
    for call in calls:
        queue.put(call, True)
    taken = queue.take(1, most)
    assert taken is not None
    assert taken[1] == calls[:expected]
    assert queue.counts().running == expected
    assert queue.counts().waiting == 5 - expected


def test_a_cancelled_call_is_not_in_a_series() -> None:
    queue = CallQueue([0], 64, lambda: 0.0)
    calls = [WaitingCall((number,)) for number in range(3)]
    for call in calls:
        queue.put(call, True)
    assert calls[1].future.cancel()
    assert calls[1].future.cancel()
    taken = queue.take(1, 8)
    assert taken is not None
    assert taken[1] == [calls[0], calls[2]]
    assert queue.counts().cancelled == 1


def test_a_pool_runs_waiting_calls_in_series_and_a_bad_one_fails_alone(
    exe: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeated: list[int] = []
    run = CallTable.run_repeatedly

    def counting(self: CallTable, threads: Any, addresses: Any) -> None:
        repeated.append(len(addresses))
        run(self, threads, addresses)

    monkeypatch.setattr(CallTable, "run_repeatedly", counting)
    monkeypatch.setattr(SeriesLength, "note", lambda self, *_: setattr(self, "calls", 8))
    entered, is_open = threading.Event(), threading.Event()

    def hold(_: Future[Any]) -> None:
        entered.set()
        assert is_open.wait(PATIENCE)

    with Pool(exe, streams=1) as pool:
        pool.submit(inputs(0)).add_done_callback(hold)
        assert entered.wait(PATIENCE)  # the stream's thread is held, so that all others wait
        futures = [pool.submit(inputs(seed)) for seed in range(4)]
        bad = pool.submit((np.zeros((2, 5), np.float32), inputs(0)[1]))
        others = [pool.submit(inputs(seed)) for seed in range(8)]
        is_open.set()
        for seed, future in [*enumerate(futures), *enumerate(others)]:
            for right, result in zip(exe(*inputs(seed)), future.result(PATIENCE), strict=True):
                np.testing.assert_array_equal(result, right)
        with pytest.raises(InputError):
            bad.result(PATIENCE)
        counts = pool.counts()
    assert (counts.done, counts.failed) == (13, 1)
    assert 5 in repeated, "the last calls; those with the bad one ran one by one"
