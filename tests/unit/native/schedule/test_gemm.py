"""Products of matrices: right for every size, in registers, with what follows at the tile's write-back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.default_schedules import (
    assert_matches_declared,
    optimised,
    random_inputs,
    run_declared,
    run_scheduled,
)
from tests.emitted_kernels import x86_sets

from intarsia.ir import DType, TensorType, Var
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, For, ForKind, MemoryScope, Statement, Store
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state, scheduled
from intarsia.native.schedule.gemm import gemm_plans
from intarsia.native.schedule.gemm_tile import gemm_tile
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators import compute, compute_call_of
from intarsia.op import call
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel

pytestmark = pytest.mark.quick_tests(22)

SETS = x86_sets()
SIZES = (
    (1, 1, 2),
    (1, 37, 19),
    (7, 1, 9),
    (5, 3, 64),
    (17, 33, 8),
    (64, 64, 64),
    (29, 100, 23),
    (31, 65, 40),
)


def product(m: int, n: int, k: int, *, constant: bool = False, turned: bool = False) -> te.Tensor:
    attrs: dict[str, int | tuple[str, ...]] = {"constant": 1} if constant else {}
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((n, k) if turned else (k, n), name="B", attrs=attrs)
    axis = te.reduce_axis(k, "k")
    free = {"layout_free_placeholders": ("B",)} if constant else {}
    return te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, axis] * (b[j, axis] if turned else b[axis, j]), axis=axis),
        name="C",
        attrs=free,
    )


def activated(c: te.Tensor) -> te.Tensor:
    """C with a bias for each column, then its positive part, then the sum with another matrix."""
    bias, rest = te.placeholder((c.shape[1],), name="bias"), te.placeholder(c.shape, name="rest")
    shifted = te.compute(c.shape, lambda i, j: c[i, j] + bias[j], name="shifted")
    positive = te.compute(c.shape, lambda i, j: te.maximum(shifted[i, j], te.const(0.0)), name="positive")
    return te.compute(c.shape, lambda i, j: positive[i, j] + rest[i, j], name="D")


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_products_of_every_size(size: tuple[int, int, int], constant: bool, isa: Isa) -> None:
    assert_matches_declared(ComputeDAG((product(*size, constant=constant),)), isa)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turned", [False, True])
def test_what_follows_is_computed_with_the_tile(size: tuple[int, int, int], turned: bool) -> None:
    dag = ComputeDAG((activated(product(*size, turned=turned)),))
    assert_matches_declared(dag, Isa.host())


CUT = ((70, 90, 100), (33, 130, 257), (20, 50, 1021))


def small_caches(isa: Isa) -> Isa:
    """The same instructions on a machine where sums of some hundred products are long."""
    return replace(isa, machine=MachineModel(caches=CacheSizes(1024, 8192, 65536)))


@pytest.mark.slow
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("size", CUT)
def test_sums_in_pieces(size: tuple[int, int, int], isa: Isa) -> None:
    small = small_caches(isa)
    for constant, threads in ((False, 3), (True, 1)):
        dag = ComputeDAG((activated(product(*size, constant=constant)),))
        state = default_state(dag, small, threads)
        assert "k.1" in [loop.name for loop in state["C"].iters]
        assert_matches_declared(dag, small, threads)


def test_sums_stay_whole_where_rows_or_panels_stay_in_the_cache() -> None:
    for size in ((70, 90, 7), (8, 90, 100)):
        state = default_state(ComputeDAG((product(*size),)), small_caches(Isa.host()), 1)
        assert "k" in [loop.name for loop in state["C.tile"].iters]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("constant", "n"), [(True, 90), (False, 60)])
def test_large_results_of_few_products_are_computed_by_rows(constant: bool, n: int, threads: int) -> None:
    small = small_caches(Isa.host())
    dag = ComputeDAG((activated(product(70, n, 11, constant=constant)),))
    (plan,) = gemm_plans(ScheduleTask(dag, small, threads))
    assert plan.is_by_rows
    assert not plan.copies
    assert_matches_declared(dag, small, threads)


@pytest.mark.parametrize(
    ("m", "n", "k", "constant"),
    [(20, 60, 11, True), (70, 300, 11, True), (70, 100, 11, False), (70, 60, 33, False), (1, 3000, 1, True)],
    ids=["small result", "large constant", "large matrix", "many rows of a matrix", "one row"],
)
def test_other_products_are_computed_by_panels(m: int, n: int, k: int, constant: bool) -> None:
    dag = ComputeDAG((product(m, n, k, constant=constant),))
    plans = gemm_plans(ScheduleTask(dag, small_caches(Isa.host()), 1))
    assert not any(plan.is_by_rows for plan in plans)


@pytest.mark.slow
def test_sums_in_pieces_of_batches() -> None:
    a, b = te.placeholder((3, 40, 200), name="A"), te.placeholder((3, 200, 72), name="B")
    k = te.reduce_axis(200, "rk")
    c = te.compute((3, 40, 72), lambda x, i, j: te.sum(a[x, i, k] * b[x, k, j], axis=k), name="C")
    for threads in (1, 4):
        assert_matches_declared(ComputeDAG((c,)), small_caches(Isa.host()), threads)


def test_threads_compute_the_same() -> None:
    for constant in (False, True):
        for size in ((70, 90, 40), (1, 700, 50), (400, 16, 20)):
            dag = ComputeDAG((activated(product(*size, constant=constant)),))
            assert_matches_declared(dag, Isa.host(), threads=3)


@pytest.mark.parametrize("threads", [1, 4])
def test_batches(threads: int) -> None:
    a, b = te.placeholder((3, 2, 20, 24), name="A"), te.placeholder((3, 2, 24, 36), name="B")
    k = te.reduce_axis(24, "rk")
    c = te.compute((3, 2, 20, 36), lambda x, y, i, j: te.sum(a[x, y, i, k] * b[x, y, k, j], axis=k), name="C")
    assert_matches_declared(ComputeDAG((c,)), Isa.host(), threads)


def test_rows_of_two_axes_and_a_constant_matrix() -> None:
    a, b = te.placeholder((3, 20, 24), name="A"), te.placeholder((24, 36), name="B", attrs={"constant": 1})
    k = te.reduce_axis(24, "rk")
    c = te.compute(
        (3, 20, 36),
        lambda x, i, j: te.sum(a[x, i, k] * b[k, j], axis=k),
        name="C",
        attrs={"layout_free_placeholders": ("B",)},
    )
    assert_matches_declared(ComputeDAG((c,)), Isa.host(), threads=2)


def test_a_product_that_is_read_twice_keeps_its_place() -> None:
    c = product(20, 40, 30)
    row = te.reduce_axis(40, "r")
    largest = te.compute((20,), lambda i: te.max(c[i, row], axis=row), name="largest")
    result = te.compute((20, 40), lambda i, j: c[i, j] - largest[i], name="result")
    assert_matches_declared(ComputeDAG((result,)), Isa.host())


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("threads", [1, 3])
def test_attention_is_one_nest_of_loops(threads: int) -> None:
    heads, length, width = 3, 40, 24
    q, k, v = (te.placeholder((heads, length, width), name=name) for name in "qkv")
    r, s, t = te.reduce_axis(width, "r"), te.reduce_axis(length, "s"), te.reduce_axis(length, "t")
    shape = (heads, length, length)
    turned = te.compute((heads, width, length), lambda h, i, j: k[h, j, i], name="turned")
    scores = te.compute(shape, lambda h, i, j: te.sum(q[h, i, r] * turned[h, r, j], axis=r), name="scores")
    scaled = te.compute(shape, lambda h, i, j: scores[h, i, j] * 0.0625, name="scaled")
    largest = te.compute(shape[:2], lambda h, i: te.max(scaled[h, i, s], axis=s), name="largest")
    powers = te.compute(shape, lambda h, i, j: te.exp(scaled[h, i, j] - largest[h, i]), name="powers")
    total = te.compute(shape[:2], lambda h, i: te.sum(powers[h, i, t], axis=t), name="total")
    weights = te.compute(shape, lambda h, i, j: powers[h, i, j] / total[h, i], name="weights")
    x = te.reduce_axis(length, "x")
    result = te.compute(
        (heads, length, width), lambda h, i, j: te.sum(weights[h, i, x] * v[h, x, j], axis=x), name="result"
    )
    dag = ComputeDAG((result,))
    assert_matches_declared(dag, Isa.host(), threads, tolerance=1e-4)
    state = default_state(dag, Isa.host(), threads)
    assert state["turned"].compute_at is ComputeAt.ITER
    assert state["scores"].compute_at is ComputeAt.ITER
    assert state["weights"].compute_at is ComputeAt.ITER


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_products_of_products(threads: int) -> None:
    a, b, c = (te.placeholder((80, 80), name=name) for name in "abc")
    k, m, n = (te.reduce_axis(80, name) for name in ("rk", "rm", "rn"))
    first = te.compute((80, 80), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="first")
    grown = te.compute((80, 80), lambda i, j: te.maximum(first[i, j], te.const(9.0)), name="grown")
    second = te.compute((80, 80), lambda i, j: te.sum(c[i, m] * grown[m, j], axis=m), name="second")
    third = te.compute((80, 80), lambda i, j: te.sum(b[i, n] * grown[n, j], axis=n), name="third")
    assert_matches_declared(ComputeDAG((second,)), Isa.host(), threads)
    assert_matches_declared(ComputeDAG((second, third)), Isa.host(), threads)


@pytest.mark.slow
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("rows", [1, 3, 8, 45])
def test_a_variable_matrix_may_lie_transposed(rows: int, isa: Isa) -> None:
    a, b = (
        Var(name, checked_type=TensorType(shape, DType.FLOAT32))
        for name, shape in (("a", (rows, 70)), ("b", (53, 70)))
    )
    dag = ComputeDAG(compute(compute_call_of(call("Gemm", a, b, transB=1), "t")))
    for threads in (1, 3):
        assert_matches_declared(dag, isa, threads)


def test_panels_are_copied_in_vectors() -> None:
    isa = Isa.host()
    for turned in (False, True):
        c = product(64, 80, 48) if not turned else of_turned(64, 80, 48)
        body = optimised(scheduled(ComputeDAG((c,)), isa, 1).lowered(), isa).body
        loops = [visit.statement for visit in walk(body) if isinstance(visit.statement, For)]
        copied = [loop for loop in loops if isinstance(loop.body, Store)]
        stores = {loop.kind for loop in copied if _scope(loop.body) is MemoryScope.THREAD}
        assert stores == {ForKind.VECTORIZED}


def _scope(statement: Statement) -> MemoryScope:
    assert isinstance(statement, Store)
    return statement.buffer.scope


def of_turned(m: int, n: int, k: int) -> te.Tensor:
    a, b, axis = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B"), te.reduce_axis(k, "k")
    turned = te.compute((k, n), lambda i, j: b[j, i], name="turned")
    return te.compute((m, n), lambda i, j: te.sum(a[i, axis] * turned[axis, j], axis=axis), name="C")


def test_sums_stay_in_registers() -> None:
    isa = Isa.host()
    found = scheduled(ComputeDAG((product(96, 96, 64, constant=True),)), isa, 1)
    function = optimised(found.lowered(), isa)
    allocated = [visit.statement for visit in walk(function.body) if isinstance(visit.statement, Allocate)]
    assert allocated
    assert {each.buffer.scope for each in allocated} == {MemoryScope.REGISTER}


def test_constants_are_packed_into_panels_of_a_tile() -> None:
    dag, isa = ComputeDAG((product(64, 96, 40, constant=True),)), Isa.host()
    found = scheduled(dag, isa, 1)
    (packing,) = found.packings
    tile = gemm_tile(64, 96, isa.vector_bytes // 4, isa.vector_registers - 3)
    long = tuple(extent for extent in packing.packed_shape if extent > 1)
    assert long == (-(-96 // tile.columns), 40, tile.columns)
    inputs = random_inputs(dag)
    np.testing.assert_array_equal(run_scheduled(dag, inputs, isa)[0], run_declared(dag, inputs)[0])


def test_what_follows_has_no_loops_of_its_own() -> None:
    state = default_state(ComputeDAG((activated(product(64, 64, 64)),)), Isa.host(), 1)
    places = {stage.op.name: stage.compute_at for stage in state.stages}
    assert places["C"] is ComputeAt.ITER
    assert places["shifted"] is places["positive"] is ComputeAt.INLINED
    assert places["D"] is ComputeAt.ROOT


@pytest.mark.parametrize(("lanes", "accumulators"), [(4, 13), (8, 13), (16, 29), (4, 29)])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 1000), (7, 5), (512, 512), (128, 768), (49, 512)])
def test_tiles_fit_the_registers(rows: int, columns: int, lanes: int, accumulators: int) -> None:
    tile = gemm_tile(rows, columns, lanes, accumulators)
    assert 1 <= tile.rows <= rows
    assert 1 <= tile.columns <= columns
    assert tile.rows * -(-tile.columns // lanes) <= accumulators


def test_large_products_have_the_tiles_that_measured_best() -> None:
    assert gemm_tile(512, 512, 8, 13) == gemm_tile(1024, 1024, 8, 13)
    assert (gemm_tile(512, 512, 8, 13).rows, gemm_tile(512, 512, 8, 13).columns) == (6, 16)
    assert (gemm_tile(128, 768, 16, 29).rows, gemm_tile(128, 768, 16, 29).columns) == (8, 48)


@pytest.mark.parametrize(
    ("rows", "near", "far"), [(4, (4, 96), (4, 96)), (16, (8, 48), (16, 16)), (128, (8, 48), (8, 48))]
)
def test_few_rows_have_one_tile_where_the_right_matrix_comes_from_far(
    rows: int, near: tuple[int, int], far: tuple[int, int]
) -> None:
    for is_far, expected in ((False, near), (True, far)):
        tile = gemm_tile(rows, 3072, 16, 29, is_far=is_far)
        assert (tile.rows, tile.columns) == expected


@pytest.mark.parametrize("depth", [1024, 4096, 1000])
def test_rows_a_page_apart_do_not_push_each_other_out_of_the_cache(depth: int) -> None:
    """Rows of 4,096 bytes share a set of the first-level cache, which holds eight lines."""
    x, w = (
        te.placeholder((49, depth), name="x"),
        te.placeholder((depth, 384), name="w", attrs={"constant": 1}),
    )
    k = te.reduce_axis(depth, "k")
    y = te.compute(
        (49, 384),
        lambda i, j: te.functions.sum(x[i, k] * w[k, j], k),
        name="y",
        attrs={"layout_free_placeholders": ("w",)},
    )
    isa = replace(Isa.host(), machine=MachineModel(caches=CacheSizes(32 << 10, 512 << 10, 32 << 20)))
    (plan,) = gemm_plans(ScheduleTask(ComputeDAG((x, w, y)), isa, 1))
    assert (plan.tile.rows <= 6) == (depth != 1000)
