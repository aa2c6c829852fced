"""Attention as one kernel: what is matched, and each level of proof that needs no GPU."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_on_cpu.kernel_checks import Arrays, interpreted, on_this_cpu
from tests.gpu_on_cpu.program_dags import dags_of, normal_numbers, relative_error
from tests.gpu_on_cpu.ptxas_checks import assert_text_resources, needs_ptxas
from tests.tir_checks import in_module
from tests.unit.native.gpu.test_default_gpu_state import kernel_count, with_each_fault

from intarsia.ir import PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.attention import with_attention
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.lowering import lower_naive
from intarsia.native.te import ExternOp
from intarsia.support.errors import ExecutionError

pytestmark = pytest.mark.quick_tests(4)

ERRORS = {"float32": 2e-6, "float16": 3e-3, "bfloat16": 2e-2}
"""Greatest error relative to the norm: weights are rounded to the type of the factors."""


def attention(
    rows: int, keys: int, depth: int = 8, columns: int = 8, dtype: str = "float32", options: str = ""
) -> ComputeDAG:
    """The operator, over two matrices."""
    queries = f"%q: Tensor[(1, 2, {rows}, {depth}), {dtype}], %k: Tensor[(1, 2, {keys}, {depth}), {dtype}]"
    values = f"%v: Tensor[(1, 2, {keys}, {columns}), {dtype}]"
    *_, dag = dags_of(f"def @main({queries}, {values}) {{ Attention(%q, %k, %v{options}) }}")
    return dag


def separate(rows: int, keys: int, depth: int, columns: int, dtype: str) -> ComputeDAG:
    """Operators of their own for products, mask, softmax, and what follows."""
    queries = f"%q: Tensor[(3, {rows}, {depth}), {dtype}], %k: Tensor[(3, {keys}, {depth}), {dtype}]"
    values = f"%v: Tensor[(3, {keys}, {columns}), {dtype}], %m: Tensor[({rows}, {keys}), {dtype}]"
    scores = "let %s = Add(MatMul(%q, Transpose(%k, perm=[0, 2, 1])), %m);"
    (dag,) = dags_of(f"def @main({queries}, {values}) {{ {scores} Relu(MatMul(Softmax(%s, axis=-1), %v)) }}")
    return dag


def check(dag: ComputeDAG, function: PrimFunc, most: float) -> None:
    """Fail unless the kernels compute what the loops as declared do, on each level."""
    verify(in_module(function))
    inputs = normal_numbers(dag)
    expected = interpreted(lower_naive(dag.outputs), inputs)
    assert relative_error(interpreted(function, inputs), expected) < most
    for is_descending in (False, True):
        assert relative_error(on_this_cpu(function, inputs, is_descending=is_descending), expected) < most


def has_kernel(dag: ComputeDAG) -> bool:
    return any(isinstance(op, ExternOp) for op in with_attention(dag).ops)


@pytest.mark.parametrize("dtype", sorted(ERRORS))
def test_operators_of_attention_are_one_kernel(dtype: str) -> None:
    dag = separate(9, 20, 8, 12, dtype)
    function = gpu_kernels(dag)
    assert kernel_count(function) == 1
    check(dag, function, ERRORS[dtype])


def test_heads_of_one_batch_are_read_where_they_lie() -> None:
    """Heads that a transposition would move, and a batch of one, whose index is 0."""
    parameters = ", ".join(f"%{name}: Tensor[(1, 9, 2, 8), float32]" for name in "qkv")
    queries, values = (f"Transpose(%{name}, perm=[0, 2, 1, 3])" for name in "qv")
    keys = "Transpose(%k, perm=[0, 2, 3, 1])"
    weights = f"Softmax(MatMul({queries}, {keys}), axis=-1)"
    (dag,) = dags_of(f"def @main({parameters}) {{ MatMul({weights}, {values}) }}")
    function = gpu_kernels(dag)
    assert kernel_count(function) == 1
    check(dag, function, ERRORS["float32"])


@pytest.mark.parametrize("options", ["", ", is_causal=1", ", softcap=2.0"])
def test_the_operator_is_a_kernel(options: str) -> None:
    dag = attention(9, 20, options=options)
    assert has_kernel(dag)
    check(dag, gpu_kernels(dag), ERRORS["float32"])


@settings(max_examples=examples(40, 1), deadline=None)
@given(
    *(st.integers(8, 70), st.integers(1, 70), st.integers(1, 20), st.integers(1, 20)),
    st.sampled_from(sorted(ERRORS)),
)
def test_attention_of_any_size_computes_the_same(
    rows: int, keys: int, depth: int, columns: int, dtype: str
) -> None:
    dag = separate(rows, keys, depth, columns, dtype)
    check(dag, gpu_kernels(dag), ERRORS[dtype])


def test_rows_without_a_key_are_as_declared() -> None:
    """A softmax of -inf alone is NaN, and the operator makes zeros of it; other tiles of the row count."""
    dag = separate(9, 40, 8, 8, "float32")
    inputs = normal_numbers(dag)
    mask = next(array for array in inputs.values() if array.shape == (9, 40))
    mask[2], mask[3, :33] = -float("inf"), -float("inf")
    expected = interpreted(lower_naive(dag.outputs), inputs)
    assert relative_error(interpreted(gpu_kernels(dag), inputs), expected) < ERRORS["float32"]
    causal = attention(40, 9, options=", is_causal=1")
    check(causal, gpu_kernels(causal), ERRORS["float32"])


def test_few_rows_and_large_rows_are_left_to_other_kernels() -> None:
    assert not has_kernel(attention(7, 40))
    assert not has_kernel(attention(9, 40, depth=16, columns=2000))
    assert not has_kernel(attention(9, 40, depth=4000))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_planted_missing_barrier_is_found(dtype: str) -> None:
    dag = separate(9, 70, 8, 8, dtype)  # several tiles of keys
    inputs = normal_numbers(dag)
    expected = interpreted(lower_naive(dag.outputs), inputs)
    faulty = list(with_each_fault(gpu_kernels(dag)))
    assert faulty
    for candidate in faulty:
        with pytest.raises(ExecutionError, match="race for element"):
            interpreted(candidate, inputs)
        if dtype == "float32":  # a warp's own products make its threads wait for each other
            assert is_wrong(candidate, inputs, expected)


def is_wrong(function: PrimFunc, inputs: Arrays, expected: Arrays) -> bool:
    """Whether the LLVM IR of kernels computes something else, in one of the orders of threads."""
    for is_descending in (False, True):
        try:
            result = on_this_cpu(function, inputs, is_descending=is_descending)
            if not relative_error(result, expected) < 1e-3:
                return True
        except AssertionError:
            return True
    return False


@needs_ptxas
@pytest.mark.parametrize(
    ("dtype", "depth", "most"), [("float32", 64, 128), ("float32", 128, 128), ("float16", 128, 136)]
)
def test_the_kernel_spills_none(dtype: str, depth: int, most: int) -> None:
    kernels = emit_kernels(gpu_kernels(attention(512, 512, depth, depth, dtype)), "k", "sm_80")
    assert len(assert_text_resources(kernels.text, "sm_80", most)) == 1
