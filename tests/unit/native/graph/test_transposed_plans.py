"""Transposed convolutions in plans: which are blocked, and that results are the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.test_blocked_plans import blocked_kernels, checked, image, operators, weights

from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import Expr, Function, TensorType, Var
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.passes import default_heuristic
from intarsia.transform import PassContext

pytestmark = pytest.mark.quick_tests(3)


def transposed(x: Expr, made: int, taps: int = 4, group: int = 1, **attrs: Any) -> Expr:
    """A transposed convolution of a two-dimensional image."""
    assert isinstance(x.checked_type, TensorType)
    channels = x.checked_type.static_shape[1]
    weight = weights(channels, made // group, taps, taps)
    return call("ConvTranspose", x, weight, weights(made), group=group, **attrs)


@pytest.mark.slow
def test_a_generator_has_no_copies_between_its_kernels() -> None:
    x = image(20, size=1)
    start = call("Relu", transposed(x, 48))
    middle = call("Relu", transposed(start, 24, strides=(2, 2), pads=(1, 1, 1, 1)))
    plan = checked(x, call("Tanh", transposed(middle, 3, strides=(2, 2), pads=(1, 1, 1, 1))))
    assert operators(plan) == ["convtranspose_relu", "convtranspose_relu", "convtranspose_tanh"]
    assert blocked_kernels(plan) == [True, True, False]


def test_other_dilations_are_plain() -> None:
    x = image(16)
    plan = checked(x, transposed(x, 16, 3, dilations=(2, 2)))
    assert operators(plan) == ["convtranspose"]


def test_groups_are_plain() -> None:
    x = image(16)
    plan = plan_region(Function((x,), transposed(x, 16, 3, group=2, strides=(2, 2))), Isa.host())
    assert operators(plan) == ["convtranspose"]  # onnx's reference knows one group only


def test_weights_that_are_computed_are_read_as_they_are() -> None:
    x = image(16, size=4)
    weight = call("Reshape", call("Relu", x), constant(np.array([16, 16, 1, 1]), np.int64))
    plan = checked(x, call("ConvTranspose", x, weight))
    assert operators(plan)[-1] == "convtranspose"


def test_a_result_of_one_channel_is_added_to_what_is_plain() -> None:
    x = image(16, size=5, batch=2)
    one = transposed(x, 1, 3, pads=(1, 1, 1, 1))
    checked(x, call("Add", one, call("Softmax", x, axis=1)), call("Sigmoid", one))


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("made", [2, 24])
def test_one_and_three_spatial_dimensions(rank: int, made: int) -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 16, *range(3, 3 + rank)), np.float32)))
    weight = weights(16, made, *range(4, 4 - rank, -1))
    up = call("ConvTranspose", x, weight, strides=tuple(range(2, rank + 2)), pads=(1, *[0] * (2 * rank - 1)))
    plan = checked(x, call("Relu", up))
    assert blocked_kernels(plan) == ([True, False] if made == 2 else [True, True, False])


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    """Attributes of one dimension each: kernel, strides, pads, output_padding."""
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    more = tuple(draw(st.integers(0, stride - 1)) for stride in strides)
    pads = tuple(draw(st.integers(0, 2)) for _ in range(4))
    return {"strides": strides, "output_padding": more, "pads": pads}


@given(
    st.sampled_from([1, 3, 16, 20, 33]),
    st.sampled_from([1, 3, 8, 16, 20]),
    st.integers(3, 5),
    st.sampled_from([1, 3, 4]),
    forms(),
    st.integers(1, 2),
)
@settings(max_examples=examples(25), deadline=None)
def test_random_forms(
    channels: int, made: int, taps: int, size: int, attrs: dict[str, Any], batch: int
) -> None:
    x = image(channels, size, batch)
    given_attrs = {**attrs, "pads": (0, 0, 0, 0)} if size == 1 else attrs
    up = transposed(x, made, taps, **given_attrs)
    assert isinstance(up.checked_type, TensorType)
    checked(x, call("LeakyRelu", up))


def test_the_generator_of_the_zoo_is_blocked_as_a_whole() -> None:
    module = default_heuristic()(from_onnx(build_model("dcgan", 0)), PassContext())
    function = module["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, Isa.host())
    assert blocked_kernels(plan)[-1] is False
    assert not any(each.endswith("_blocked") for each in operators(plan))
