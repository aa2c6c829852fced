"""Products on tensor cores: which operations become kernels, and each level of proof that needs no GPU."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_on_cpu.kernel_checks import (
    assert_close,
    check_kernels,
    interpreted,
    on_this_cpu,
    whole_numbers,
)
from tests.gpu_on_cpu.ptxas_checks import assert_resources, needs_ptxas
from tests.native_workloads import Tensors, matmul
from tests.tir_checks import in_module, lines_of
from tests.unit.native.gpu.test_default_gpu_state import is_wrong, kernel_count, with_each_fault

from intarsia.ir import DType, PrimFunc
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import default_gpu_state, gpu_kernels, lower_to_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import MODELS, generate_ptx
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.tensor_core_product import TILINGS, WarpTiling
from intarsia.native.gpu.tensor_cores import with_tensor_cores
from intarsia.native.graph.bfloat_steps import packed_pairs
from intarsia.native.lowering import lower_naive
from intarsia.native.te import ExternOp
from intarsia.native.te.operators.bfloat_sums import product_of_pairs
from intarsia.support.errors import ExecutionError

WIDE = DType.FLOAT32


def product(
    shape: tuple[int, int, int],
    dtype: DType = DType.BFLOAT16,
    *,
    batch: tuple[int, ...] = (),
    is_transposed: bool = False,
    has_shared_right: bool = False,
    is_widened: bool = False,
) -> Tensors:
    """Matrices of rows by depth, times depth by columns, with a sum in float32.

    Args:
        shape: Rows, columns, and depth.
        dtype: Type of the factors.
        batch: Number of matrices.
        is_transposed: Whether the right factor has columns by depth.
        has_shared_right: Whether all matrices have one right factor.
        is_widened: Whether operations of their own widen the factors.
    """
    rows, columns, depth = shape
    own = () if has_shared_right else batch
    a = te.placeholder((*batch, rows, depth), dtype=dtype, name="A")
    sides = (columns, depth) if is_transposed else (depth, columns)
    b = te.placeholder((*own, *sides), dtype=dtype, name="B")
    k = te.reduce_axis(depth, "rk")
    left, right = a, b
    if is_widened:
        left = te.compute(a.shape, lambda *at: a[at].astype(WIDE), name="A.wide")
        right = te.compute(b.shape, lambda *at: b[at].astype(WIDE), name="B.wide")

    def element(*at: Any) -> Any:
        *outer, i, j = at
        matrix = () if has_shared_right else tuple(outer)
        factors = left[(*outer, i, k)], right[(*matrix, *((j, k) if is_transposed else (k, j)))]
        first, second = (factor if factor.dtype is WIDE else factor.astype(WIDE) for factor in factors)
        return te.sum(first * second, axis=k)

    return a, b, te.compute((*batch, rows, columns), element, name="C")


def with_epilogue(tensors: Tensors, dtype: DType = DType.BFLOAT16) -> Tensors:
    """A product, rounded, with a bias for each column, and its positive part."""
    a, b, c = tensors
    bias = te.placeholder((c.shape[-1],), dtype=dtype, name="bias")
    wide = te.compute(bias.shape, lambda j: bias[j].astype(WIDE), name="bias.wide")
    rounded = te.compute(c.shape, lambda *at: c[at].astype(dtype), name="rounded")
    added = te.compute(c.shape, lambda *at: rounded[at].astype(WIDE) + wide[at[-1]], name="added")
    return a, b, bias, te.compute(c.shape, lambda *at: te.maximum(added[at], 0.0), name="D")


def kernels_of(
    tensors: Tensors, tiles: int = 2, tiling: WarpTiling = TILINGS[-1], *, tf32: bool = False
) -> tuple[ComputeDAG, PrimFunc]:
    """The DAG as declared, and its kernels on tensor cores."""
    dag = ComputeDAG(tensors)
    changed = with_tensor_cores(dag, tiling, tf32=tf32)
    assert any(isinstance(op, ExternOp) for op in changed.ops)
    return dag, lower_to_kernels(changed, default_gpu_state(changed), tiles)


TINY = (WarpTiling(32, 16, 16, 8), WarpTiling(16, 16, 16, 16), WarpTiling(16, 32, 16, 8))
SHAPES = [(16, 8, 16), (33, 40, 72), (8, 1, 1), (70, 130, 50), (65, 66, 33)]


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_ragged_product_computes_the_same(
    shape: tuple[int, int, int], is_transposed: bool, dtype: DType
) -> None:
    dag, function = kernels_of(product(shape, dtype, is_transposed=is_transposed), tf32=dtype is WIDE)
    inputs = whole_numbers(dag)
    left, right = (inputs[name].astype(np.float64) for name in "AB")
    expected = {"C": left @ (right.T if is_transposed else right)}
    for is_descending in (False, True):
        assert_close(on_this_cpu(function, inputs, is_descending=is_descending), expected)


@pytest.mark.parametrize("tiles", [1, 3])
def test_other_numbers_of_tiles_compute_the_same(tiles: int) -> None:
    dag, function = kernels_of(product((20, 24, 100)), tiles, TINY[1])
    assert any("async copy" in line for line in lines_of(function)) == (tiles > 1)
    check_kernels(dag, function)


@pytest.mark.parametrize("has_shared_right", [False, True])
def test_products_of_many_matrices_are_one_kernel(has_shared_right: bool) -> None:
    tensors = product((9, 10, 24), batch=(2, 3), has_shared_right=has_shared_right)
    dag, function = kernels_of(tensors, tiling=TINY[1])
    assert kernel_count(function) == 1
    check_kernels(dag, function)


def test_operations_that_widen_factors_are_not_computed() -> None:
    dag, function = kernels_of(product((17, 16, 24), DType.FLOAT16, is_widened=True))
    assert kernel_count(function) == 1
    check_kernels(dag, function)


def test_what_follows_a_product_is_computed_from_its_sums() -> None:
    dag, function = kernels_of(with_epilogue(product((17, 20, 24))))
    assert kernel_count(function) == 1
    check_kernels(dag, function)


def test_a_result_that_others_read_too_is_stored() -> None:
    a, b, c = product((16, 16, 16))
    doubled = te.compute(c.shape, lambda i, j: c[i, j] * 2.0, name="D")
    rows = te.reduce_axis(16, "r")
    summed = te.compute((16,), lambda j: te.sum(c[rows, j], axis=rows), name="E")
    dag, function = kernels_of((a, b, doubled, summed))
    assert kernel_count(function) == 3
    check_kernels(dag, function)


@pytest.mark.parametrize("shape", [(40, 48, 20), (17, 9, 5), (70, 130, 33)])
def test_words_of_two_bfloat16_are_multiplied(shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    a = te.placeholder((rows, depth), dtype=DType.INT32, name="A")
    b = te.placeholder((depth, columns), dtype=DType.INT32, name="B")
    _, function = kernels_of((a, b, product_of_pairs(a, b, "C")))
    rng = np.random.default_rng(0)
    left = rng.integers(-3, 4, (rows, 2 * depth)).astype(DType.BFLOAT16.numpy)
    right = rng.integers(-3, 4, (2 * depth, columns)).astype(DType.BFLOAT16.numpy)
    inputs = {"A": left.view(np.int32), "B": packed_pairs(right)}
    expected = {"C": left.astype(np.float64) @ right.astype(np.float64)}
    for is_descending in (False, True):
        assert_close(on_this_cpu(function, inputs, is_descending=is_descending), expected)


def test_results_that_no_tensor_names_are_kept() -> None:
    a, b, c = product((16, 16, 16))
    other = te.compute((16,), lambda i: a[i, 0].astype(WIDE), name="D")
    named = ComputeDAG((a, b, c), ComputeDAG((a, b, c, other)).ops)
    changed = with_tensor_cores(named, TILINGS[-1])
    assert [tensor.buffer.name for tensor in changed.outputs] == ["C", "D"]


def test_random_factors_are_close_to_float64() -> None:
    rng = np.random.default_rng(3)
    for dtype, tolerance in ((DType.FLOAT16, 1e-5), (DType.BFLOAT16, 1e-5), (WIDE, 2e-3)):
        _, function = kernels_of(product((40, 48, 96), dtype), tf32=dtype is WIDE)
        inputs = {
            name: rng.standard_normal(shape).astype(dtype.numpy)
            for name, shape in (("A", (40, 96)), ("B", (96, 48)))
        }
        result = on_this_cpu(function, inputs, is_descending=False)["C"]
        exact = inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)
        assert np.linalg.norm(result - exact) < tolerance * np.linalg.norm(exact)


@pytest.mark.parametrize(
    "tensors",
    [
        product((4, 64, 64)),
        product((64, 64, 64), WIDE),
        matmul(64, 64, 64),
        product((64, 64, 0)),
        product((64, 64, 64), DType.FLOAT64),
    ],
    ids=["few rows", "float32", "one layout", "empty sums", "float64"],
)
def test_other_products_stay(tensors: Tensors) -> None:
    dag = ComputeDAG(tensors)
    assert with_tensor_cores(dag, TILINGS[0]) is dag


def test_a_left_factor_that_lies_transposed_stays() -> None:
    a, b = (te.placeholder((32, 32), dtype=DType.FLOAT16, name=name) for name in "AB")
    k = te.reduce_axis(32, "k")
    c = te.compute(
        (32, 32), lambda i, j: te.sum(a[k, i].astype(WIDE) * b[k, j].astype(WIDE), axis=k), name="C"
    )
    dag = ComputeDAG((a, b, c))
    assert with_tensor_cores(dag, TILINGS[0]) is dag


def test_a_product_in_the_other_order_is_one_too() -> None:
    a, b = (te.placeholder((16, 16), dtype=DType.FLOAT16, name=name) for name in "AB")
    k = te.reduce_axis(16, "k")
    c = te.compute(
        (16, 16), lambda i, j: te.sum(b[k, j].astype(WIDE) * a[i, k].astype(WIDE), axis=k), name="C"
    )
    check_kernels(*kernels_of((a, b, c)))


@pytest.mark.parametrize("tiles", [1, 2])
@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT32])
def test_every_planted_missing_barrier_and_wait_is_found(dtype: DType, tiles: int) -> None:
    depth = 96 if dtype is DType.BFLOAT16 else 48
    dag, function = kernels_of(product((32, 16, depth), dtype), tiles, TINY[0], tf32=True)
    inputs = whole_numbers(dag)
    expected = interpreted(lower_naive(dag.outputs), inputs)
    faulty = list(with_each_fault(function))
    assert len(faulty) == (2 if tiles == 1 else 5)
    for candidate in faulty:
        with pytest.raises(ExecutionError, match="race for element"):
            interpreted(candidate, inputs)
        assert is_wrong(candidate, inputs, expected)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.tuples(st.integers(8, 24), st.integers(1, 24), st.integers(1, 40)),
    st.sampled_from([DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32]),
    st.booleans(),
    st.sampled_from(TINY),
    st.integers(1, 4),
)
def test_any_product_computes_the_same_in_any_tiling(
    shape: tuple[int, int, int], dtype: DType, is_transposed: bool, tiling: WarpTiling, tiles: int
) -> None:
    tensors = product(shape, dtype, is_transposed=is_transposed)
    check_kernels(*kernels_of(tensors, tiles, tiling, tf32=True))


def block_count(shape: tuple[int, int, int]) -> int:
    (kernel,) = list_kernels(gpu_kernels(ComputeDAG(product(shape)))).kernels
    return kernel.block_loop.extent


def test_tiles_are_as_large_as_leaves_blocks_enough() -> None:
    assert block_count((4096, 4096, 64)) == 32 * 32
    assert block_count((128, 256, 512)) == 4 * 4


# Most registers of a thread; found with ptxas 13.0.
REGISTERS = dict(zip(TILINGS, (128, 80, 64), strict=True))


@needs_ptxas
@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32])
@pytest.mark.parametrize("tiling", TILINGS)
def test_kernels_need_few_registers_and_spill_none(tiling: WarpTiling, dtype: DType, model: str) -> None:
    _, function = kernels_of(product((512, 512, 512), dtype), tiling=tiling, tf32=True)
    kernels = emit_kernels(function, "k", model)
    ptx = generate_ptx(kernels.text, model)
    assert ptx.count("mma.sync") == kernels.text.count("@llvm.nvvm.mma") - 1
    assert "cp.async.cg.shared.global" in ptx
    assert len(assert_resources(ptx, model, REGISTERS[tiling])) == 1


def test_products_stand_in_no_guard() -> None:
    _, function = kernels_of(product((40, 40, 16)))
    verify(in_module(function))
    ptx = generate_ptx(emit_kernels(function, "k", "sm_80").text, "sm_80")
    last = ptx.rindex("mma.sync")
    assert "bra" not in ptx[ptx.index("mma.sync") : last]
    assert ptx.index("st.global") > last
    assert not any(line.lstrip().startswith("@") and "mma" in line for line in ptx.splitlines())
