"""Folding multiplications in both directions."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, assert_same_results, checked, operator_counts
from tests.unit.passes.scale_programs import (
    BACKWARD,
    BY_CHANNEL,
    FORWARD,
    THROUGH,
    conv,
    factors,
    is_unchanged,
    multiplications,
    normalized,
    program,
    var,
    weights,
)

from intarsia.ir import (
    Constant,
    Expr,
    SymbolicDim,
    with_fields,
)
from intarsia.op import call
from intarsia.passes import (
    FoldConstant,
    FoldScaleAxis,
    SimplifyInference,
)
from intarsia.passes.fold_scale import layer
from intarsia.passes.fold_scale.scale import Acceptance, acceptance_of, scaled_constant
from intarsia.target import DeviceType, VirtualDevice
from intarsia.transform import Pass, Sequential, get_pass


def test_weights_that_no_multiplication_can_reach_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of large models are read once at most: their largest elements say which factors they take."""
    x = var(2, 4, 5, 6)
    first, last, apart = weights(4, 4, 1, 1), weights(6, 4, 3, 3), weights(6, 6, 1, 1)
    moved = call("Conv", call("Mul", call("Conv", x, first), factors(4, 1, 1)), last)
    body = call("Conv", call("Softmax", moved, axis=1), apart)
    read: list[Constant] = []

    def recorded(axis: int | None, *constants: Constant) -> Acceptance:
        read.extend(constants)
        return acceptance_of(axis, *constants)

    monkeypatch.setattr(layer, "acceptance_of", recorded)
    assert multiplications(BACKWARD(program(body, x))) == 0
    assert [constant.data.shape for constant in read] == [first.data.shape]
    read.clear()
    assert multiplications(FORWARD(program(body, x))) == 0
    assert [constant.data.shape for constant in read] == [last.data.shape]


def test_a_transpose_moves_the_axis_of_a_scale() -> None:
    x = var(2, 4, 5, 6)
    last = call("Mul", call("Transpose", conv(x), perm=(0, 2, 3, 1)), factors(6))
    assert multiplications(checked(BACKWARD, program(last, x))) == 0
    other = call("Mul", call("Transpose", conv(x), perm=(0, 2, 3, 1)), factors(6, 1))
    assert is_unchanged(other, x, by=BACKWARD)
    before = call(
        "Conv", call("Transpose", call("Mul", x, factors(6)), perm=(0, 3, 1, 2)), weights(3, 6, 1, 1)
    )
    assert multiplications(checked(FORWARD, program(before, x))) == 0


@pytest.mark.parametrize("name", ["relu", "leaky relu", "abs", "max pool", "global max pool"])
def test_negative_factors_do_not_pass_what_bends(name: str) -> None:
    x, y = var(2, 4, 5, 6), var(2, 6, 5, 6)
    negative = Constant(-BY_CHANNEL.data)
    assert is_unchanged(call("Mul", THROUGH[name](conv(x)), negative), x, by=BACKWARD)
    body = call("Conv", THROUGH[name](call("Mul", y, negative)), weights(3, 6, 1, 1))
    assert is_unchanged(body, y, by=FORWARD)


def test_factors_of_other_axes_stay() -> None:
    x = var(2, 4, 5, 6)
    for shape in ((5, 1), (6,), (6, 5, 6), (2, 1, 1, 1)):
        assert is_unchanged(call("Mul", conv(x), factors(*shape)), x, by=BACKWARD)
    for shape in ((5, 1), (6,), (4, 5, 6), (2, 1, 1, 1)):
        assert is_unchanged(conv(call("Mul", x, factors(*shape))), x, by=FORWARD)


