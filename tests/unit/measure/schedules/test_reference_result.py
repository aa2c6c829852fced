"""What kernels have to compute, on what, and how far they may be off."""

from pathlib import Path

import numpy as np
import pytest
from tests.native_workloads import WORKLOADS, argmax_nm, double_matmul, matmul, softmax_nm
from tests.searched_programs import task_of

from intarsia.ir import DType
from intarsia.measure.judge.tolerance import EXACT, tolerance_for
from intarsia.measure.schedules.kernel_contents import kernel_contents, smallest_indexed
from intarsia.measure.schedules.kernel_workload import KernelWorkload
from intarsia.measure.schedules.loaded_task import GuardedOutput
from intarsia.measure.schedules.reference_result import (
    gate_of,
    longest_sum,
    reference_result,
    sums_in_a_row,
)
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.lowering import lower_naive
from intarsia.native.machine.isa import Isa
from intarsia.native.tir import interpret


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_the_reference_is_what_the_loops_say(name: str) -> None:
    task = task_of(WORKLOADS[name]())
    contents = kernel_contents(task.dag)
    found = reference_result(task.dag, contents, Isa.host())
    function = lower_naive(task.dag.outputs)
    arrays = {p.name: np.zeros(p.shape, p.dtype.numpy) for p in function.params} | contents
    interpret(function, arrays)
    assert list(found) == [tensor.buffer.name for tensor in task.dag.outputs]
    assert gate_of(task.dag, found).check([arrays[key] for key in found]).passed


def test_tolerances_follow_the_sums() -> None:
    dag = ComputeDAG(double_matmul(8))
    assert (longest_sum(dag), sums_in_a_row(dag)) == (8, 2)
    gate = gate_of(dag, {"E": np.ones((8, 8), np.float32)})
    assert gate.tolerances == (tolerance_for("float32", 8, 2),)
    assert gate.names == ("E",)
    softmax = ComputeDAG(softmax_nm(5, 7))
    assert (longest_sum(softmax), sums_in_a_row(softmax)) == (7, 2)


def test_positions_may_be_off_by_nothing() -> None:
    dag = ComputeDAG(argmax_nm())
    outputs = {tensor.buffer.name: np.zeros(5, tensor.dtype.numpy) for tensor in dag.outputs}
    assert gate_of(dag, outputs).tolerances == (EXACT, tolerance_for("float32", 7, 1))


def test_what_is_rounded_to_few_bits_may_be_off_by_one() -> None:
    a = te.placeholder((4,), name="A")
    dag = ComputeDAG((a, te.compute((4,), lambda i: (a[i] * 2.0).astype(DType.INT8), name="B")))
    gate = gate_of(dag, {"B": np.array([1, 2, 3, 4], np.int8)})
    assert gate.check([np.array([1, 2, 4, 4], np.int8)]).passed
    assert not gate.check([np.array([1, 2, 5, 4], np.int8)]).passed


def test_random_contents_are_those_of_the_seed() -> None:
    dag = ComputeDAG(matmul(4, 4, 4))
    one, same, other = (kernel_contents(dag, seed=seed) for seed in (1, 1, 2))
    assert set(one) == {"A", "B"}
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["A"], other["A"])
    assert one["A"].dtype == np.float32


def test_random_numbers_index_what_is_there() -> None:
    table = te.placeholder((3, 8), name="table")
    rows = te.placeholder((50,), DType.INT64, name="rows")
    flags = te.placeholder((50,), DType.BOOL, name="flags")
    dag = ComputeDAG(
        (
            *(table, rows, flags),
            te.compute((50, 8), lambda i, j: te.select(flags[i], table[rows[i], j], 0.0), name="picked"),
        )
    )
    assert smallest_indexed(dag) == 3
    contents = kernel_contents(dag)
    assert set(np.unique(contents["rows"])) == {0, 1, 2}
    assert set(np.unique(contents["flags"])) == {False, True}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint8", "bool"])
def test_a_spoilt_output_is_wrong_everywhere(dtype: str) -> None:
    values = [0, 1, 2, -1, 100, 1e-3, np.nan, np.inf] if dtype.startswith("f") else [0, 1, 1, 0, 1, 1, 0, 0]
    expected = np.array(values, dtype).reshape(2, 4)
    output = GuardedOutput.of(expected)
    output.spoil()
    assert output.is_guarded
    same = (output.array == expected) | (
        np.isnan(expected) & np.isnan(output.array) if dtype[0] == "f" else False
    )
    assert not same.any()
    assert output.array.ctypes.data % 64 == 0
    output.memory[output.array.nbytes + 64 * 64] = 0
    assert not output.is_guarded


def test_a_scalar_is_spoilt_too() -> None:
    output = GuardedOutput.of(np.array(2.0, np.float32))
    output.spoil()
    assert output.array.shape == ()
    assert output.array != 2.0


def test_a_folder_has_all_that_workers_need(tmp_path: Path) -> None:
    dag = ComputeDAG(matmul(8, 8, 8))
    folder = KernelWorkload(dag, Isa.host()).write(tmp_path, seed=3)
    folder.add_reference()
    assert str(folder.program().dag) == str(dag)
    contents = folder.contents()
    expected = contents["A"].astype(np.float64) @ contents["B"].astype(np.float64)
    assert folder.gate().check([expected.astype(np.float32)]).passed
    assert not folder.gate().check([expected.astype(np.float32) + 1]).passed
