"""Call tables with timestamps: the same results, and times in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from intarsia.native.execution.timed_table import TimedTable
from intarsia.runtime.kernel import KernelSource
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.toolchain import Native


def kernel_of(count: int) -> NativeKernel:
    """A kernel that multiplies by a matrix `count` times."""
    names = ["x", *(f"t{number}" for number in range(1, count)), "y"]
    weight = helper.make_tensor("w", TensorProto.FLOAT, (8, 8), np.eye(8, dtype=np.float32).ravel() * 2)
    graph = helper.make_graph(
        [helper.make_node("MatMul", [names[n], "w"], [names[n + 1]], name=f"node{n}") for n in range(count)],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    kernel = Native().load(KernelSource("native", "cpu -toolchain=native", model.SerializeToString()))
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
