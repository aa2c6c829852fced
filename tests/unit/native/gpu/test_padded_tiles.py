"""Padding of shared tiles: fewer conflicts of banks, the same results."""

import pytest
from tests.gpu_on_cpu.kernel_checks import check_kernels
from tests.native_workloads import matmul, softmax_nm
from tests.tir_checks import in_module, parsed
from tests.unit.native.gpu.test_tensor_cores import kernels_of, product

from intarsia.ir import PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.memory_accesses import memory_accesses
from intarsia.native.gpu.padded_tiles import with_padded_tiles

COLUMNS = """def prim @f(x: Buffer[(32, 32), float32], y: Buffer[(32, 32), float32]) {
  for block b in 1 {
    alloc s: Buffer[(32, 32), float32, shared] {
      for thread t in 32 {
        for k in 32 {
          s[k, t] = x[k, t];
        }
        barrier;
        for k in 32 {
          y[k, t] = s[t, k];
        }
      }
    }
  }
}
"""


def turns_of(function: PrimFunc) -> int:
    return sum(
        access.units * access.count
        for kernel in list_kernels(function).kernels
        for access in memory_accesses(kernel)
        if access.is_shared
    )


def test_columns_of_a_tile_are_read_without_conflicts() -> None:
    before = parsed(COLUMNS)
    after = with_padded_tiles(before)
    verify(in_module(after))
    assert (turns_of(before), turns_of(after)) == (32 + 32 * 32, 32 + 32)
    (kernel,) = list_kernels(after).kernels
    assert kernel.shared[0].shape == (32, 33)


def test_padding_keeps_wide_copies_aligned() -> None:
    vectors = COLUMNS.replace(
        "s[k, t] = x[k, t];", "for vectorized v in 4 { s[k, t mod 8 * 4 + v] = x[k, v]; }"
    )
    (kernel,) = list_kernels(with_padded_tiles(parsed(vectors))).kernels
    assert kernel.shared[0].shape[-1] % 4 == 0
    assert kernel.shared[0].shape[-1] > 32


@pytest.mark.parametrize(
    "text",
    [
        COLUMNS.replace("s[t, k]", "s[k, t]"),
        COLUMNS.replace("(32, 32), float32, sh", "(384, 32), float32, sh"),
    ],
)
def test_what_has_no_conflicts_or_no_room_stays(text: str) -> None:
    function = parsed(text)
    assert with_padded_tiles(function) is function


def test_tiles_of_products_are_padded_and_compute_the_same() -> None:
    dag = ComputeDAG(matmul(40, 36, 52))
    function = lower_to_kernels(dag, default_gpu_state(dag))
    (kernel,) = list_kernels(function).kernels
    assert [buffer.shape[-1] for buffer in kernel.shared] == [20, 32]
    check_kernels(dag, function)


def test_other_tiles_stay() -> None:
    _, function = kernels_of(product((64, 64, 64)))
    assert with_padded_tiles(function) is function
    dag = ComputeDAG(softmax_nm(3, 200))
    rows = lower_to_kernels(dag, default_gpu_state(dag))
    assert with_padded_tiles(rows) is rows
