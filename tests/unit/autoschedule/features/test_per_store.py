"""Features of loop functions, with the golden values of the field."""

from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.each_case import each_case
from tests.native_workloads import WORKLOADS, conv2d_nchw_bn_relu, matmul

from intarsia.autoschedule.features import FeatureOptions, Machine, feature_names, per_store_features
from intarsia.autoschedule.task import HardwareParams
from intarsia.ir import PrimFunc
from intarsia.ir.parser import parse_module
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower

HARDWARE = HardwareParams(4)
NAMES = feature_names()
FLOAT = 4

MATMUL = """def prim @f(A: Buffer[(512, 512), float32], B: Buffer[(512, 512), float32], C: Buffer[(512, 512), float32]) {
  for parallel i_0 in 32 {
    for parallel j_0 in 64 {
      for vectorized j_1 in 8 { for i_1 in 16 { C[i_0 * 16 + i_1, j_0 * 8 + j_1] = 0.0f32; } }
      for unrolled k in 512 {
        for vectorized j_1 in 8 {
          for i_1 in 16 {
            C[i_0 * 16 + i_1, j_0 * 8 + j_1] = C[i_0 * 16 + i_1, j_0 * 8 + j_1] + A[i_0 * 16 + i_1, k] * B[k, j_0 * 8 + j_1];
          }
        }
      }
    }
  }
}"""  # noqa: E501 - the program as it prints


def _function(text: str) -> PrimFunc:
    return parse_module(text).prim_func("f")


def _row(rows: NDArray[np.float32], place: int = 0) -> dict[str, float]:
    """Features by name, logarithms taken back."""
    pairs = zip(NAMES, rows[place], strict=True)
    return {
        name: float(value) if name == "is_gpu" or "type.k" in name else float(2.0 ** np.float64(value) - 1)
        for name, value in pairs
    }


def _buffers(row: dict[str, float]) -> list[dict[str, float]]:
    return [
        {name[3:]: value for name, value in row.items() if name.startswith(f"B{number}.")}
        for number in range(5)
    ]


def _only(buffers: Iterable[dict[str, float]], **wanted: float) -> dict[str, float]:
    (found,) = (
        each for each in buffers if all(each[name.replace("__", ".")] == wanted[name] for name in wanted)
    )
    return found


def _dag(tensors: tuple[te.Tensor, ...]) -> ComputeDAG:
    return ComputeDAG(tensors)


def _state_row(dag: ComputeDAG, state: LoopState, place: int = 0) -> dict[str, float]:
    return _row(per_store_features(lower(dag, state), HARDWARE), place)


def test_names_are_164_and_differ() -> None:
    assert len(NAMES) == len(set(NAMES)) == 164
    assert NAMES[:3] == ("float_mad", "float_addsub", "float_mul")
    assert NAMES[57] == "B0.acc_type.kRead"
    assert NAMES[74] == "B0.stride"
    assert NAMES[-3:] == ("outer_prod", "num_loops", "auto_unroll_max_step")


def test_golden_matmul() -> None:
    """A product of 512 by 512 by 512, tiled by 16 and 8 (upstream's test_cpu_matmul)."""
    rows = per_store_features(_function(MATMUL), HARDWARE)
    assert rows.shape == (1, 164)
    row = _row(rows)
    buffers = _buffers(row)
    result = _only(buffers, acc_type__kReadWrite=1)
    free = _only(buffers, acc_type__kRead=1, stride=0)
    assert result["bytes"] == pytest.approx(512**3 * FLOAT)
    assert free["unique_bytes"] == pytest.approx(512**2 * FLOAT)
    assert result["reuse_dis_iter"] == pytest.approx(8 * 16)
    assert result["reuse_dis_bytes"] == pytest.approx((8 * 16 + 8 + 16) * FLOAT)
    assert result["reuse_ct"] == pytest.approx(512)
    assert row["unroll_num"] == row["vec_num"] == pytest.approx(1)
    assert row["parallel_num"] == pytest.approx(2)
    assert row["parallel_prod"] == pytest.approx(512 * 512 / 16 / 8)


def test_matmul_beside_the_golden_values() -> None:
    row = _row(per_store_features(_function(MATMUL), HARDWARE))
    assert row["float_mul"] == row["float_addsub"] == row["float_mad"] == pytest.approx(512**3, rel=1e-5)
    assert row["outer_prod"] == pytest.approx(512**3, rel=1e-5)
    assert row["num_loops"] == pytest.approx(5)
    assert row["vec_type.kPosMiddleSpatial"] == 1
    assert row["unroll_type.kPosInnerReduce"] == 1
    assert row["parallel_type.kPosMiddleSpatial"] == 1
    result = _only(_buffers(row), acc_type__kReadWrite=1)
    assert result["reuse_type.kLoopMultipleRead"] == 1
    assert result["unique_bytes"] == pytest.approx(512**2 * FLOAT, rel=1e-5)
    assert result["unique_lines"] == pytest.approx(512**2 * FLOAT / 64, rel=1e-5)
    assert result["stride"] == pytest.approx(512)
    assert result["lines"] == pytest.approx(512**3, rel=1e-5)


def test_golden_fusion() -> None:
    """A copy of a copy, the first computed in the inner loop of the second (upstream's test_cpu_fusion)."""
    a = te.placeholder((64, 32), name="A")
    b = te.compute((64, 32), lambda i, j: a[i, j], name="B")
    c = te.compute((64, 32), lambda i, j: b[i, j], name="C")
    dag = _dag((a, c))
    state = LoopState.initial(dag).compute_at("B", "C", "j")
    rows = per_store_features(lower(dag, state), HARDWARE)
    assert rows.shape == (2, 164)
    found = [each for place in range(2) for each in _buffers(_row(rows, place))]
    serial = _only(found, reuse_type__kSerialMultipleReadWrite=1.0)
    assert serial["reuse_dis_iter"] == pytest.approx(1)
    assert serial["reuse_dis_bytes"] == pytest.approx(16)
    assert serial["reuse_ct"] == pytest.approx(1)


