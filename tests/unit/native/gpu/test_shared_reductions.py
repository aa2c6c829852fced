"""Reductions that threads share: trees of partial results, and several blocks for few results."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_on_cpu.kernel_checks import check_kernels
from tests.gpu_on_cpu.program_dags import dags_of
from tests.tir_checks import in_module

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.schedule_stages import LONG, RADIX


def reduction(operator: str, shape: tuple[int, ...], options: str = "keepdims=0") -> ComputeDAG:
    """The DAG of an operator on one tensor."""
    text = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    (dag,) = dags_of(f"def @main(%x: Tensor[({text}), float32]) {{ {operator}(%x, {options}) }}")
    return dag


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMax", "ArgMax", "ReduceL2", "ReduceLogSumExp"])
def test_a_row_is_reduced_by_a_tree_of_threads(operator: str) -> None:
    options = "axis=-1, keepdims=0" if operator == "ArgMax" else "keepdims=0"
    shape = (2, 1024) if operator == "ArgMax" else (1024,)
    dag = reduction(operator, shape, options)
    function = gpu_kernels(dag)
    assert max(kernel.thread_loop.extent for kernel in list_kernels(function).kernels) >= 32
    loops = re.findall(r"for \S+ in (\d+)", str(in_module(function)))
    assert max(map(int, loops)) <= 4 * RADIX  # what one thread combines
    check_kernels(dag, function)


def test_a_softmax_has_few_barriers() -> None:
    (dag,) = dags_of("def @main(%x: Tensor[(3, 1024), float32]) { Softmax(%x, axis=-1) }")
    function = gpu_kernels(dag)
    (kernel,) = list_kernels(function).kernels
    text = str(in_module(function))
    assert text.count("barrier;") <= 8  # of two trees
    assert not re.search(r"for \S+ in \d+ \{\s+barrier;", text)
    assert kernel.thread_loop.extent == 256
    check_kernels(dag, function)


def test_many_blocks_share_a_sum_of_everything() -> None:
    dag = reduction("ReduceSum", (64, 20000))
    function = gpu_kernels(dag)
    first, *_, last = list_kernels(function).kernels
    assert first.block_loop.extent >= 128
    assert (last.block_loop.extent, last.thread_loop.extent) == (1, 1)


def reduced_rows(rows: int, length: int, *, is_sum: bool) -> ComputeDAG:
    """Sums or maxima of rows."""
    x, k = te.placeholder((rows, length), dtype=DType.FLOAT32, name="x"), te.reduce_axis(length, "k")
    combine = te.sum if is_sum else te.max
    return ComputeDAG((x, te.compute((rows,), lambda i: combine(x[i, k], axis=k), name="y")))


@settings(max_examples=examples(60), deadline=None)
@given(
    *(st.booleans(), st.integers(1, 5), st.booleans()),
    st.one_of(st.integers(2, 3 * LONG), st.integers(1000, 9000)),
)
def test_any_reduction_computes_the_same(is_sum: bool, rows: int, has_rows: bool, length: int) -> None:
    if has_rows:
        dag = reduced_rows(rows, length, is_sum=is_sum)
    else:
        dag = reduction("ReduceSum" if is_sum else "ReduceMin", (rows, length))
    check_kernels(dag, gpu_kernels(dag), seed=rows)


def test_few_long_rows_have_several_blocks_each() -> None:
    kernels = list_kernels(gpu_kernels(reduced_rows(2, 300000, is_sum=False))).kernels
    assert kernels[0].block_loop.extent >= 2 * 32
    assert kernels[-1].block_loop.extent * kernels[-1].thread_loop.extent >= 2
