"""Transposed convolutions with stride 1 are convolutions of reversed weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import Array, run_plan
from tests.unit.native.graph.test_blocked_plans import checked, image, operators, weights

from intarsia.ir import Expr, Function, TensorType, Var
from intarsia.native.graph import plan_region
from intarsia.native.graph.forward_convolutions import reversed_weight
from intarsia.native.machine.isa import Isa
from intarsia.op import call


def kernels(x: Expr, *args: Expr) -> list[str]:
    """The operators of a plan, without copies between layouts."""
    assert isinstance(x, Var)
    return [name for name in operators(checked(x, *args)) if not name.endswith("blocked")]


@settings(max_examples=examples(25, quick=4), deadline=None)
@given(
    channels=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    size=st.integers(2, 9),
    taps=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    cut=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    has_bias=st.booleans(),
)
def test_results_are_those_of_the_reference(
    channels: tuple[int, int],
    size: int,
    taps: tuple[int, int],
    cut: tuple[int, int],
    has_bias: bool,  # hypothesis draws it by its name
) -> None:
    read, made = channels
    x = image(read, size=size, batch=2)
    begins = [min(cut[0], taps[0] - 1), min(cut[1], taps[1] - 1)]
    weight = weights(read, made, *taps)
    args = [x, weight, weights(made)] if has_bias else [x, weight]
    result = call("Relu", call("ConvTranspose", *args, pads=(*begins, 0, begins[1])))
    (kernel,) = kernels(x, result)
    assert kernel.startswith("conv_relu")


@pytest.mark.parametrize(
    ("size", "attributes"),
    [
        (6, {"strides": (2, 2)}),
        (6, {"dilations": (2, 2)}),
        (6, {"pads": (3, 0, 0, 0)}),  # more than the taps reach
        (1, {}),  # a pixel is the row of a product
    ],
    ids=["strides", "dilations", "pads", "pixel"],
)
def test_others_stay_transposed(size: int, attributes: dict[str, Any]) -> None:
    x = image(16, size=size)
    assert kernels(x, call("ConvTranspose", x, weights(16, 16, 3, 3), **attributes)) == ["convtranspose"]


def test_weights_that_two_read_are_reversed_once() -> None:
    x, weight = image(16), weights(16, 16, 3, 3)
    twice = call("ConvTranspose", call("ConvTranspose", x, weight), weight)
    function = Function((x,), twice)
    plan = plan_region(function, Isa.host())
    shapes = [value.constant.shape for value in plan.values if value.constant is not None]
    assert shapes.count((16, 16, 3, 3)) == 2  # as given, and reversed


@pytest.mark.parametrize("groups", [2, 3])
def test_each_group_is_reversed_by_itself(groups: int) -> None:
    weight = np.arange(groups * 4 * 5 * 3 * 2, dtype=np.float32).reshape(groups * 4, 5, 3, 2)
    parts = [reversed_weight(part, 1) for part in np.split(weight, groups)]
    np.testing.assert_array_equal(reversed_weight(weight, groups), np.concatenate(parts))
    np.testing.assert_array_equal(parts[0][1, 2], weight[2, 1, ::-1, ::-1])


def test_groups_give_what_each_group_gives() -> None:
    """Onnx's reference knows one group only, so that each group is one of its own here."""
    rng = np.random.default_rng(3)
    data = rng.standard_normal((2, 12, 7, 8), dtype=np.float32)
    weight = rng.standard_normal((12, 5, 3, 3), dtype=np.float32)

    def result(channels: slice, groups: int) -> Array:
        part = data[:, channels]
        x = Var("x", checked_type=TensorType.of(part))
        body = call("ConvTranspose", x, constant(weight[channels]), group=groups, pads=(1, 0, 0, 1))
        plan = plan_region(Function((x,), body), Isa.host())
        assert not any("convtranspose" in kernel.name for kernel in plan.kernels)
        return run_plan(plan, [part], Isa.host())[0]

    parts = [result(slice(first, first + 6), 1) for first in (0, 6)]
    np.testing.assert_allclose(result(slice(0, 12), 2), np.concatenate(parts, 1), rtol=1e-3, atol=1e-4)
