"""Call tables with timestamps: the same results, and times in order."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from intarsia.native.execution.timed_table import LoopLog, TimedTable, sorted_parts
from intarsia.runtime.kernel import KernelSource
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.toolchain import Native


def kernel_of(count: int, rows: int = 4, threads: int = 1) -> NativeKernel:
    """A kernel that multiplies rows of 8 by a matrix `count` times."""
    names = ["x", *(f"t{number}" for number in range(1, count)), "y"]
    weight = helper.make_tensor("w", TensorProto.FLOAT, (8, 8), np.eye(8, dtype=np.float32).ravel() * 2)
    graph = helper.make_graph(
        [helper.make_node("MatMul", [names[n], "w"], [names[n + 1]], name=f"node{n}") for n in range(count)],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, 8))],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    kernel = Native().load(
        KernelSource("native", f"cpu -toolchain=native -threads={threads}", model.SerializeToString())
    )
    assert isinstance(kernel, NativeKernel)
    return kernel


def timed(kernel: NativeKernel, x: np.ndarray[Any, Any]) -> TimedTable:
    kernel.run([x], [None])
    assert kernel._table is not None
    return TimedTable(kernel._table)


def test_stamps_are_around_the_calls() -> None:
    kernel = kernel_of(3)
    table = timed(kernel, np.ones((4, 8), np.float32))
    assert len(table.table.calls) == 3 + 4
    assert kernel._table is not None
    assert table.table.slots == kernel._table.slots
    assert [call.function.name for call in table.table.calls[::2]] == ["intarsia_timestamp"] * 4
    assert table.table.calls[1::2] == kernel._table.calls
    y = np.empty((4, 8), np.float32)
    profiler = kernel.start_profiler()
    profiler.run([np.ones((4, 8), np.float32)], [y])
    np.testing.assert_array_equal(y, np.full((4, 8), 8, np.float32))
    assert profiler.call_nanoseconds().shape == (1, 3)
    assert (profiler.call_nanoseconds() >= 0).all()


def test_the_table_that_is_timed_stays_as_it_is() -> None:
    kernel = kernel_of(2)
    before = kernel._table
    assert before is not None
    words = before._words
    profiler = kernel.start_profiler()
    profiler.run([np.ones((4, 8), np.float32)], [None])
    assert kernel._table is before
    assert before._words == words
    assert len(before.calls) == 2


def test_the_profile_names_the_nodes() -> None:
    kernel = kernel_of(2)
    profiler = kernel.start_profiler()
    for _ in range(3):
        profiler.run([np.ones((4, 8), np.float32)], [None])
    profiler.forget_runs()
    profiler.run([np.ones((4, 8), np.float32)], [None])
    runs = profiler.stop()
    assert [[node.name for node in item.nodes] for item in runs.kernels] == [["node0"], ["node1"]]
    assert [item.work.flop for item in runs.kernels if item.work is not None] == [2 * 4 * 8 * 8] * 2
    (events,) = runs.runs
    assert [event.kernel for event in events] == [0, 1]
    assert events[0].end == events[1].start


ROWS = np.ones((40_000, 8), np.float32)


def test_parts_of_loops_are_logged_by_thread() -> None:
    kernel = kernel_of(2, len(ROWS), threads=2)
    profiler = kernel.start_profiler()
    for _ in range(3):
        (y,) = profiler.run([ROWS], [None])
        np.testing.assert_array_equal(y, 4 * ROWS)
    runs = profiler.stop()
    parts = [part for events in runs.runs for event in events for part in event.parts]
    assert {part.worker for part in parts} <= {0, 1}
    assert all(part.start <= part.end for part in parts)
    for event in (event for events in runs.runs for event in events):
        assert event.parts
        assert all(event.start <= part.start and part.end <= event.end for part in event.parts)
    assert runs.notes == ()


def test_the_log_ends_with_the_table() -> None:
    kernel = kernel_of(1, len(ROWS), threads=2)
    kernel.run([ROWS], [None])
    assert kernel._table is not None
    timed_table = TimedTable(kernel._table, logs_loops=True)
    logged = copy.copy(kernel)
    logged._table = timed_table.table
    logged.run([ROWS], [None])
    log = timed_table.log
    assert log is not None
    count, parts = log.count, log.records()
    assert count == len(parts) > 0
    assert log.caller == threading.get_native_id()
    kernel.run([ROWS], [None])
    assert log.count == count


def test_parts_that_do_not_fit_are_counted() -> None:
    log = LoopLog(2)
    log.words[0] = 5
    log.words[3:9] = [7, 20, 30, 8, 10, 15]
    assert log.count == 5
    assert sorted_parts(log.records()).tolist() == [[8, 10, 15], [7, 20, 30]]


def test_one_thread_logs_nothing() -> None:
    profiler = kernel_of(1).start_profiler()
    profiler.run([np.ones((4, 8), np.float32)], [None])
    assert [event.parts for event in profiler.stop().runs[0]] == [()]


def test_a_kernel_pauses_between_its_calls() -> None:
    kernel = kernel_of(3)
    pauses: list[int] = []
    (y,) = kernel.run_stepwise([np.ones((4, 8), np.float32)], [None], lambda: pauses.append(len(pauses)))
    np.testing.assert_array_equal(y, np.full((4, 8), 8, np.float32))
    assert pauses == [0, 1, 2, 3]
