"""Integers of a program by what it does with them."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.measure.inputs import InputKind, input_set, random_inputs
from intarsia.measure.inputs.integer_use import MASK, SIZE, UNKNOWN, IntegerUse, integer_uses
from intarsia.op import call


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
    assert use_of(x, call("ConstantOfShape", x)) == SIZE


def test_other_integers_may_be_anything() -> None:
    x = ids(2, 3)
    assert use_of(x, call("Add", x, constant([1], "int64"))) == UNKNOWN


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
