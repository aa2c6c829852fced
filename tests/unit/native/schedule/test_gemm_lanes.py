"""Products along their sums: right for every size, chosen where the right matrix is seldom used."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from tests.default_schedules import assert_matches_declared, optimised, run_scheduled
from tests.emitted_kernels import x86_sets
from tests.schedule_families import SMALL, turned_product

from intarsia.ir import DType, TensorType, Var
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, MemoryScope
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.loop_state import ComputeAt
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state, scheduled
from intarsia.native.schedule.families import schedule_family
from intarsia.native.schedule.gemm import gemm_plans
from intarsia.native.schedule.gemm_family import GemmChoice
from intarsia.native.schedule.gemm_tile import gemm_tile
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.op import call

pytestmark = pytest.mark.quick_tests(11, also=["test_a_transposed_matrix_that_others_read_stays"])

SETS = x86_sets()
SIZES = ((1, 37, 33), (2, 1, 64), (3, 5, 64), (4, 53, 70), (7, 100, 131), (8, 19, 64), (13, 29, 257))


def is_along_sum(dag: ComputeDAG, isa: Isa = SMALL) -> list[bool]:
    """Of each product, whether its vectors run along the sum."""
    return [plan.is_along_sum for plan in gemm_plans(ScheduleTask(dag, isa, 1))]


def gemm_dag(m: int, n: int, k: int) -> ComputeDAG:
    """The operator Gemm with a variable matrix that is given transposed."""
    types = {"a": (m, k), "b": (n, k)}
    a, b = (Var(name, checked_type=TensorType(shape, DType.FLOAT32)) for name, shape in types.items())
    return ComputeDAG(compute(compute_call_of(call("Gemm", a, b, transB=1), "t")))


def scores(heads: int, m: int, n: int, k: int, *, is_shared: bool = False) -> ComputeDAG:
    """Products of rows of two matrices for each head; the transposed matrix may have another reader."""
    q, x = te.placeholder((heads, m, k), name="Q"), te.placeholder((heads, n, k), name="K")
    axis = te.reduce_axis(k, "rk")
    turned = te.compute((heads, k, n), lambda h, i, j: x[h, j, i], name="turned")
    found = te.compute(
        (heads, m, n), lambda h, i, j: te.sum(q[h, i, axis] * turned[h, axis, j], axis=axis), name="S"
    )
    if not is_shared:
        return ComputeDAG((q, x, found))
    return ComputeDAG((q, x, found, te.compute(turned.shape, lambda *i: turned[i] * 2.0, name="double")))


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("size", SIZES)
def test_products_of_every_size(size: tuple[int, int, int], isa: Isa) -> None:
    assert_matches_declared(gemm_dag(*size), isa)
    assert_matches_declared(ComputeDAG(turned_product(*size)), isa, threads=3)


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("threads", [1, 3])
def test_products_of_several_heads(threads: int, isa: Isa) -> None:
    for size in ((3, 1, 40, 64), (2, 5, 33, 131)):
        assert is_along_sum(scores(*size), isa) == [True]
        assert_matches_declared(scores(*size), isa, threads)


def test_sums_are_as_close_as_those_of_doubles() -> None:
    m, n, k = 4, 30, 2055
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (n, k)))
    (found,) = run_scheduled(gemm_dag(m, n, k), {"t.x0": a, "t.x1": b}, Isa.host())
    wide = a.astype(np.float64), b.astype(np.float64)
    bound = np.abs(wide[0]) @ np.abs(wide[1]).T * np.finfo(np.float32).eps * (k / 4)
    assert np.all(np.abs(found - wide[0] @ wide[1].T) <= bound)


def test_few_rows_run_along_the_sum_and_many_are_copied() -> None:
    chosen = {m: is_along_sum(gemm_dag(m, 96, 256)) for m in (1, 7, 14, 15, 32, 64)}
    assert chosen == {1: [True], 7: [True], 14: [True], 15: [False], 32: [False], 64: [False]}


@pytest.mark.parametrize(("heads", "m", "k"), [(6, 30, 40), (1, 7, 33), (2, 65, 100)])
@pytest.mark.parametrize("is_row", [False, True])
def test_products_with_vectors_run_along_the_sum(heads: int, m: int, k: int, *, is_row: bool) -> None:
    """A matrix of one column, or the transposed one of one row, is contiguous along the sum."""
    shapes = ((heads, 1, k), (heads, m, k)) if is_row else ((heads, m, k), (heads, k, 1))
    a, b = (te.placeholder(shape, name=name) for name, shape in zip("AB", shapes, strict=True))
    axis = te.reduce_axis(k, "k")
    right = te.compute((heads, k, m), lambda h, i, j: b[h, j, i], name="turned") if is_row else b
    result = (heads, 1, m) if is_row else (heads, m, 1)
    c = te.compute(result, lambda h, i, j: te.sum(a[h, i, axis] * right[h, axis, j], axis=axis), name="C")
    dag = ComputeDAG((a, b, c))
    assert is_along_sum(dag) == [True]
    for isa in (SMALL, Isa.host()):
        assert_matches_declared(dag, isa)


def test_a_short_sum_does_not_fill_the_lanes() -> None:
    assert is_along_sum(gemm_dag(1, 200, 31)) == []
    assert is_along_sum(gemm_dag(1, 200, 32)) == [True]


def test_short_rows_times_a_vector_are_summed_one_by_one() -> None:
    assert is_along_sum(gemm_dag(1, 200, 31)) == []
    assert is_along_sum(gemm_dag(1, 200, 32)) == [True]


def test_panels_of_a_transposed_matrix_are_transposed_in_registers() -> None:
    dag = ComputeDAG(turned_product(48, 64, 64))
    assert is_along_sum(dag) == [False]
    text = emit_llvm(optimised(scheduled(dag, SMALL, 1).lowered(), SMALL), "k", SMALL).text
    assert text.count("shufflevector <8 x float>") >= 24
    for isa in (SMALL, Isa.host()):
        assert_matches_declared(ComputeDAG(turned_product(50, 70, 53)), isa)


def test_a_transposed_matrix_that_others_read_stays() -> None:
    dag = scores(2, 3, 40, 64, is_shared=True)
    assert is_along_sum(dag) == [False]
    assert_matches_declared(dag, SMALL)


def test_a_transposed_left_matrix_stays_by_columns() -> None:
    a, b, k = te.placeholder((64, 4), name="A"), te.placeholder((40, 64), name="B"), te.reduce_axis(64, "k")
    turned = te.compute((64, 40), lambda i, j: b[j, i], name="turned")
    c = te.compute((4, 40), lambda i, j: te.sum(a[k, i] * turned[k, j], axis=k), name="C")
    assert is_along_sum(ComputeDAG((a, b, c))) == [False]
    assert_matches_declared(ComputeDAG((a, b, c)), SMALL)


def test_nothing_of_the_right_matrix_is_stored() -> None:
    dag = ComputeDAG(turned_product(2, 48, 64))
    state = default_state(dag, SMALL, 1)
    assert state["turned"].compute_at is ComputeAt.INLINED
    parts = [stage for stage in state.stages if stage.op.name.startswith("C.rf")]
    assert [stage.op.buffers[0].shape[-1] for stage in parts] == [8, 4, 2]
    assert {stage.compute_at for stage in parts} == {ComputeAt.ITER}
    function = optimised(scheduled(dag, SMALL, 1).lowered(), SMALL)
    inside = [visit.statement for visit in walk(function.body)]
    made = {one.buffer.name: one.buffer for one in inside if isinstance(one, Allocate)}
    assert made["C.rf"].scope is MemoryScope.REGISTER
    assert max(prod(buffer.shape) for buffer in made.values()) < 48 * 64 // 8


@pytest.mark.parametrize("rows", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("accumulators", [13, 29])
def test_a_tile_has_a_register_for_each_sum_and_column(rows: int, accumulators: int) -> None:
    tile = gemm_tile(rows, 768, 8, accumulators, is_along_sum=True)
    assert tile.rows <= rows
    assert tile.rows * tile.columns + min(tile.rows, tile.columns) < accumulators + 3


@pytest.mark.parametrize("reads", [0, 1, 2])
def test_a_search_may_decide_otherwise(reads: int) -> None:
    dag = ComputeDAG(turned_product(6, 21, 150))
    family = schedule_family(dag, SMALL, 2)
    assert family is not None
    start = GemmChoice(*family.default)
    assert start.reads == 2
    other = GemmChoice(*family.canonical(start._replace(rows=3, columns=24, reads=reads)))
    state = family.state_of(other)
    assert state is not None
    assert family.fits(other)
    assert family.choice_of(state) == other
    assert any(stage.op.name.startswith("C.rf") for stage in state.stages) == (reads == 2)


def test_along_the_sum_nothing_is_cut() -> None:
    family = schedule_family(ComputeDAG(turned_product(6, 21, 150)), SMALL, 2)
    assert family is not None
    start = GemmChoice(*family.default)
    assert family.canonical(start._replace(deep=3, steps=2)) == start
