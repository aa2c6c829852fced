"""Intervals of integers contain every value that a program computes; the values come from onnx.reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import intarsia as ia
from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, Var
from intarsia.ir.types import ANY
from intarsia.op import call
from intarsia.toolchain.openvino.integer_ranges import INT32, IntegerRanges, Interval

ROWS, COLUMNS = 3, 4
TABLE = Constant(np.ones((10, 2), np.float32))


def var(name: str, *shape: int, dtype: DType = DType.INT64) -> Var:
    return Var(name, checked_type=TensorType(shape, dtype))


def constant(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


def evaluate(
    params: Sequence[Var], values: Sequence[Expr], *inputs: NDArray[np.generic]
) -> list[NDArray[np.int64]]:
    module = IRModule.from_expr(Function(tuple(params), Tuple(tuple(values))))
    with ia.build(module) as executable, np.errstate(all="ignore"):
        return [np.array(item) for item in executable.run_flat(*inputs)]


def _full(rng: np.random.Generator) -> Constant:
    return Constant(rng.integers(-6, 7, (ROWS, COLUMNS)))


def _step(rng: np.random.Generator, values: list[Expr]) -> Expr:
    """An operator on values of 3 rows and 4 columns, whose result has this shape too."""
    left, right = (values[rng.integers(len(values))] for _ in "ab")
    axis = constant(int(rng.integers(2)))
    bounds = sorted(rng.integers(-20, 21, 2).tolist())
    match rng.integers(9):
        case 0:
            return call(("Add", "Sub", "Mul", "Max", "Min")[rng.integers(5)], left, right)
        case 1:
            return call("CumSum", left, Constant(np.array(axis.data[0])))
        case 2:
            return call("Expand", call("ReduceProd", left, axis), constant(ROWS, COLUMNS))
        case 3:
            return call("Expand", call("ReduceSum", left, axis), constant(ROWS, COLUMNS))
        case 4:
            return call("Clip", left, *(Constant(np.array(bound)) for bound in bounds))
        case 5:
            return call("Clip", left, Constant(np.array(bounds[int(rng.integers(2))])))
        case 6:
            shape = call("ConstantOfShape", call("Shape", left), value=constant(int(rng.integers(-9, 9))))
            return call("Add", shape, right)
        case 7:
            return call("Mul", call("ReduceProd", call("Shape", left)), right)
        case _:
            return call("Cast", call("Cast", call("Greater", left, right), to=6), to=7)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_stay_within_their_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, small = var("x", ROWS, COLUMNS), var("small", ROWS, COLUMNS)
    limits: dict[Expr, Interval] = {small: (-2, 3)}
    values: list[Expr] = [x, small, _full(rng)]
    for _ in range(8):
        values.append(_step(rng, values))
    ranges = IntegerRanges(Function((x, small), Tuple(tuple(values))), limits)
    for _ in range(4):
        extremes = rng.choice(np.array([*INT32, 0, 1, -7, 40]), (ROWS, COLUMNS))
        arrays = evaluate((x, small), values, extremes, rng.integers(-2, 4, (ROWS, COLUMNS)))
        for expr, array in zip(values, arrays, strict=True):
            interval = ranges.interval(expr)
            assert interval is not None
            assert interval[0] <= np.min(array)
            assert np.max(array) <= interval[1]


@pytest.mark.parametrize("seed", range(8))
def test_an_argument_that_lies_outside_its_interval_selects_no_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = var("x")
    index: Expr = x
    steps = []
    for _ in range(rng.integers(1, 5)):
        name, shift, is_first = (
            ("Add", "Sub")[rng.integers(2)],
            int(rng.integers(-20, 20)),
            rng.random() < 0.7,
        )
        number = Constant(np.array(shift))
        index = call(name, index, number) if is_first else call(name, number, index)
        if rng.random() < 0.3:
            index = call("Cast", index, to=7)
        steps.append((name, shift, is_first))
    interval = IntegerRanges(Function((x,), call("Gather", TABLE, index))).interval(x)
    valid = []
    for value in range(-200, 200):
        result = value
        for name, shift, is_first in steps:
            right = shift if is_first else result
            result = (result if is_first else shift) + (right if name == "Add" else -right)
        valid += [value] if -10 <= result < 10 else []
    assert interval == (valid[0], valid[-1])


def test_a_cast_that_drops_bits_says_nothing_of_its_argument() -> None:
    x = var("x")
    wide = call("Mul", x, x)
    ranges = IntegerRanges(Function((x,), call("Gather", TABLE, call("Cast", wide, to=6))))
    interval = ranges.interval(wide)
    assert interval is not None
    assert interval[1] == 2**62


OPEN = Var("open", checked_type=TensorType((ANY, 8), DType.FLOAT32))
LONG = var("long", 2**21, dtype=DType.FLOAT32)
SEQUENCE = call("SplitToSequence", var("x", 6, 2, dtype=DType.FLOAT32), Constant(np.array(2)), axis=0)
IMAGE = var("image", 2, 3, 9, 9, dtype=DType.FLOAT32)
BOXES, INDICES = var("boxes", 5, 4, dtype=DType.FLOAT32), var("indices", 5, dtype=DType.FLOAT32)

COUNTS: dict[str, tuple[Expr, Interval]] = {
    "a shape with an open axis": (call("Shape", OPEN), (0, 2**20)),
    "a long axis": (call("ArgMax", LONG), (0, 2**21)),
    "elements": (call("ReduceProd", call("Shape", OPEN)), (0, 2**23)),
    "elements of a tensor that may be anything": (
        call("ReduceProd", call("Shape", Var("y", checked_type=TensorType((ANY, ANY), DType.FLOAT32)))),
        (0, 2**31 - 1),
    ),
    "a part of a shape": (
        call("ReduceProd", call("Shape", Var("y", checked_type=TensorType((ANY, ANY, ANY), DType.FLOAT32)),
                                end=2)),
        (0, 2**40),
    ),
    "a shape that is not multiplied, of a tensor that is empty": (
        call("ReduceProd", call("Shape", Var("y", checked_type=TensorType((0, ANY), DType.FLOAT32))),
             noop_with_empty_axes=1),
        (0, 2**40),
    ),
    "tensors of a sequence": (call("SequenceLength", SEQUENCE), (0, 2**20)),
    "a constant of a shape": (call("ConstantOfShape", call("Shape", OPEN), value=constant(-7)), (-7, -7)),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTS)
def test_counts_are_bounded(case: str) -> None:
    expr, interval = COUNTS[case]
    assert IntegerRanges(Function((), expr)).interval(expr) == interval


def test_batch_indices_of_regions_are_within_the_batch() -> None:
    indices = call("Cast", INDICES, to=7)
    pooled = call("RoiAlign", IMAGE, BOXES, indices)
    ranges = IntegerRanges(Function((IMAGE, BOXES, INDICES), pooled))
    assert isinstance(pooled, Call)
    interval = ranges.interval(indices)
    assert interval is not None
    assert interval[0] == 0
    assert 1 <= interval[1] <= 9


def test_a_flat_position_may_exceed_every_axis() -> None:
    images = var("images", 4, 4, 1024, 1024, dtype=DType.FLOAT32)
    pooled = call("MaxPool", images, kernel_shape=(2, 2), outputs=2)
    position = TupleGetItem(pooled, 1, checked_type=TensorType((4, 4, 1023, 1023), DType.INT64))
    interval = IntegerRanges(Function((images,), position)).interval(position)
    assert interval is not None
    assert interval[1] >= 2**24 - 1


def _tight(value: Expr, *limits: tuple[Expr, Interval]) -> Interval | None:
    return IntegerRanges(limits=dict(limits)).interval(value)


def test_remainders_quotients_and_extremes_have_tight_intervals() -> None:
    x = var("x", ROWS)
    positive: Interval = (0, 119)
    ten = constant(10)
    assert _tight(call("Mod", x, ten)) == (0, 9)
    assert _tight(call("Mod", x, ten, fmod=1)) == (-9, 9)
    assert _tight(call("Mod", x, ten), (x, (0, 5))) == (0, 5)
    assert _tight(call("Div", x, ten), (x, positive)) == (0, 11)
    floats = call("Div", call("Cast", x, to=1), Constant(np.array(10, np.float32)))
    assert _tight(call("Cast", call("Floor", floats), to=7), (x, positive)) == (0, 11)
    assert _tight(call("Min", x, ten), (x, positive)) == (0, 10)
    assert _tight(call("Max", x, ten), (x, positive)) == (10, 119)


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_lie_within_their_interval(fmod: int) -> None:
    numbers = np.arange(-7, 8)
    left, right = (array.reshape(-1) for array in np.meshgrid(numbers, numbers[numbers != 0]))
    for dividend, divisor in (
        (left, right),
        (np.abs(left), right),
        (left, np.abs(right)),
        np.abs((left, right)),
    ):
        result = call("Mod", Constant(np.asarray(dividend)), Constant(np.asarray(divisor)), fmod=fmod)
        low, high = IntegerRanges().interval(result) or (0, 0)
        (values,) = evaluate([], [result])
        assert low <= values.min() <= values.max() <= high


def test_positions_of_a_rotation_select_rows_of_its_tables() -> None:
    start = var("start", 1)
    positions = call("Add", start, constant(*range(COLUMNS)))
    x = Var("x", checked_type=TensorType((1, 2, COLUMNS, 4), DType.FLOAT32))
    rotated = call("RotaryEmbedding", x, TABLE, TABLE, call("Unsqueeze", positions, constant(0)))
    assert IntegerRanges(Function((x, start), rotated)).interval(positions) == (0, 10)
