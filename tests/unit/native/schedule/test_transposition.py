"""Copies in another order are made in tiles, and are right at the borders of tiles."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scheduled_kernels import computed, loops_of, normal, state_of

from intarsia.ir import DType
from intarsia.ir.prim_func import Block, Buffer, For, LoopVar
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.loop_state import ComputeAt
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import named_cpu
from intarsia.native.schedule.row_schedule import row_state
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, exp
from intarsia.native.te.operators.loop_nest import declare_written, load, store

ISA = Isa.host()
AVX2 = named_cpu("haswell", 1)


def _transposed(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[ComputeDAG, te.Tensor]:
    """Declare the exponentials of a tensor in another order."""
    x = te.placeholder(shape, name="x")
    target = tuple(shape[axis] for axis in order)
    moved = te.compute(
        target, lambda *i: x[tuple(i[order.index(axis)] for axis in range(len(shape)))], name="moved"
    )
    y = te.compute(target, lambda *i: exp(moved[i]), name="y")
    return ComputeDAG((x, y)), x


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (4, 3), (3, 70), (70, 3), (4, 5), (2, 2)])
def test_axes_shorter_than_squares(rows: int, columns: int) -> None:
    dag, x = _transposed((6, rows, columns), (0, 2, 1))
    data = normal(6, rows, columns)
    found = computed(dag, {x: data}, row_state, ISA)
    np.testing.assert_allclose(found, np.exp(data.transpose(0, 2, 1)), rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((128, 96), (1, 0)),
        ((131, 77), (1, 0)),
        ((3, 70, 50), (0, 2, 1)),
        ((40, 5, 61), (2, 1, 0)),
        ((33, 16), (1, 0)),
    ],
)
def test_tiles_hold_all_elements(shape: tuple[int, ...], order: tuple[int, ...], threads: int) -> None:
    dag, x = _transposed(shape, order)
    data = normal(*shape)
    extents = [loop.extent for loop in state_of(dag, row_state, ISA, threads)["y"].iters]
    assert extents[-2:] == [16, ISA.vector_bytes // 4]
    found = computed(dag, {x: data}, row_state, ISA, threads)
    np.testing.assert_allclose(found, np.exp(data.transpose(order)), rtol=1e-5)


@pytest.mark.parametrize(
    ("columns", "side"), [(4, 4), (7, 4), (8, 8), (9, 16), (12, 16), (16, 16), (20, 16), (24, 16), (28, 16)]
)
def test_short_rows_are_transposed_in_squares_that_they_fill(columns: int, side: int) -> None:
    dag, x = _transposed((500, columns), (1, 0))
    data = normal(500, columns)
    lanes = ISA.vector_bytes // 4
    extents = [loop.extent for loop in state_of(dag, row_state, ISA, 1)["y"].iters]
    if lanes == 16:
        assert extents[-1] == side
    found = computed(dag, {x: data}, row_state, ISA, 1)
    np.testing.assert_allclose(found, np.exp(data.T), rtol=1e-5)


def test_squares_of_built_kernels_are_transposed_in_registers() -> None:
    """The loops after all passes still show the code generator that it may."""
    dag, _ = _transposed((160, 96), (1, 0))
    text = emit_llvm(loops_of(dag, row_state, AVX2), "k", AVX2).text
    assert text.count("shufflevector <8 x float>") >= 24 * 2
    assert "load float" not in text


@pytest.mark.parametrize("shape", [(2, 500), (3, 1000), (3, 7), (5, 4, 33), (2, 6, 1, 100)])
@pytest.mark.parametrize("threads", [1, 2])
def test_few_channels_are_interleaved_in_whole_vectors(shape: tuple[int, ...], threads: int) -> None:
    rank = len(shape)
    order = (*range(rank - 2), rank - 1, rank - 2) if rank < 4 else (0, 3, 2, 1)
    dag, x = _transposed(shape, order)
    data = normal(*shape)
    state = state_of(dag, row_state, ISA, threads)
    if ISA.vector_bytes >= 64:
        assert state["y"].iters[-1].extent == 16 * dag.outputs[0].shape[-1]
    found = computed(dag, {x: data}, row_state, ISA, threads)
    np.testing.assert_allclose(found, np.exp(data.transpose(order)), rtol=1e-5)


def test_a_copy_is_read_where_both_of_its_readers_are_one_loop() -> None:
    x = te.placeholder((3, 500), name="x")
    moved = te.compute((500, 3), lambda i, j: x[j, i], name="moved")
    y = te.compute((500, 3), lambda i, j: moved[i, j] * exp(moved[i, j]), name="y")
    dag = ComputeDAG((x, y))
    assert state_of(dag, row_state, ISA)["moved"].compute_at is ComputeAt.INLINED
    data = normal(3, 500)
    found = computed(dag, {x: data}, row_state, ISA)
    np.testing.assert_allclose(found, data.T * np.exp(data.T), rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "order"),
    [((2000, 3), (1, 0)), ((40, 50, 60), (1, 0, 2))],
    ids=["few of the source", "rows stay"],
)
def test_other_copies_are_made_by_rows(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    dag, x = _transposed(shape, order)
    data = normal(*shape)
    loops = state_of(dag, row_state, ISA)["y"].iters
    assert len(loops) <= len(shape)
    np.testing.assert_allclose(
        computed(dag, {x: data}, row_state, ISA), np.exp(data.transpose(order)), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("dtype", "lanes"),
    [
        (DType.FLOAT64, 16),  # loops
        (DType.INT8, 16),
        (DType.FLOAT16, min(16, ISA.vector_bytes // 2)),
        (DType.BFLOAT16, min(16, ISA.vector_bytes // 2)),
    ],
)
def test_tiles_of_other_elements(dtype: DType, lanes: int) -> None:
    shape = (210, 330)
    x = te.placeholder(shape, dtype, name="x")
    dag = ComputeDAG((x, te.compute(shape[::-1], lambda i, j: x[j, i], name="y")))
    assert [loop.extent for loop in state_of(dag, row_state, ISA)["y"].iters][-2:] == [16, lanes]
    data = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype.numpy)
    np.testing.assert_array_equal(computed(dag, {x: data}, row_state, ISA), data.T)


def test_a_number_has_no_rows() -> None:
    """Its loops are those that it was declared with: none."""
    x = te.placeholder((5,), name="x")
    total = Buffer("total", (), x.dtype)
    add = store(total, (), load(total, ()) + x[Expression(LoopVar("i"))])
    body = Block((store(total, (), const(0, x.dtype)), For(LoopVar("i"), 5, add)))
    dag = ComputeDAG((x, declare_written(total, [x], body)))
    assert computed(dag, {x: normal(5)}, row_state, ISA) == pytest.approx(normal(5).sum())


def test_what_is_read_twice_is_computed_in_vectors() -> None:
    """A padded row that two operations read is a row of its own, not one element at a time."""
    x = te.placeholder((40, 30), name="x")
    padded = te.compute(
        (40, 32),
        lambda i, j: te.functions.if_then_else(te.functions.logical_and(j >= 1, j < 31), x[i, j - 1], 0.0),
        name="padded",
    )
    y = te.compute((40, 32), lambda i, j: padded[i, j] * exp(padded[i, j]), name="y")
    dag = ComputeDAG((x, y))
    assert [loop.extent for loop in state_of(dag, row_state, ISA)["y"].iters] == [40, 32]
    data = normal(40, 30)
    wide = np.pad(data, ((0, 0), (1, 1)))
    found = computed(dag, {x: data}, row_state, ISA)
    np.testing.assert_allclose(found, wide * np.exp(wide), rtol=1e-5, atol=1e-6)
