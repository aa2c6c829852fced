"""Accesses of kernels to memory from their indices, and the cost that orders candidates."""

import math

import pytest
from tests.native_workloads import conv2d_nchw_bn_relu, matmul, softmax_nm
from tests.tir_checks import parsed
from tests.unit.native.gpu.test_tensor_cores import kernels_of, product

from intarsia.ir import DType, PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu import default_gpu_state as default_state
from intarsia.native.gpu import tensor_core_product
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.gpu.kernel_list import Kernel, list_kernels
from intarsia.native.gpu.memory_accesses import MemoryAccess, memory_accesses
from intarsia.native.gpu.schedule_stages import per_element
from intarsia.native.gpu.static_cost import FACTS, resident_blocks, static_cost
from intarsia.native.gpu.tensor_core_product import TILINGS, WarpTiling
from intarsia.native.loop_state import LoopState

A100 = FACTS["sm_80"]


HEAD = "def prim @f(x: Buffer[(256, 64), float32], i: Buffer[(256,), int64], y: Buffer[(256, 64), float32])"
SQUARE = "(64, 64), float32"


def kernel(body: str, threads: int = 32, shared: str = SQUARE) -> Kernel:
    """A kernel that reads x and writes y, both of 256 by 64 elements, through s."""
    around = f"for block b in 4 {{ alloc s: Buffer[{shared}, shared] {{ for thread t in {threads} "
    (only,) = list_kernels(parsed(f"{HEAD} {{ {around} {{ {body} }} }} }} }}")).kernels
    return only


def accesses_of(body: str, name: str, threads: int = 32, shared: str = SQUARE) -> list[MemoryAccess]:
    return [each for each in memory_accesses(kernel(body, threads, shared)) if each.buffer.name == name]


GLOBAL = {
    "a row": ("y[b, t] = 0.0f32;", 4, 4),
    "a column": ("y[t, b] = 0.0f32;", 32, 4),
    "every other element": ("y[b, t * 2] = 0.0f32;", 8, 4),
    "one element": ("y[b, 0] = 0.0f32;", 1, 1),
    "half of the threads": ("if t < 16 { y[b, t] = 0.0f32; }", 2, 2),
    "the other half": ("if t < 16 { s[0, 0] = 0.0f32; } else { y[b, t] = 0.0f32; }", 2, 2),
}


@pytest.mark.parametrize("name", GLOBAL)
def test_global_accesses_cost_the_sectors_that_threads_touch(name: str) -> None:
    body, units, least = GLOBAL[name]
    (access,) = accesses_of(body, "y")
    assert (access.units, access.least_units) == (units, least)
    assert access.is_store
    assert not access.is_shared


SHARED = {
    "a row": ("s[0, t] = 0.0f32;", 1, 1),
    "a column": ("s[t, 0] = 0.0f32;", 32, 1),
    "every other element": ("s[t floordiv 32, t mod 32 * 2] = 0.0f32;", 2, 1),
    "one element": ("s[0, 0] = 0.0f32;", 1, 1),
    "four rows of eight": ("s[t floordiv 8, t mod 8] = 0.0f32;", 4, 1),
}


@pytest.mark.parametrize("name", SHARED)
def test_shared_accesses_cost_turns_of_banks(name: str) -> None:
    body, units, least = SHARED[name]
    (access,) = accesses_of(body, "s")
    assert (access.units, access.least_units) == (units, least)
    assert access.is_shared


def test_padded_rows_have_no_conflicts() -> None:
    (access,) = accesses_of("s[t, 0] = 0.0f32;", "s", shared="(64, 65), float32")
    assert access.units == access.least_units == 1


def test_neighbours_are_one_access() -> None:
    four = " ".join(f"y[b, t mod 16 * 4 + {n}] = 0.0f32;" for n in range(4))
    (access,) = accesses_of(four, "y", threads=16)
    assert (access.bytes_of_thread, access.units, access.least_units) == (16, 8, 8)
    (lanes,) = accesses_of("for vectorized v in 4 { y[b, t * 4 + v] = 0.0f32; }", "y", threads=16)
    assert lanes == access
    odd = accesses_of(four.replace("t mod 16 * 4", "t mod 16 * 3"), "y", threads=16)
    assert [access.bytes_of_thread for access in odd] == [4, 4, 4, 4]
    apart = "for vectorized v in 4 { y[b, (t * 4 + v) floordiv 8 + v] = 0.0f32; }"
    (single,) = accesses_of(apart, "y", threads=16)
    assert (single.bytes_of_thread, single.count) == (4, 4)


