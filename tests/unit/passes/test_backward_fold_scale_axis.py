"""Folding multiplications into the weights before them: each layer, each way there, and what stays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.pass_checks import assert_same_results, checked, operator_counts
from tests.unit.passes.scale_programs import (
    BACKWARD,
    BY_CHANNEL,
    LAYERS,
    SIGNED,
    THROUGH,
    checked_on_engine,
    conv,
    factors,
    is_unchanged,
    multiplications,
    program,
    var,
    weights,
)

from intarsia.ir import (
    Constant,
    DType,
    If,
    Tuple,
)
from intarsia.op import call
from intarsia.passes import (
    BackwardFoldScaleAxis,
)


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("is_division", [False, True])
def test_a_scale_after_a_layer_goes_into_its_weights(name: str, is_division: bool) -> None:
    x, layer, shape = LAYERS[name]
    scale = factors(*shape) if is_division else factors(*shape, low=SIGNED)
    body = call("Div" if is_division else "Mul", layer(x), scale)
    after = checked_on_engine(BACKWARD, program(body, x))
    assert multiplications(after) == 0
    assert after["main"].result_type == body.checked_type


@pytest.mark.parametrize("name", THROUGH)
def test_a_scale_moves_back_through(name: str) -> None:
    x = var(2, 4, 5, 6)
    body = call("Mul", THROUGH[name](conv(x)), BY_CHANNEL)
    assert multiplications(checked(BACKWARD, program(body, x))) == 0


def test_a_pad_of_ones_is_not_passed() -> None:
    x = var(2, 4, 5, 6)
    padded = call("Pad", conv(x), Constant(np.array([0, 0, 1, 2, 0, 0, 0, 1])), Constant(np.float32(1)))  # type: ignore[arg-type]  # a scalar
    assert is_unchanged(call("Mul", padded, BY_CHANNEL), x, by=BACKWARD)


def test_both_sides_of_a_sum_take_the_factors() -> None:
    x = var(2, 4, 5, 6)
    for name in ("Add", "Sub"):
        body = call("Mul", call("Relu", call(name, conv(x), conv(x, seed=1))), BY_CHANNEL)
        assert multiplications(checked(BACKWARD, program(body, x))) == 0


def test_a_constant_summand_takes_the_factors() -> None:
    x = var(2, 4, 5, 6)
    for shape in ((6, 1, 1), (), (1, 1, 1, 1)):
        body = call("Mul", call("Sub", weights(*shape), call("Relu", conv(x))), factors(6, 1, 1, low=0.5))
        after = checked(BACKWARD, program(body, x))
        assert multiplications(after) == 0
        assert operator_counts(after)["Sub"] == 1
    body = call("Mul", call("Add", weights(5, 6), conv(x)), BY_CHANNEL)
    assert is_unchanged(body, x, by=BACKWARD)


def test_a_sum_with_one_side_that_takes_nothing_stays() -> None:
    x, y = var(2, 4, 5, 6), var(2, 6, 5, 6, name="y")
    assert is_unchanged(call("Mul", call("Add", conv(x), y), BY_CHANNEL), x, y, by=BACKWARD)
    narrow = call("Add", y, call("Conv", x, weights(1, 4, 1, 1)))
    assert is_unchanged(call("Mul", narrow, BY_CHANNEL), x, y, by=BACKWARD)
    both = call("Add", conv(x), call("Conv", x, weights(1, 4, 3, 3), pads=(1, 1, 1, 1)))
    assert is_unchanged(call("Mul", both, BY_CHANNEL), x, by=BACKWARD)


def test_what_is_used_elsewhere_is_not_scaled_back() -> None:
    x = var(2, 4, 5, 6)
    shared = conv(x)
    assert is_unchanged(Tuple((call("Mul", shared, BY_CHANNEL), shared)), x, by=BACKWARD)
    doubled = call("Mul", call("Add", shared, shared), BY_CHANNEL)
    assert is_unchanged(doubled, x, by=BACKWARD)


def test_a_product_that_is_larger_than_what_it_multiplies_stays() -> None:
    x = var(1, 4, 5, 6)
    assert is_unchanged(call("Mul", call("Conv", x, weights(1, 4, 1, 1)), BY_CHANNEL), x, by=BACKWARD)
    assert is_unchanged(call("Mul", conv(x), factors(2, 1, 1, 1, 1)), x, by=BACKWARD)


def test_weights_that_are_not_constant_stay() -> None:
    x, w = var(2, 4, 5, 6), var(6, 4, 3, 3, name="w")
    body = call("Mul", call("Conv", x, w), BY_CHANNEL)
    assert is_unchanged(body, x, w, by=BACKWARD)
    b = var(6, name="b")
    assert is_unchanged(call("Mul", call("Conv", x, weights(6, 4, 3, 3), b), BY_CHANNEL), x, b, by=BACKWARD)


def test_factors_that_would_overflow_or_vanish_stay() -> None:
    x = var(3, 4, dtype=DType.FLOAT16)
    for value in (60_000, 1e-6, np.inf, np.nan):
        body = call(
            "Mul", call("MatMul", x, weights(4, 6, dtype=np.float16)), Constant(np.array(value, np.float16))
        )
        assert is_unchanged(body, x, by=BACKWARD)
    assert is_unchanged(
        call("Div", call("MatMul", var(3, 4), weights(4, 6)), Constant(np.array(0, np.float32))),
        var(3, 4),
        by=BACKWARD,
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_weights_of_every_width_are_computed_in_float64(dtype: Any) -> None:
    x = var(3, 4, dtype=DType(np.dtype(dtype).name))
    weight, scale = weights(4, 6, dtype=dtype), factors(6, dtype=dtype)
    after = BACKWARD(program(call("Mul", call("MatMul", x, weight), scale), x))
    product = after["main"].body
    found = product.args[1].data  # type: ignore[union-attr]  # a MatMul by a constant
    wanted = (weight.data.astype(np.float64) * scale.data.astype(np.float64)).astype(dtype)
    assert found.dtype == weight.data.dtype
    np.testing.assert_array_equal(found, wanted)


def test_integers_stay() -> None:
    x = var(3, 4, dtype=DType.INT32)
    body = call(
        "Mul", call("MatMul", x, Constant(np.ones((4, 6), np.int32))), Constant(np.array([2], np.int32))
    )
    assert is_unchanged(body, x, by=BACKWARD)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", ["conv", "conv with bias", "grouped transposed conv", "gemm with one bias"])
@pytest.mark.parametrize("kind", ["Add", "Sub"])
def test_a_shift_goes_into_the_bias(name: str, kind: str) -> None:
    x, layer, shape = LAYERS[name]
    for constant in (weights(*shape), weights()):
        after = checked_on_engine(BACKWARD, program(call(kind, layer(x), constant), x))
        assert operator_counts(after)[kind] == 0
    assert is_unchanged(call(kind, layer(x), weights()), x, by=BackwardFoldScaleAxis(shift=False))


def test_a_shift_that_is_no_bias_stays() -> None:
    x = var(2, 4, 5, 6)
    layer = conv(x)
    for shape in ((5, 6), (1, 1, 1, 1, 1), (2, 1, 1, 1)):
        assert is_unchanged(call("Add", layer, weights(*shape)), x, by=BACKWARD)
    assert is_unchanged(call("Sub", weights(6, 1, 1), layer), x, by=BACKWARD)
    assert is_unchanged(Tuple((call("Add", layer, weights(6, 1, 1)), layer)), x, by=BACKWARD)
    matrix = var(3, 4)
    gemm = call("Gemm", matrix, weights(4, 6), weights(6), beta=2.0)
    assert is_unchanged(call("Add", gemm, weights(6)), matrix, by=BACKWARD)


def test_branches_are_folded_each_on_its_own() -> None:
    x, flag = var(2, 4, 5, 6), var(dtype=DType.BOOL, name="flag")
    first, second = (call("Mul", conv(x, seed=seed), BY_CHANNEL) for seed in (0, 1))
    body = If(flag, first, call("Relu", second), checked_type=first.checked_type)
    for value in (True, False):
        before = program(body, x, flag)
        after = BACKWARD(before)
        assert multiplications(after) == 0
        image = np.random.default_rng(0).normal(size=(2, 4, 5, 6)).astype(np.float32)
        assert_same_results(before, after, {"x": image, "flag": np.array(value)})
