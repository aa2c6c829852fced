"""Kernels called with arrays, and regions of calls."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.native_ir import PARAMETERS, array, kernel, object_code

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Buffer, For, Load, LoopVar, PrimFunc, Store
from intarsia.native.execution.array_parameter import ArrayParameter, parameters_of
from intarsia.native.execution.call_table import CallTable, KernelCall, Slot
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.support.errors import ArtifactError, ExecutionError, InputError, UsageError

pytestmark = pytest.mark.quick_tests(
    14,
    also=[
        "test_arrays_that_do_not_fit[is a list, and no NumPy array]",
        "test_arrays_that_do_not_fit[is read-only, and the kernel writes to it]",
        "test_index_out_of_bounds_is_an_error",
        "test_missing_kernel",
        "test_number_of_arrays",
    ],
)

F4 = np.dtype("f4")


def four(value: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.full(4, value, np.float32)


def test_call_writes_into_the_output() -> None:
    out = four(0)
    kernel("add")(four(1), four(2), out)
    np.testing.assert_array_equal(out, four(3))


def test_code_stays_while_its_function_is_there() -> None:
    add = kernel("add")
    gc.collect()
    out = four(0)
    add(four(1), four(2), out)
    assert out[0] == 3


READ_ONLY = four(0)
READ_ONLY.flags.writeable = False
BYTES = np.zeros(17, np.uint8)
BAD = {
    "is float64 (4,), expected float32 (4,)": np.zeros(4),
    "is float32 (5,), expected float32 (4,)": np.zeros(5, F4),
    "is float32 (2, 2), expected float32 (4,)": np.zeros((2, 2), F4),
    "is not C-contiguous": np.zeros(8, F4)[::2],
    "is read-only, and the kernel writes to it": READ_ONLY,
    "is not aligned to 4 bytes": BYTES[BYTES.ctypes.data % 4 ^ 1 :][:16].view(F4),
    "is a list, and no NumPy array": [0.0] * 4,
}


@pytest.mark.parametrize("complaint", BAD)
def test_arrays_that_do_not_fit(complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        kernel("add")(four(0), four(0), BAD[complaint])  # type: ignore[arg-type]  # one is a list
    assert str(caught.value) == f"array 'out' of a native kernel {complaint}"


def test_read_only_arrays_and_mapped_files_can_be_read(tmp_path: Path) -> None:
    out, mapped = four(1), np.memmap(tmp_path / "weights", F4, "w+", shape=(4,))
    mapped[:] = 7
    kernel("add")(READ_ONLY, mapped, out)
    np.testing.assert_array_equal(out, four(7))


def test_stricter_alignment_is_checked() -> None:
    a, b, _ = PARAMETERS["add"]
    strict = ArrayParameter("out", (4,), F4, is_written=True, alignment=1 << 20)
    function = NativeFunction.load(object_code("add"), "add", (a, b, strict))
    with pytest.raises(InputError, match="is not aligned to 1048576 bytes"):
        function(four(0), four(0), four(0))


def test_number_of_arrays() -> None:
    with pytest.raises(InputError, match="kernel 'add' was given 2 arrays, expected 3"):
        kernel("add")(four(0), four(0))


def test_overlapping_arrays() -> None:
    add, memory = kernel("add"), np.arange(12, dtype=F4)
    for a, b, out, others in (
        (memory[:4], memory[4:8], memory[:4], "'a' and 'out'"),
        (memory[:4], memory[4:8], memory[5:9], "'b' and 'out'"),
        (memory[2:6], memory[8:], memory[:4], "'out' and 'a'"),
    ):
        with pytest.raises(InputError, match=f"arrays {others} of a native kernel overlap"):
            add(a, b, out)
    add(memory[:4], memory[1:5], memory[5:9])
    add(memory[:4], memory[:4], memory[4:8])
    np.testing.assert_array_equal(memory[4:8], [0, 2, 4, 6])


def test_a_long_array_that_is_read_hides_no_overlap() -> None:
    function = NativeFunction.load(
        object_code("add"),
        "add",
        (array("a", (12,), "f4"), array("b", (2,), "f4"), array("out", (4,), "f4", is_written=True)),
    )
    memory = np.zeros(12, F4)
    with pytest.raises(InputError, match="arrays 'a' and 'out'"):
        function(memory, memory[1:3], memory[6:10])


def test_missing_kernel() -> None:
    with pytest.raises(ArtifactError, match="this object code has no kernel 'sub'; it has: add"):
        NativeFunction.load(object_code("add"), "sub", ())


def test_parameters_of_a_loop_function() -> None:
    a, b = Buffer("a", (2, 3), DType.FLOAT32), Buffer("b", (2, 3), DType.FLOAT32)
    i, j = LoopVar("i"), LoopVar("j")
    copy = For(i, 2, For(j, 3, Store(b, (i, j), Load(a, (i, j)))))
    assert parameters_of(PrimFunc((a, b), copy)) == (
        ArrayParameter("a", (2, 3), F4),
        ArrayParameter("b", (2, 3), F4, is_written=True),
    )


def test_region_runs_its_calls_in_order() -> None:
    add, (a, b, c, d) = kernel("add"), (four(1), four(2), four(0), four(0))
    table = CallTable((KernelCall(add, (a, b, c)), KernelCall(add, (c, b, d))))
    with ThreadPool(1) as pool:
        table.run(pool)
    assert (c[0], d[0]) == (3, 5)


def test_region_with_slots() -> None:
    add, weights, between = kernel("add"), four(10), four(0)
    table = CallTable(
        (KernelCall(add, (Slot(0), weights, between)), KernelCall(add, (between, Slot(0), Slot(1))))
    )
    assert table.slots == 2
    with ThreadPool(2) as pool:
        for value in range(5):
            x, y = four(value), four(0)
            table.run(pool, (x.ctypes.data, y.ctypes.data))
            np.testing.assert_array_equal(y, four(10 + 2 * value))


def test_region_in_several_threads_at_once() -> None:
    add = kernel("add")
    table = CallTable(tuple(KernelCall(add, (Slot(0), Slot(1), Slot(2))) for _ in range(200)))

    def call(value: int) -> bool:
        a, b, out = four(value), four(1), four(0)
        for _ in range(50):
            table.run(pool, (a.ctypes.data, b.ctypes.data, out.ctypes.data))
        return bool((out == value + 1).all())

    with ThreadPool(2) as pool, ThreadPoolExecutor(4) as callers:
        assert all(callers.map(call, range(40)))


def test_region_keeps_code_and_arrays_alive() -> None:
    def build() -> tuple[CallTable, np.ndarray[Any, Any]]:
        out = four(0)
        return CallTable((KernelCall(kernel("add"), (four(1), four(2), out)),)), out

    table, out = build()
    gc.collect()
    with ThreadPool(1) as pool:
        table.run(pool)
    assert out[0] == 3


def test_region_needs_the_most_scratch_of_its_kernels() -> None:
    calls = (KernelCall(kernel("nested"), (Slot(0),)), KernelCall(kernel("scratch"), (Slot(1),)))
    assert CallTable(calls).scratch_bytes == 4096


def test_index_out_of_bounds_is_an_error() -> None:
    checked, table = kernel("checked"), CallTable((KernelCall(kernel("checked"), (Slot(0),)),))
    out = np.array([2, 0, 0])
    checked(out)
    np.testing.assert_array_equal(out, [2, 0, -1])
    bad = np.array([7, 0, 0])
    with ThreadPool(1) as pool:
        with pytest.raises(ExecutionError) as caught:
            checked(bad)
        assert str(caught.value) == "native kernel 'checked': index 7 is out of bounds: dimension 0 of out"
        with pytest.raises(ExecutionError, match="index 7 is out of bounds"):
            table.run(pool, (bad.ctypes.data,))
        table.run(pool, (out.ctypes.data,))
    np.testing.assert_array_equal(bad, [7, 0, 0])


def test_empty_region() -> None:
    with ThreadPool(2) as pool:
        CallTable(()).run(pool)


def test_faulty_regions() -> None:
    add = kernel("add")
    with pytest.raises(InputError, match="kernel 'add' was given 1 arrays, expected 3"):
        KernelCall(add, (Slot(0),))
    with pytest.raises(InputError, match=r"array 'out' of a native kernel is float32 \(5,\)"):
        KernelCall(add, (Slot(0), Slot(1), np.zeros(5, F4)))
    with pytest.raises(UsageError, match="slot -1: positions begin at 0"):
        CallTable((KernelCall(add, (Slot(-1), Slot(0), Slot(1))),))
    table = CallTable((KernelCall(add, (Slot(0), Slot(1), Slot(2))),))
    with ThreadPool(1) as pool, pytest.raises(UsageError, match="was given 2 buffers, not 3"):
        table.run(pool, (1, 2))
