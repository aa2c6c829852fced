"""Transpositions of merged dimensions compute what those of all dimensions compute."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.build import build
from intarsia.ir import Constant, Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph.merged_transposition import MergedOrder, merged_order
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target


@pytest.mark.parametrize(
    ("shape", "order", "merged"),
    [
        ((528, 7, 26), (2, 0, 1), MergedOrder((3696, 26), (1, 0))),
        ((2, 3, 4, 5), (0, 2, 1, 3), MergedOrder((2, 3, 4, 5), (0, 2, 1, 3))),
        ((2, 3, 4, 5), (2, 3, 0, 1), MergedOrder((6, 20), (1, 0))),
        ((2, 1, 4, 5), (2, 3, 1, 0), MergedOrder((2, 20), (1, 0))),
        ((2, 3, 4), (0, 1, 2), MergedOrder((24,), (0,))),
        ((1, 1), (1, 0), MergedOrder((), ())),
        ((4, 1, 4, 5), (2, 1, 3, 0), MergedOrder((4, 20), (1, 0))),
    ],
)
def test_neighbours_that_stay_neighbours_are_one(
    shape: tuple[int, ...], order: tuple[int, ...], merged: MergedOrder
) -> None:
    assert merged_order(shape, order) == merged
    data = np.arange(prod(shape)).reshape(shape)
    moved = data.reshape(merged.source).transpose(merged.order)
    assert moved.shape == merged.result
    np.testing.assert_array_equal(moved.ravel(), data.transpose(order).ravel())


EPILOGUES = ("", "Relu", "Add scalar", "Add tensor", "Add row", "Mul itself")


def epilogue(x: Expr, kind: str, side: Var) -> Expr:
    match kind:
        case "Relu":
            return call("Relu", x)
        case "Add scalar":
            return call("Add", x, Constant(np.array(0.5, np.float32)))
        case "Add tensor" | "Add row":
            return call("Add", x, side)
        case "Mul itself":
            return call("Mul", x, call("Sigmoid", x))
        case _:
            return x


@settings(max_examples=examples(40, quick=4), deadline=None)
@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    data=st.data(),
    before=st.sampled_from(EPILOGUES[:3]),
    behind=st.sampled_from(EPILOGUES),
)
def test_native_computes_the_same(shape: list[int], data: st.DataObject, before: str, behind: str) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    moved = tuple(shape[axis] for axis in order)
    generator = np.random.default_rng(0)
    given_x = generator.standard_normal(shape).astype(np.float32)
    given_side = generator.standard_normal(moved[-1:] if behind == "Add row" else moved).astype(np.float32)
    x, side = (
        Var(name, checked_type=TensorType.of(array)) for name, array in (("x", given_x), ("side", given_side))
    )
    result = epilogue(call("Transpose", epilogue(x, before, side), perm=tuple(order)), behind, side)
    module = IRModule({GlobalVar("main"): Function((x, side), result)})
    (expected,) = build(module).run_flat(given_x, given_side)
    (found,) = build(partition_whole(module, Target.for_toolchain("native", threads=1))).run_flat(
        given_x, given_side
    )
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)
