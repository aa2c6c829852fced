"""Pointwise convolutions between plain tensors are products, and those beside blocks are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import Array, run_plan

from intarsia.build import build
from intarsia.ir import Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.te.operators.compute_call import NotCoveredError
from intarsia.op import call

ISA = Isa.host()


def image(*shape: int) -> Var:
    return Var("x", checked_type=TensorType.of(np.zeros(shape, np.float32)))


def weights(*shape: int) -> Expr:
    return constant(np.sin(np.arange(np.prod(shape)) * 1.7).reshape(shape) / 4)


def pointwise(x: Expr, made: int, *, bias: bool = True, taps: int = 1, stride: int = 1) -> Expr:
    assert isinstance(x.checked_type, TensorType)
    _, channels, *spatial = x.checked_type.static_shape
    args = [x, weights(made, channels, *(taps for _ in spatial)), *([weights(made)] if bias else [])]
    return call("Conv", *args, pads=(taps // 2,) * 2 * len(spatial), strides=(stride,) * len(spatial))


def planned(x: Var, *results: Expr) -> RegionPlan:
    """The plan of a function, after its results were compared with those of the reference."""
    body = results[0] if len(results) == 1 else Tuple(results)
    function = Function((x,), body)
    assert isinstance(x.checked_type, TensorType)
    given_x = np.random.default_rng(0).standard_normal(x.checked_type.static_shape).astype(np.float32)
    expected = build(IRModule({GlobalVar("main"): function})).run_flat(given_x)
    typed = IRModule.from_expr(function)["main"]
    plan = plan_region(typed, ISA)
    found: list[Array] = run_plan(plan, [given_x], ISA)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-3, atol=1e-4)
    return plan


def operators(plan: RegionPlan) -> list[str]:
    return [kernel.name.rpartition("_")[0].removesuffix("_winograd4") for kernel in plan.kernels]


@pytest.mark.parametrize(
    "shape", [(1, 19, 20, 17), (3, 24, 300), (2, 16, 5, 8, 9)], ids=["image", "row", "volume"]
)
def test_between_plain_tensors_it_is_one_kernel(shape: tuple[int, ...]) -> None:
    x = image(*shape)
    made = pointwise(x, 21)
    assert operators(planned(x, call("Relu", made))) == ["conv_relu"]
    assert operators(planned(x, call("Mul", made, call("Sigmoid", made)))) == ["conv_sigmoid_mul"]


def test_broadcasts_along_channels_and_images() -> None:
    x = image(2, 16, 20, 20)
    made = pointwise(x, 24, bias=False)
    scaled = call("Mul", made, weights(1, 24, 1, 1))
    assert operators(planned(x, call("Add", scaled, weights(24, 1, 1)))) == ["conv_mul_add"]
    assert operators(planned(x, call("Add", made, constant(0.25)))) == ["conv_add"]
    rows = call("Add", made, weights(20, 20))
    assert "to_blocked" not in operators(planned(x, call("Add", made, weights(1, 1, 20, 20))))
    assert planned(x, rows).kernels


def test_along_one_dimension_of_pixels_there_is_no_product() -> None:
    x = image(1, 16, 20, 20)
    plan = planned(x, call("Add", pointwise(x, 24), weights(20, 1)))
    assert operators(plan)[0] == "to_blocked"


@pytest.mark.parametrize(
    ("shape", "made"),
    [
        ((1, 160, 20, 20), {}),
        ((1, 16, 7, 7), {}),
        ((1, 16, 20, 20), {"taps": 3}),
    ],
    ids=["many channels", "few pixels", "taps"],
)
def test_other_convolutions_are_blocked(shape: tuple[int, ...], made: dict[str, Any]) -> None:
    x = image(*shape)
    assert operators(planned(x, pointwise(x, 32, **made)))[0] == "to_blocked"


@pytest.mark.parametrize(
    ("shape", "stride", "kernels"),
    [
        ((1, 16, 40, 40), 2, ["picked", "conv"]),
        ((2, 24, 700), 2, ["picked", "conv"]),
        ((1, 160, 21, 20), 3, ["picked", "to_blocked", "conv", "from_blocked"]),
        ((2, 16, 5, 9, 8), 2, ["picked", "to_blocked", "conv", "from_blocked"]),
    ],
    ids=["image", "row", "many channels", "few pixels"],
)
def test_pixels_that_strides_leave_out_are_not_brought_into_blocks(
    shape: tuple[int, ...], stride: int, kernels: list[str]
) -> None:
    x = image(*shape)
    assert operators(planned(x, pointwise(x, 32, stride=stride))) == kernels


@pytest.mark.parametrize(
    ("read", "columns", "groups", "kernels"),
    [
        (48, 9, 1, ["picked", "to_blocked", "conv", "from_blocked"]),  # rows of 3 pixels fill no vector
        (32, 37, 4, ["conv"]),  # channels of small groups are read as they are
    ],
)
def test_strides_along_one_tap_are_left_out_first(
    read: int, columns: int, groups: int, kernels: list[str]
) -> None:
    x = image(1, read, 12, columns)
    weight = weights(64, read // groups, 3, 1)
    made = call("Conv", x, weight, pads=(1, 0, 1, 0), strides=(3, 3), group=groups)
    assert [name for name in operators(planned(x, made)) if groups == 1 or "blocked" not in name] == kernels


def test_blocks_that_are_there_are_read_with_strides() -> None:
    x = image(1, 16, 20, 20)
    blocked = call("Relu", pointwise(x, 24, taps=3))
    plan = planned(x, pointwise(blocked, 32, stride=2))
    assert "picked" not in operators(plan)
    both = planned(x, pointwise(x, 32, taps=3), pointwise(x, 32, stride=2))
    assert operators(both).count("to_blocked") == 1
    assert "picked" not in operators(both)


def test_what_is_read_in_blocks_is_computed_in_blocks() -> None:
    x = image(1, 16, 20, 20)
    first = call("Relu", pointwise(x, 24))
    plan = planned(x, call("Relu", pointwise(first, 24, taps=3)))
    assert operators(plan) == ["to_blocked", "conv_relu", "conv_relu", "from_blocked"]
    blocked = call("Relu", pointwise(x, 24, taps=3))
    plan = planned(x, pointwise(blocked, 16))
    assert operators(plan) == ["to_blocked", "conv_relu", "conv", "from_blocked"]


def test_rows_of_a_view_are_read_plain() -> None:
    x = image(1, 16, 20, 20)
    rows = call("Softmax", call("Reshape", pointwise(x, 24), constant([24, 400], np.int64)), axis=-1)
    assert operators(planned(x, rows)) == ["conv", "softmax"]


def test_operators_without_arguments_are_refused_for_what_they_are() -> None:
    x = image(2, 3)
    function = Function((x,), call("Add", x, call("RandomUniform", shape=(2, 3), seed=1.0)))
    with pytest.raises(NotCoveredError, match="operator 'RandomUniform' has no native kernel"):
        plan_region(IRModule.from_expr(function)["main"], ISA)


@settings(max_examples=examples(20, quick=3), deadline=None)
@given(
    batch=st.integers(1, 3),
    channels=st.integers(1, 40),
    made=st.integers(1, 40),
    size=st.tuples(st.integers(1, 9), st.integers(60, 90)),
    bias=st.booleans(),
)
def test_all_sizes(batch: int, channels: int, made: int, size: tuple[int, int], bias: bool) -> None:
    x = image(batch, channels, *size)
    planned(x, call("Add", call("Relu", pointwise(x, made, bias=bias)), weights(batch, 1, *size)))