def test_an_allocated_buffer_tells_where_it_is() -> None:
    a = te.placeholder((5, 7), name="A")
    b = te.compute((5, 7), lambda i, j: te.exp(a[i, j]), name="B")
    dag = _dag((a, te.compute((5, 7), lambda i, j: b[i, j] + 1.0, name="C")))
    state = LoopState.initial(dag).compute_at("B", "C", "i")
    row = _state_row(dag, state, 0)
    assert row["alloc_size"] == pytest.approx(7 * FLOAT)
    assert _state_row(dag, state, 1)["alloc_size"] == 0
    assert row["alloc_outer_prod"] == pytest.approx(5)
    assert row["alloc_prod"] == pytest.approx(35)
    assert row["alloc_inner_prod"] == pytest.approx(7)
    assert row["float_math_func"] == pytest.approx(35)


def test_lines_are_divided_by_all_skipped_loops() -> None:
    """Loops j and k of other extents stand inside i, which alone moves A."""
    text = """def prim @f(A: Buffer[(64,), float32], C: Buffer[(64, 3, 5), float32]) {
      for i in 64 { for j in 3 { for k in 5 { C[i, j, k] = A[i]; } } } }"""
    row = _row(per_store_features(_function(text), HARDWARE))
    read = _only(_buffers(row), acc_type__kRead=1)
    assert read["lines"] == pytest.approx(64 * FLOAT / 64)
    assert read["stride"] == 0
    assert read["reuse_dis_bytes"] == pytest.approx(2 * FLOAT)


def test_a_choice_of_lowering_is_one_store() -> None:
    """Padding reads its input, though the store of zeros is the last statement."""
    dag = _dag(conv2d_nchw_bn_relu())
    row = _state_row(dag, LoopState.initial(dag))
    assert row["select_op"] == pytest.approx(3 * 8 * 8)
    assert row["bool_op"] == pytest.approx(3 * 3 * 8 * 8)
    assert row["int_cmp"] == pytest.approx(4 * 3 * 8 * 8)
    assert _only(_buffers(row), acc_type__kRead=1)["unique_bytes"] == pytest.approx(3 * 6 * 6 * FLOAT)


def test_a_choice_inside_an_element_is_seen_through() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.if_then_else(i >= 1, a[i - 1], 0.0) * 2.0, name="B")
    dag = _dag((a, b))
    row = _state_row(dag, LoopState.initial(dag))
    assert per_store_features(lower(dag, LoopState.initial(dag)), HARDWARE).shape == (1, 164)
    assert row["select_op"] == row["float_mul"] == row["int_cmp"] == pytest.approx(8)
    assert row["int_addsub"] == pytest.approx(8)
    assert _only(_buffers(row), acc_type__kRead=1)["bytes"] == pytest.approx(8 * FLOAT)


def test_the_hint_to_unroll_is_a_feature() -> None:
    dag = _dag(matmul())
    state = LoopState.initial(dag).pragma("C", "i", "auto_unroll_max_step$64")
    assert _state_row(dag, state)["auto_unroll_max_step"] == pytest.approx(64)
    assert _state_row(dag, LoopState.initial(dag))["auto_unroll_max_step"] == 0


def test_the_curve_rises_where_inner_loops_reuse() -> None:
    dag = _dag(matmul(32, 32, 32))
    row = _state_row(dag, LoopState.initial(dag))
    curve = [row[f"arith_intensity_curve_{number}"] for number in range(10)]
    assert curve == sorted(curve)
    assert curve[-1] == pytest.approx(2 * 32**3 / (3 * 32**2 * FLOAT), rel=1e-4)


def test_without_loops_and_without_floats() -> None:
    text = """def prim @f(x: Buffer[(), int32], y: Buffer[(), int32]) { y[] = x[] + 1i32; }"""
    row = _row(per_store_features(_function(text), HARDWARE))
    assert row["int_addsub"] == row["outer_prod"] == pytest.approx(1)
    assert row["num_loops"] == row["arith_intensity_curve_9"] == 0
    assert _only(_buffers(row), acc_type__kWrite=1)["reuse_type.kNoReuse"] == 1


def test_nothing_stored_gives_no_row() -> None:
    a = te.placeholder((0, 4), name="A")
    dag = _dag((a, te.compute((0, 4), lambda i, j: a[i, j] + 1.0, name="B")))
    assert per_store_features(lower(dag, LoopState.initial(dag)), HARDWARE).shape == (0, 164)


def test_other_numbers_of_buffers() -> None:
    dag = _dag(matmul())
    function = lower(dag, LoopState.initial(dag))
    assert per_store_features(function, HARDWARE, 2).shape == (1, len(feature_names(2)))
    assert len(feature_names(2)) == 164 - 3 * 18


@each_case("name", WORKLOADS)
def test_every_workload_has_finite_features(name: str) -> None:
    dag = _dag(WORKLOADS[name]())
    machine = Machine(32, 16, 32768, 524288, 4)
    function = lower(dag, LoopState.initial(dag))
    rows = per_store_features(function, HARDWARE)
    wide = per_store_features(function, HARDWARE, machine=machine)
    assert rows.shape[0] >= 1
    assert np.isfinite(wide).all()
    assert wide.shape[1] == len(FeatureOptions(machine=machine).names)
    assert np.array_equal(wide[:, :164], rows)
    assert (rows[:, NAMES.index("outer_prod")] >= 0).all()
