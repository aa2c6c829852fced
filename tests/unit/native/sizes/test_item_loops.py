"""Loop functions for any number of items compute for each item what the function for one computes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import RunnableKernel, compile_kernel, x86_sets
from tests.emulated_cpus import CPUS
from tests.properties.random_kernels import kernels
from tests.tir_checks import assert_same_bits, random_arrays, results

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import For, ForKind
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes import RowTiles, repeat_items, repeat_rows, row_tiles, with_steps
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.native.tir import default_tir
from intarsia.runtime.kernel import Array
from intarsia.target.machine_families import family_model

SETTINGS = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
_OF_ONE_SET = 1024
"""Elements of rows that begin in the same set of a first-level cache with sets of 4 KiB."""


def run_items(kernel: RunnableKernel, arrays: list[Array]) -> None:
    """Run a kernel for any number of items on arrays of some items."""
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)


@SETTINGS
@given(kernels(), st.sampled_from([0, 1, 2, 3, 5]), st.data())
def test_items_are_computed_by_themselves(function: PrimFunc, items: int, data: st.DataObject) -> None:
    *given_params, out = function.params
    shared = data.draw(st.sets(st.sampled_from([param.name for param in given_params])))
    carrying = {param.name for param in function.params} - shared
    repeated = repeat_items(
        function, carrying, is_parallel=data.draw(st.booleans()), is_moved_in=data.draw(st.booleans())
    )
    verify(IRModule({GlobalVar("f"): repeated}))
    of_items = [random_arrays(function) for _ in range(items)]
    common = random_arrays(function)
    expected, arrays = [], []
    for position, param in enumerate(function.params):
        if param.name in shared:
            arrays.append(common[position])
            for item in of_items:
                item[position] = common[position]
        else:
            columns = [item[position] for item in of_items]
            arrays.append(np.stack(columns) if columns else np.zeros((0, *param.shape), param.dtype.numpy))
    expected = [results(function, item)[-1] for item in of_items]
    isa = x86_sets()[data.draw(st.sampled_from(sorted(x86_sets())))]
    run_items(compile_kernel(repeated, isa), [*arrays, np.array(items, np.int64)])
    if items:
        assert_same_bits([arrays[-1]], [np.stack(expected)])
    assert out.name in carrying


def product(rows: int, depth: int, columns: int) -> ComputeDAG:
    """Return max(x * w + b, 0) with a matrix w that may be packed."""
    x, w, b = (te.placeholder(shape, name=name) for shape, name in _shapes(rows, depth, columns))
    k = te.reduce_axis(depth, "k")
    z = te.compute(
        (rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], k), "z", attrs={LAYOUT_FREE: ("w",)}
    )
    y = te.compute((rows, columns), lambda i, j: te.maximum(z[i, j] + b[j], 0.0), "y")
    return ComputeDAG((x, w, b, y))


def _shapes(rows: int, depth: int, columns: int) -> tuple[tuple[tuple[int, ...], str], ...]:
    return ((rows, depth), "x"), ((depth, columns), "w"), ((columns,), "b")


def loops_of(tiles: RowTiles, rows: int, isa: Isa, *, is_parallel: bool) -> PrimFunc:
    """Return the loop function of a product for items of some rows."""
    passes, lanes = default_tir(isa.vector_bytes, isa.vector_registers), isa.vector_bytes // 4
    functions = [
        with_steps(passes(IRModule({GlobalVar("f"): schedule.lowered(isa.caches)})).prim_func("f"), lanes)
        for schedule in tiles.schedules
    ]
    return repeat_rows(functions, {"x", "y"}, rows, tiles.height, is_parallel=is_parallel)


def random_rows(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@SETTINGS
@given(
    st.tuples(st.integers(1, 5), st.integers(4, 40), st.integers(8, 150)),
    st.sampled_from(sorted(x86_sets())),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)
def test_every_number_of_rows_is_right(
    sizes: tuple[int, int, int], name: str, threads: int, is_parallel: bool
) -> None:
    isa, (rows, depth, columns) = x86_sets()[name], sizes
    tiles = row_tiles(product(rows, depth, columns), {"x"}, isa, threads)
    assert tiles is not None
    function = loops_of(tiles, rows, isa, is_parallel=is_parallel)
    verify(IRModule({GlobalVar("f"): function}))
    assert function.params[0].shape == (MOST_ITEMS * rows, depth)
    w, b = random_rows((depth, columns), 1), random_rows((columns,), 2)
    packings = {packing.tensor_name: packing for packing in tiles.schedules[0].packings}
    packed = packings["w"].pack(w) if "w" in packings else w
    kernel, height = compile_kernel(function, isa), len(tiles.schedules)
    for items in (0, 1, 2, height - 1, height, height + 1, height + 2, 2 * height + 3, 1):
        x = random_rows((items * rows, depth), items)
        y = np.full(
            (items * rows + 1, columns), np.nan, np.float32
        )  # a row beyond the last one is not written
        run_items(kernel, [x, packed, b, y, np.array(items, np.int64)])
        np.testing.assert_array_equal(y[:-1], np.maximum(x @ w + b, 0))
        assert np.isnan(y[-1]).all()


def test_tiles_of_all_heights_read_one_packed_matrix() -> None:
    tiles = row_tiles(product(1, 64, 200), {"x"}, Isa.host(), 1)
    assert tiles is not None
    packings = {schedule.packings for schedule in tiles.schedules}
    assert len(packings) == 1
    assert len(tiles.schedules) > 1
    (packing,) = next(iter(packings))
    assert prod(packing.packed_shape) >= 64 * 200


@pytest.mark.parametrize("name", ["w", "b"])
def test_products_of_matrices_with_items_have_no_tiles(name: str) -> None:
    assert row_tiles(product(8, 8, 8), {"x", name}, Isa.host(), 1) is None


def test_rows_in_few_sets_of_the_cache_have_lower_tiles_but_for_a_single_one() -> None:
    heights = []
    for depth in (_OF_ONE_SET, _OF_ONE_SET + 32):
        isa = with_second_cache(replace(CPUS["znver4"], machine=family_model("znver4")), 1 << 15)
        tiles = row_tiles(product(1, depth, 768), {"x"}, isa, 1)
        assert tiles is not None
        heights.append((tiles.height, len(tiles.schedules)))
    assert heights[0][0] < heights[0][1]
    assert heights[1][0] == heights[1][1] == heights[0][1]


def with_second_cache(isa: Isa, size: int) -> Isa:
    """Return an instruction set whose machine has a second-level cache of some bytes."""
    return replace(isa, machine=replace(isa.machine, caches=replace(isa.caches, second=size)))


def test_tiles_of_a_matrix_beyond_the_second_level_cache_are_higher() -> None:
    heights = []
    for second in (1 << 20, 1 << 15):
        isa = with_second_cache(replace(CPUS["znver4"], machine=family_model("znver4")), second)
        tiles = row_tiles(product(1, 64, 768), {"x"}, isa, 1)
        assert tiles is not None
        heights.append(len(tiles.schedules))
    assert heights[0] < heights[1]


@pytest.mark.parametrize(
    ("columns", "threads"), [(512, 2), (768, 2), (768, 4), (1280, 2), (2048, 4), (50257, 2), (50257, 4)]
)
def test_threads_share_columns_evenly(columns: int, threads: int) -> None:
    isa = replace(CPUS["znver4"], machine=family_model("znver4"))
    tiles = row_tiles(product(1, 512, columns), {"x"}, isa, threads)
    assert tiles is not None
    assert tiles.threads == threads
    function = tiles.schedules[0].lowered(isa.caches, isa.vector_bytes)
    loops = [visit.statement for visit in walk(function.body) if visit.event is Event.ENTER]
    (pieces,) = [loop.extent for loop in loops if isinstance(loop, For) and loop.kind is ForKind.PARALLEL]
    of_thread = -(-pieces // threads) * -(-columns // pieces)
    assert of_thread * threads <= 1.1 * columns


@pytest.mark.parametrize("second", [1 << 20, 1 << 11])
@pytest.mark.parametrize("isa", sorted(x86_sets()))
@pytest.mark.parametrize("depth", [12, _OF_ONE_SET])
def test_every_rest_that_two_tiles_share_is_right(depth: int, isa: str, second: int) -> None:
    machine = with_second_cache(x86_sets()[isa], second)
    tiles = row_tiles(product(1, depth, 50), {"x"}, machine, 1)
    assert tiles is not None
    function = loops_of(tiles, 1, machine, is_parallel=False)
    w, b = random_rows((depth, 50), 1), random_rows((50,), 2)
    packings = {packing.tensor_name: packing for packing in tiles.schedules[0].packings}
    packed = packings["w"].pack(w) if "w" in packings else w
    kernel = compile_kernel(function, machine)
    for rows in range(4 * len(tiles.schedules) + 1):
        x, y = random_rows((rows, depth), rows), np.full((rows + 1, 50), np.nan, np.float32)
        run_items(kernel, [x, packed, b, y, np.array(rows, np.int64)])
        np.testing.assert_array_equal(y[:-1], np.maximum(x @ w + b, 0))
        assert np.isnan(y[-1]).all()
