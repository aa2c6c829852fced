"""Which buffers are asked for before they are read."""

from __future__ import annotations

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.schedule.streamed import streamed_names
from intarsia.target.cache_sizes import CacheSizes


def test_long_constants_and_what_is_added_to_a_reduction() -> None:
    k = te.reduce_axis(256, "k")
    x = te.placeholder((256, 256), name="x")
    w = te.placeholder((256, 256), name="w", attrs={"constant": 1})
    short = te.placeholder((256,), name="short", attrs={"constant": 1})
    residual = te.placeholder((256, 256), name="residual")
    product = te.compute((256, 256), lambda i, j: te.sum(x[i, k] * w[k, j], k), "product")
    biased = te.compute((256, 256), lambda i, j: product[i, j] + short[j], "biased")
    y = te.compute((256, 256), lambda i, j: te.maximum(biased[i, j] + residual[i, j], 0.0), "y")
    assert streamed_names(ComputeDAG((x, w, short, residual, y)), CacheSizes()) == ("w", "residual")


def test_elementwise_operations_have_none() -> None:
    x, y = te.placeholder((512, 256), name="x"), te.placeholder((512, 256), name="y")
    z = te.compute((512, 256), lambda i, j: x[i, j] + y[i, j], "z")
    assert streamed_names(ComputeDAG((x, y, z)), CacheSizes()) == ()


def test_long_rows_that_are_gone_over_twice() -> None:
    def names(rows: int) -> tuple[str, ...]:
        k = te.reduce_axis(512, "k")
        x = te.placeholder((rows, 512), name="x")
        total = te.compute((rows,), lambda i: te.sum(x[i, k], k), "total")
        y = te.compute((rows, 512), lambda i, j: x[i, j] / total[i], "y")
        return streamed_names(ComputeDAG((x, y)), CacheSizes())

    assert names(1024) == ("x",)
    assert names(64) == ()


def test_long_rows_that_are_only_summed() -> None:
    def names(rows: int, columns: int, vector_bytes: int = 64, *, is_down: bool = False) -> tuple[str, ...]:
        k = te.reduce_axis(rows if is_down else columns, "k")
        x = te.placeholder((rows, columns), name="x")
        count = columns if is_down else rows
        total = te.compute((count,), lambda i: te.sum(x[k, i] if is_down else x[i, k], k), "total")
        return streamed_names(ComputeDAG((x, total)), CacheSizes(), vector_bytes)

    assert names(1024, 512) == ("x",)
    assert names(64, 512) == ()
    assert names(8192, 511) == ()
    assert names(1024, 512, 32) == ()
    assert names(1024, 512, is_down=True) == ()


def test_rows_that_indices_select_have_no_successor() -> None:
    table = te.placeholder((4096, 64), name="table", attrs={"constant": 1})
    chosen = te.placeholder((100,), DType.INT64, name="chosen")
    rows = te.compute((100, 64), lambda i, j: table[chosen[i], j], "rows")
    assert streamed_names(ComputeDAG((table, chosen, rows)), CacheSizes()) == ()
    in_order = te.compute((100, 64), lambda i, j: table[i + 7, j], "in_order")
    assert streamed_names(ComputeDAG((table, in_order)), CacheSizes()) == ("table",)