def test_a_load_that_stands_twice_is_one_access_and_loops_repeat_it() -> None:
    body = "for k in 5 { s[0, t] = x[k, t] + x[k, t]; }"
    (access,) = accesses_of(body, "x")
    assert access.count == 5
    assert not access.is_store


def test_indices_that_are_data_touch_a_sector_each() -> None:
    (access,) = accesses_of("s[0, t] = x[i[t], 0];", "x")
    assert access.units == 32


def test_copies_are_accesses_to_both_memories() -> None:
    body = "async copy s[t, 0] = x[t, 0] width 4 valid select(t < 8, 4, 0); async commit; async wait 0;"
    (read,), (written,) = accesses_of(body, "x"), accesses_of(body, "s")
    assert (read.bytes_of_thread, read.units) == (16, 8)
    assert (written.bytes_of_thread, written.units, written.least_units) == (16, 32, 4)


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT32])
def test_products_on_tensor_cores_read_shared_memory_without_conflicts(
    dtype: DType, is_transposed: bool
) -> None:
    _, function = kernels_of(product((256, 256, 256), dtype, is_transposed=is_transposed), tf32=True)
    (only,) = list_kernels(function).kernels
    reads = [access for access in memory_accesses(only) if access.is_shared and not access.is_store]
    assert len(reads) >= 4
    assert all(access.units == access.least_units for access in reads)
    copied = [access for access in memory_accesses(only) if access.buffer.name in ("A", "B")]
    assert copied
    assert all(access.units == access.least_units and access.bytes_of_thread == 16 for access in copied)


def test_tiles_without_padding_have_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_core_product, "MMA_ROW_ALIGNMENT", 0)
    monkeypatch.setattr(default_state, "with_padded_tiles", lambda function: function)
    _, function = kernels_of(product((256, 256, 256)))
    (only,) = list_kernels(function).kernels
    reads = [access for access in memory_accesses(only) if access.is_shared and not access.is_store]
    assert any(access.units > access.least_units for access in reads)


def cost_of(function: PrimFunc) -> float:
    return sum(static_cost(each, A100) for each in list_kernels(function).kernels)


def element_kernels(dag: ComputeDAG) -> PrimFunc:
    return lower_to_kernels(dag, per_element(LoopState.initial(dag), "C"))


@pytest.mark.parametrize("size", [256, 1024])
def test_tiles_in_shared_memory_cost_less_than_a_thread_for_each_element(size: int) -> None:
    dag = ComputeDAG(matmul(size, size, size))
    assert cost_of(lower_to_kernels(dag, default_gpu_state(dag))) < cost_of(element_kernels(dag))


def test_tensor_cores_cost_less_than_products_in_float32() -> None:
    tensors = product((1024, 1024, 1024), DType.FLOAT16)
    dag, function = kernels_of(tensors, tiling=TILINGS[0])
    assert cost_of(function) < cost_of(lower_to_kernels(dag, default_gpu_state(dag))) / 2


def cost_of_tiling(shape: tuple[int, int, int], tiling: WarpTiling) -> float:
    return cost_of(kernels_of(product(shape), tiling=tiling)[1])


def test_large_products_prefer_large_tiles_and_small_ones_small_tiles() -> None:
    large = [cost_of_tiling((4096, 4096, 512), tiling) for tiling in TILINGS]
    small = [cost_of_tiling((128, 256, 512), tiling) for tiling in TILINGS]
    assert large == sorted(large)
    assert small == sorted(small, reverse=True)


def test_a_kernel_that_fits_nowhere_costs_infinitely_much() -> None:
    large = kernel("s[0, t] = 0.0f32; y[b, t] = s[0, t];", threads=1024, shared="(100, 100), float32")
    assert resident_blocks(large, A100, 64) == 1
    assert resident_blocks(large, A100, 32) == 2
    assert resident_blocks(large, A100, 128) == 0
    assert math.isinf(static_cost(large, A100, 128))
    assert static_cost(large, A100, 64) > 0


@pytest.mark.parametrize("facts", FACTS)
def test_every_kernel_of_the_rules_has_a_cost(facts: str) -> None:
    for tensors in (softmax_nm(), conv2d_nchw_bn_relu(), matmul(33, 65, 20)):
        dag = ComputeDAG(tensors)
        for each in list_kernels(lower_to_kernels(dag, default_gpu_state(dag))).kernels:
            assert 0 < static_cost(each, FACTS[facts]) < math.inf
