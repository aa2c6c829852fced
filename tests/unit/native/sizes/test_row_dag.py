"""The same computation for another number of rows, where each row is computed by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intarsia.native import te
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.sizes import with_rows
from intarsia.native.te import Tensor

ROWS = te.reduce_axis(4, "r")


def softmax(rows: int) -> ComputeDAG:
    x = te.placeholder((rows, 7), name="x")
    k, n = te.reduce_axis(7, "k"), te.reduce_axis(7, "n")
    top = te.compute((rows,), lambda i: te.max(x[i, k], k), "top")
    power = te.compute((rows, 7), lambda i, j: te.exp(x[i, j] - top[i]), "power")
    total = te.compute((rows,), lambda i: te.sum(power[i, n], n), "total")
    return ComputeDAG((x, te.compute((rows, 7), lambda i, j: power[i, j] / total[i], "y")))


def test_it_is_the_declaration_for_that_number() -> None:
    for rows in (1, 2, 9):
        resized = with_rows(softmax(4), {"x"}, rows)
        assert resized is not None
        assert structural_key(resized) == structural_key(softmax(rows))


def test_what_has_no_rows_stays() -> None:
    x, w = te.placeholder((4, 3), name="x"), te.placeholder((3,), name="w")
    doubled = te.compute((3,), lambda i: w[i] + w[i], "doubled")
    dag = ComputeDAG((x, w, te.compute((4, 3), lambda i, j: x[i, j] * doubled[j], "y")))
    resized = with_rows(dag, {"x"}, 6)
    assert resized is not None
    assert [tensor.shape for tensor in resized.tensors] == [(6, 3), (3,), (6, 3)]
    assert resized.ops[dag.op_ids[doubled.op]] is doubled.op


@pytest.mark.parametrize(
    "element",
    [
        lambda x, w: lambda i, j: x[3 - i, j],
        lambda x, w: lambda i, j: x[j, i],
        lambda x, w: lambda i, j: x[0, j],
        lambda x, w: lambda i, j: x[i, i],
        lambda x, w: lambda i, j: x[i, j] * w[i],
        lambda x, w: lambda i, j: x[i, j] * i.astype(x.dtype),
        lambda x, w: lambda i, j: te.sum(x[ROWS, j], ROWS),
        lambda x, w: lambda i, j: w[j],
    ],
)
def test_rows_that_depend_on_more_are_refused(
    element: Callable[[Tensor, Tensor], Callable[..., te.Expression]],
) -> None:
    x, w = te.placeholder((4, 4), name="x"), te.placeholder((4,), name="w")
    y = te.compute((4, 4), element(x, w), "y")
    assert with_rows(ComputeDAG((x, w, y)), {"x"}, 6) is None


def test_inputs_of_different_rows_are_refused() -> None:
    x, z = te.placeholder((4, 3), name="x"), te.placeholder((2, 3), name="z")
    dag = ComputeDAG((x, z, te.compute((4, 3), lambda i, j: x[i, j] + z[i // 2, j], "y")))
    assert with_rows(dag, {"x", "z"}, 8) is None
