"""Shared tiles in turn: which loops are changed, how copies are formed, and what stays as it is."""

import pytest
from tests.gpu_on_cpu.kernel_checks import check_kernels
from tests.native_workloads import conv2d_nchw_bn_relu, matmul, softmax_nm
from tests.tir_checks import in_module, lines_of, parsed

from intarsia.ir import PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.copies_ahead import with_copies_ahead
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, MOST_SHARED_BYTES, list_kernels
from intarsia.native.tir import Simplify

STEPS = """def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
  for block b in 1 {
    alloc row: Buffer[(8,), float32, shared] {
      for thread t in 8 {
        for k in 4 {
          barrier;
          row[t] = x[k, t];
          barrier;
          y[k, t] = row[7 - t];
        }
      }
    }
  }
}
"""


def ahead(text: str, buffers: int) -> PrimFunc:
    function = Simplify()(in_module(with_copies_ahead(parsed(text), buffers))).prim_func("f")
    verify(in_module(function))
    return function


def test_a_step_is_filled_while_the_one_before_is_computed() -> None:
    body = [line.strip() for line in lines_of(ahead(STEPS, 2))]
    assert body[body.index("for thread t in 8 {") + 1 : -3] == [
        "async copy row[0, t] = x[0, t] width 1;",
        "async commit;",
        "for k in 4 {",
        "async wait 0;",
        "barrier;",
        "if k < 3 {",
        "async copy row[(k + 1) mod 2, t] = x[k + 1, t] width 1;",
        "}",
        "async commit;",
        "y[k, t] = row[k mod 2, 7 - t];",
        "}",
    ]


@pytest.mark.parametrize("buffers", [3, 4, 9])
def test_more_tiles_are_filled_earlier(buffers: int) -> None:
    lines = [line.strip() for line in lines_of(ahead(STEPS, buffers))]
    count = min(buffers, 4)
    assert lines.count("async commit;") == count
    assert f"async wait {count - 2};" in lines
    assert f"alloc row: Buffer[({count}, 8), float32, shared] {{" in lines


USE = "y[k, t] = row[7 - t];"
FILL = "row[t] = x[k, t];"
STAYS = {
    "a tile that is read behind the loop": (f"{USE}\n        }}", "}\n y[0, t] = row[t];"),
    "a tile that is computed": (FILL, "row[t] = x[k, t] * 2.0f32;"),
    "a source that the kernel writes": (FILL, "row[t] = y[k, t];"),
    "a third barrier": (USE, f"{USE} barrier;"),
    "a loop with a count": ("for k in 4 {", "for k in 4 count int64(x[0, 0]) {"),
    "a tile that is written behind the barrier": (USE, f"{USE} row[t] = 0.0f32;"),
}


@pytest.mark.parametrize("reason", STAYS)
def test_other_loops_stay(reason: str) -> None:
    before, after = STAYS[reason]
    assert before in STEPS
    function = parsed(STEPS.replace(before, after))
    assert with_copies_ahead(function, 2) is function


def test_one_tile_changes_nothing() -> None:
    function = parsed(STEPS)
    assert with_copies_ahead(function, 1) is function


def test_tiles_in_turn_fit_into_shared_memory() -> None:
    rows = STEPS.replace("row: Buffer[(8,)", "row: Buffer[(4000,)")
    function = with_copies_ahead(parsed(rows), 9)
    (kernel,) = list_kernels(function).kernels
    assert kernel.shared_bytes == 3 * 4000 * 4 <= DECLARED_SHARED_BYTES
    (kernel,) = list_kernels(with_copies_ahead(parsed(rows), 9, MOST_SHARED_BYTES)).kernels
    assert kernel.shared_bytes == 4 * 4000 * 4  # as many tiles as there are steps
    whole = parsed(STEPS.replace("row: Buffer[(8,)", "row: Buffer[(7000,)"))
    assert with_copies_ahead(whole, 9) is whole


def kernels_of(function: PrimFunc) -> str:
    return "\n".join(lines_of(function))


def test_a_product_copies_whole_rows_where_they_are_aligned() -> None:
    aligned, odd = (ComputeDAG(matmul(40, 36, size)) for size in (52, 51))
    assert " width 4;" in kernels_of(lower_to_kernels(aligned, default_gpu_state(aligned)))
    text = kernels_of(lower_to_kernels(odd, default_gpu_state(odd)))
    rows = [line for line in text.splitlines() if "async copy" in line and '"B.shared"' in line]
    assert all("width 4;" in line for line in rows)
    single = [line for line in text.splitlines() if "async copy" in line and '"A.shared"' in line]
    assert all("width 1;" in line for line in single)
    assert rows
    assert single


def test_padding_is_stored_and_the_rest_is_copied() -> None:
    dag = ComputeDAG(conv2d_nchw_bn_relu())
    text = kernels_of(lower_to_kernels(dag, default_gpu_state(dag)))
    assert "async copy padding[" in text
    assert "= 0.0f32;" in text


def test_rows_have_no_tiles_in_turn() -> None:
    dag = ComputeDAG(softmax_nm(3, 200))
    assert "async" not in kernels_of(lower_to_kernels(dag, default_gpu_state(dag), 4))


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("shape", [(65, 3, 33), (64, 30, 20), (33, 36, 68)])
def test_a_ragged_product_in_turn_computes_the_same(shape: tuple[int, int, int], tiles: int) -> None:
    dag = ComputeDAG(matmul(*shape))
    check_kernels(dag, lower_to_kernels(dag, default_gpu_state(dag), tiles))