def test_a_chain_of_factors_becomes_one() -> None:
    x = var(2, 4, 5, 6)
    body = conv(x)
    for low in (0.5, 0.7, 0.9):
        body = call("Relu", call("Mul", body, factors(6, 1, 1, low=low)))
    assert multiplications(checked(BACKWARD, program(body, x))) == 0
    unfolded: Expr = x
    for low in (0.5, 0.7):
        unfolded = call("Relu", call("Mul", unfolded, factors(4, 1, 1, low=low)))
    assert multiplications(checked(BACKWARD, program(unfolded, x))) == 1
    assert multiplications(checked(FORWARD, program(unfolded, x))) == 1


def test_batch_normalization_after_layers_disappears() -> None:
    x = var(SymbolicDim("N"), 4, 5, 6)
    trunk = call("Relu", normalized(conv(x), 6, 0))
    left = normalized(call("Conv", trunk, weights(6, 1, 3, 3), pads=(1, 1, 1, 1), group=6), 6, 1)
    body = call("Relu", call("Add", left, normalized(call("Conv", trunk, weights(6, 6, 1, 1)), 6, 2)))
    before = program(body, x)
    after = Sequential([SimplifyInference(), FoldConstant(), FoldScaleAxis])(before)
    assert operator_counts(after) == {"Conv": 3, "Relu": 2, "Add": 1}
    image = np.random.default_rng(0).normal(size=(2, 4, 5, 6)).astype(np.float32)
    assert_same_results(before, after, {"x": image})


def test_values_do_not_move_to_another_device() -> None:
    here, there = (VirtualDevice(DeviceType.CPU, number) for number in (0, 1))
    x = var(2, 4, 5, 6)
    layer = with_fields(conv(x), virtual_device=here)
    for name in ("Mul", "Add"):
        assert is_unchanged(with_fields(call(name, layer, BY_CHANNEL), virtual_device=there), x, by=BACKWARD)
    scaled = with_fields(call("Mul", x, factors(4, 1, 1)), virtual_device=there)
    assert is_unchanged(conv(scaled), x, by=FORWARD)


@pytest.mark.parametrize("made", [BACKWARD, FORWARD])
def test_facts_are_kept(made: Pass) -> None:
    x = var(2, 4, 5, 6)
    body = call("Add", call("Mul", conv(call("Mul", x, factors(4, 1, 1))), BY_CHANNEL), weights(6, 1, 1))
    assert_facts_kept(made, program(body, x))


def test_the_sequence_is_found_by_name_and_goes_backward_first() -> None:
    found = get_pass("FoldScaleAxis")
    assert isinstance(found, Sequential)
    assert [item.info.name for item in found.passes] == ["BackwardFoldScaleAxis", "ForwardFoldScaleAxis"]


@pytest.mark.slow
@pytest.mark.parametrize("made", [BACKWARD, FORWARD])
def test_long_chains_are_no_deep_recursion(made: Pass, length: int) -> None:
    x = var(2, 4)
    body: Expr = x
    half = Constant(np.full((4, 4), 0.25, np.float32))
    for number in range(length):
        body = call("Relu", call("Mul", body, factors(4))) if number % 10 else call("MatMul", body, half)
    left = multiplications(made(program(body, x)))
    assert left == (0 if made is BACKWARD else 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(4, 3), (3,), ()])
def test_scaled_weights_are_rounded_once(shape: tuple[int, ...], dtype: type) -> None:
    values = np.random.default_rng(3).normal(size=shape)
    by = np.array([[1 / 3, -7.5, 1e-3]])
    data: np.ndarray[tuple[int, ...], np.dtype[Any]] = values.astype(dtype)
    expected = (data.astype(np.float64) * by).astype(dtype)
    scaled = scaled_constant(Constant(data), by).data
    assert (scaled.dtype, scaled.shape) == (expected.dtype, expected.shape)
    assert scaled.tobytes() == expected.tobytes()


def test_weights_are_scaled_without_a_wider_copy() -> None:
    data = np.ones((1024, 1024), np.float32)
    tracemalloc.start()
    try:
        scaled_constant(Constant(data), np.array(2.0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * data.nbytes
