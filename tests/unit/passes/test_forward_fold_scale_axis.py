"""Folding multiplications into the weights after them: each layer, and what stays."""

from __future__ import annotations

import pytest
from tests.pass_checks import assert_same_results, checked
from tests.unit.passes.scale_programs import (
    BY_CHANNEL,
    FORWARD,
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
    Tuple,
)
from intarsia.op import call


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", ["scalar", "per channel"])
def test_a_scale_before_a_layer_goes_into_its_weights(name: str, kind: str) -> None:
    x, layer, _ = LAYERS[name]
    rank = len(x.checked_type.shape)  # type: ignore[union-attr, arg-type]  # a tensor of known rank
    is_image = name.endswith("conv") or "conv " in name
    axis = 1 if is_image else rank - (2 if "left" in name else 1)
    shape = [1] * rank
    shape[axis] = 4
    scale = factors(*(() if kind == "scalar" else shape), low=SIGNED)
    after = checked_on_engine(FORWARD, program(layer(call("Mul", scale, x)), x))
    assert multiplications(after) == 0


def test_a_gemm_of_a_transposed_operand_takes_scales_of_its_rows() -> None:
    x = var(4, 3)
    for shape, left in (((4, 1), 0), ((3,), 1)):
        body = call("Gemm", call("Mul", x, factors(*shape)), weights(4, 6), transA=1)
        assert multiplications(FORWARD(program(body, x))) == left
        assert_same_results(program(body, x), FORWARD(program(body, x)))


@pytest.mark.parametrize("name", THROUGH)
def test_a_scale_moves_on_through(name: str) -> None:
    x = var(2, 6, 5, 6)
    body = call("Conv", THROUGH[name](call("Mul", x, BY_CHANNEL)), weights(3, 6, 1, 1))
    assert multiplications(checked(FORWARD, program(body, x))) == 0


def test_all_uses_of_a_product_take_its_factors_or_none() -> None:
    x = var(2, 4, 5, 6)
    scaled = call("Relu", call("Mul", x, factors(4, 1, 1)))
    after = checked(FORWARD, program(Tuple((conv(scaled), conv(scaled, 3, seed=1))), x))
    assert multiplications(after) == 0
    assert is_unchanged(Tuple((conv(scaled), scaled)), x, by=FORWARD)
    assert is_unchanged(call("Add", conv(scaled, 4), scaled), x, by=FORWARD)
