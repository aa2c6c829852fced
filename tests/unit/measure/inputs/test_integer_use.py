"""Integers of a program by what it does with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from intarsia.build import build
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.measure.inputs import InputKind, input_set, random_inputs
from intarsia.measure.inputs.integer_use import HARMLESS, REAL, UNKNOWN, IntegerUse, integer_uses
from intarsia.op import absent, call, tuple_get
from intarsia.passes import partition_whole
from intarsia.target import Target

MASK = IntegerUse(0, 2)


def ids(*shape: int) -> Var:
    return Var("ids", checked_type=TensorType(shape, DType.INT64))


def constant(values: object, dtype: str = "float32") -> Constant:
    return Constant(np.array(values, dtype))


def use_of(param: Var, result: Expr) -> IntegerUse:
    main = IRModule.from_expr(Function((param,), result))["main"]
    return integer_uses(main)["ids"]


def table(rows: int) -> Constant:
    return Constant(np.ones((rows, 4), np.float32))


def test_rows_of_a_table() -> None:
    x = ids(2, 5)
    moved = call("Reshape", call("Cast", x, to=6), constant([10], "int64"))
    assert use_of(x, call("Gather", table(30), moved)) == IntegerUse(0, 30)


def test_of_two_tables_the_smaller_one_counts() -> None:
    x = ids(5)
    both = Tuple((call("Gather", table(30), x), call("Gather", table(7), x)))
    assert use_of(x, both) == IntegerUse(0, 7)


def test_places_of_gather_elements_are_within_their_axis() -> None:
    x = ids(3, 2)
    assert use_of(x, call("GatherElements", Constant(np.ones((3, 9), np.float32)), x, axis=1)) == IntegerUse(
        0, 9
    )


SCORES = Constant(np.ones((6, 5, 3), np.float32))


@pytest.mark.parametrize("loss", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_labels_of_a_loss_are_classes(loss: str) -> None:
    x = ids(6, 3)
    assert use_of(x, call(loss, SCORES, x)) == IntegerUse(0, 5)
    other = ids(6, 3)
    shifted = call("Sub", other, constant([1], "int64"))
    assert use_of(other, call(loss, SCORES, shifted)) == IntegerUse(1, 6)


@pytest.mark.parametrize("loss", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_a_loss_can_be_computed_of_labels_that_are_drawn(loss: str) -> None:
    labels = ids(6, 3)
    module = IRModule.from_expr(Function((labels,), call(loss, SCORES, labels)))
    ordinary = random_inputs(module["main"])
    with build(partition_whole(module, Target.for_toolchain("reference"))) as executable:
        for kind in InputKind:
            assert np.isfinite(executable(**input_set(module["main"], ordinary, kind)))


def float_table(*shape: int) -> Constant:
    return Constant(np.ones(shape, np.float32))


SELECTING: dict[str, tuple[tuple[int, ...], Callable[[Var], Expr], int]] = {
    "images of boxes": ((5,), lambda x: call("RoiAlign", float_table(2, 3, 8, 8), float_table(5, 4), x), 2),
    "positions of maxima": (
        (2, 1, 2, 2),
        lambda x: call("MaxUnpool", float_table(2, 1, 2, 2), x, kernel_shape=(2, 2), strides=(2, 2)),
        32,
    ),
    "positions of rotations": (
        (2, 3),
        lambda x: call("RotaryEmbedding", float_table(2, 4, 3, 8), float_table(6, 4), float_table(6, 4), x),
        6,
    ),
    "places in a cache": (
        (2,),
        lambda x: call("TensorScatter", float_table(2, 4, 6, 8), float_table(2, 4, 2, 8), x),
        5,
    ),
    "an axis of a reduction": ((1,), lambda x: call("ReduceMax", float_table(4, 3), x), 2),
    "an axis of a transform": ((), lambda x: call("DFT", float_table(2, 8, 1), absent(), x), 2),
}


@pytest.mark.parametrize("title", SELECTING)
def test_other_indices_and_axes_are_within_what_they_select_of(title: str) -> None:
    shape, result_of, high = SELECTING[title]
    x = ids(*shape)
    assert use_of(x, result_of(x)) == IntegerUse(0, high)


def test_a_length_of_a_fourier_transform_is_positive() -> None:
    x = ids()
    assert use_of(x, call("DFT", float_table(2, 8, 1), x)) == IntegerUse(1, 8)


def test_a_mask_is_cast_to_truth_values_or_subtracted_from_one() -> None:
    x = ids(2, 5)
    assert use_of(x, call("Cast", x, to=9)) == MASK
    floats = call("Unsqueeze", call("Cast", x, to=1), constant([1], "int64"))
    assert use_of(x, call("Mul", call("Sub", constant(1.0), floats), constant(-1e9))) == MASK


def test_lengths_are_compared_with_positions() -> None:
    x = ids(4, 1)
    assert use_of(x, call("Less", constant(range(6), "int64"), x)) == IntegerUse(1, 7)


def test_sizes_stay_small() -> None:
    x = ids(2)
    assert use_of(x, call("ConstantOfShape", x)) == IntegerUse(0, 8)


def test_other_integers_may_be_anything() -> None:
    x = ids(2, 3)
    assert use_of(x, call("Add", x, constant([1], "int64"))) == UNKNOWN


def integers(*values: int) -> Constant:
    return constant(values, "int64")


def scalar(value: int) -> Constant:
    return constant(value, "int64")


def test_an_index_that_is_shifted_shifts_the_range() -> None:
    x = ids(4, 3)
    assert use_of(x, call("Gather", table(60), call("Add", x, integers(0, 10, 30)))) == IntegerUse(0, 30)
    assert use_of(x, call("Gather", table(10), call("Sub", x, scalar(1000)))) == IntegerUse(1000, 1010)


def test_an_index_that_is_scaled_scales_the_range() -> None:
    x = ids(6)
    odd = call("Add", call("Mul", x, scalar(2)), scalar(1))
    assert use_of(x, call("Gather", table(31), odd)) == IntegerUse(0, 15)
    assert use_of(x, call("Gather", table(12), call("Div", x, scalar(10)))) == IntegerUse(0, 120)
    floats = call("Floor", call("Div", call("Cast", x, to=1), constant(10.0)))
    assert use_of(x, call("Gather", table(12), call("Cast", floats, to=7))) == IntegerUse(0, 120)


def test_positions_that_are_counted_from_a_mask_stay_within_their_table() -> None:
    mask = ids(2, 8)
    positions = call("Add", call("Mul", call("CumSum", mask, scalar(1)), mask), scalar(1))
    assert use_of(mask, call("Gather", table(40), positions)) == IntegerUse(0, 3)
    is_mask = call("Cast", mask, to=9)
    assert use_of(mask, Tuple((call("Gather", table(40), positions), is_mask))) == MASK


def test_two_inputs_of_one_index_share_its_range() -> None:
    x, y = ids(7), Var("other", checked_type=TensorType((7,), DType.INT64))
    index = call("Add", call("Sub", x, y), scalar(4))
    main = IRModule.from_expr(Function((x, y), call("Gather", table(9), index)))["main"]
    assert integer_uses(main) == {"ids": IntegerUse(0, 5), "other": IntegerUse(0, 5)}


def test_an_index_that_is_hashed_or_clipped_may_come_from_anything() -> None:
    x = ids(6)
    hashed = use_of(x, call("Gather", table(50), call("Mod", call("Mul", x, scalar(7919)), scalar(50))))
    assert (hashed.low, hashed.high, hashed.is_certain) == (0, 50, False)
    clipped = use_of(x, call("Gather", table(9), call("Clip", x, scalar(0), scalar(8))))
    assert (clipped.low, clipped.high, clipped.is_certain) == (0, 9, False)
    assert clipped.least is not None
    assert clipped.least < -1000


def test_an_index_of_unknown_operators_gets_the_least_numbers() -> None:
    x = ids(6)
    assert use_of(x, call("Gather", table(8), call("BitwiseAnd", x, scalar(7)))) == HARMLESS


def test_what_is_cast_to_numbers_stays_small() -> None:
    x = ids(6)
    assert use_of(x, call("Mul", call("Cast", x, to=1), constant(2.0))) == REAL


@pytest.mark.parametrize(("dtype", "most"), [("int64", 2**33 + 1), ("int32", 2**19 - 1)])
def test_what_is_summed_neither_overflows_nor_loses_bits_in_float64(dtype: str, most: int) -> None:
    x = Var("ids", checked_type=TensorType((64, 16), DType(dtype)))
    main = IRModule.from_expr(Function((x,), call("ReduceSum", x, integers(1))))["main"]
    edges = input_set(main, random_inputs(main), InputKind.EDGES)["ids"]
    assert (edges.min(), edges.max()) == (-most, most)


def test_a_divisor_is_positive() -> None:
    x = ids(6)
    use = use_of(x, call("Div", scalar(7), x))
    assert (use.low, use.least) == (1, 1)


def top_k(counts: Expr) -> Expr:
    return tuple_get(call("TopK", Constant(np.ones((3, 5), np.float32)), counts, outputs=2), 0)


def test_sizes_stay_within_their_axis() -> None:
    x = ids(1)
    assert use_of(x, top_k(x)) == IntegerUse(1, 6)
    assert use_of(x, top_k(call("Add", x, integers(1)))) == IntegerUse(0, 5)
    rows = Constant(np.ones((3, 12), np.float32))
    assert use_of(x, call("Slice", rows, x, integers(12), integers(1))) == IntegerUse(0, 6)
    assert use_of(x, call("Slice", rows, integers(0), x, integers(1))) == IntegerUse(6, 13)
    assert use_of(x, call("Range", scalar(0), call("Squeeze", x), scalar(1))) == IntegerUse(4, 12)


def test_lengths_are_compared_with_computed_positions() -> None:
    x = ids(3, 1)
    rows = Constant(np.ones((3, 6), np.float32))
    count = call("Gather", call("Shape", rows), scalar(1))
    assert use_of(x, call("Less", call("Range", scalar(0), count, scalar(1)), x)) == IntegerUse(1, 7)


def test_integers_of_unknown_use_reach_the_limits_of_their_type() -> None:
    x = ids(64, 16)
    main = IRModule.from_expr(Function((x,), call("Neg", x)))["main"]
    ordinary = random_inputs(main)
    limits = np.iinfo(np.int64)
    edges = input_set(main, ordinary, InputKind.EDGES)["ids"]
    assert (edges.min(), edges.max()) == (limits.min, limits.max)
    milder = input_set(main, ordinary, InputKind.EDGES, attempt=1)["ids"]
    assert (milder.min(), milder.max()) == (-1, 2**33 + 1)
    mildest = input_set(main, ordinary, InputKind.EDGES, attempt=2)["ids"]
    np.testing.assert_array_equal(mildest, ordinary["ids"])


@pytest.mark.parametrize("kind", list(InputKind))
def test_all_kinds_of_inputs_keep_to_the_use(kind: InputKind) -> None:
    x = ids(8, 16)
    main = IRModule.from_expr(Function((x,), call("Gather", table(30), x)))["main"]
    ordinary = random_inputs(main)
    array = input_set(main, ordinary, kind)["ids"]
    assert array.min() >= 0
    assert array.max() < 30
    assert (kind is InputKind.ORDINARY) == np.array_equal(array, ordinary["ids"])


def test_a_declared_range_is_kept() -> None:
    from intarsia.measure.inputs import with_input_ranges

    x = ids(8, 16)
    module = with_input_ranges(
        IRModule.from_expr(Function((x,), call("Gather", table(30), x))), {"ids": (3, 5)}
    )
    for kind in InputKind:
        array = input_set(module["main"], random_inputs(module["main"]), kind)["ids"]
        assert set(array.reshape(-1)) <= {3, 4}
