"""Convolutions that native computes on plain tensors: which they are, and that their results are right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant

from intarsia.build import build
from intarsia.ir import Call, Expr, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.tune.kernels import kernel_groups

pytestmark = pytest.mark.quick_tests(4)

NATIVE = "cpu -toolchain=native -threads=1"
RNG = np.random.default_rng(7)


def weight(filters: int, channels: int, taps: int = 3) -> Expr:
    """Weights of a convolution."""
    values = RNG.standard_normal((filters, channels, taps, taps)) / (channels * taps * taps) ** 0.5
    return constant(values)


def program(
    side: int, channels: int, filters: int, groups: int, between: int = 0, stride: int = 1
) -> IRModule:
    """A convolution, between two convolutions of one tap if they have a number of channels."""
    x = Var("x", checked_type=TensorType.of(np.zeros((1, between or channels, side, side), np.float32)))
    result: Expr = x
    if between:
        result = call("Relu", call("Conv", result, weight(channels, between, 1)))
    taps = weight(filters, channels // groups)
    result = call("Conv", result, taps, group=groups, pads=(1, 1, 1, 1), strides=(stride, stride))
    result = call("Relu", result)
    if between:
        result = call("Conv", result, weight(between, filters, 1))
    return IRModule.from_expr(Function((x,), result))


def lanes_of_convolution(module: IRModule) -> int:
    """Number of channels of a block of the convolution with several taps; 0 on plain tensors."""
    (group,) = (
        group
        for group in kernel_groups(module, NATIVE)
        if any(str(item.op) == "Conv" and _has_taps(item) for item in group.rule.calls)
    )
    return group.lanes


def _has_taps(convolution: Call) -> bool:
    weights = convolution.args[1].checked_type
    return isinstance(weights, TensorType) and weights.static_shape[2:] == (3, 3)


@pytest.mark.parametrize(
    "sizes",
    [
        (56, 64, 64, 16),
        (40, 60, 40, 5),
        (100, 20, 20, 4),
        (200, 9, 12, 1),
        (56, 128, 128, 64, 64),
        (112, 64, 64, 16, 0, 2),
    ],
    ids=str,
)
def test_few_filters_in_a_group_are_computed_on_plain_tensors(sizes: tuple[int, ...]) -> None:
    assert lanes_of_convolution(program(*sizes)) == 0


@pytest.mark.parametrize(
    "sizes",
    [(56, 64, 64, 1), (28, 128, 128, 8), (3, 64, 64, 16), (56, 64, 32, 1, 64), (56, 64, 64, 64, 64)],
    ids=str,
)
def test_full_blocks_and_short_rows_are_blocked(sizes: tuple[int, ...]) -> None:
    assert lanes_of_convolution(program(*sizes)) > 0


@pytest.mark.parametrize("between", [0, 64])
def test_filters_that_fill_no_block_are_computed_on_plain_tensors_alone(between: int) -> None:
    lanes = lanes_of_convolution(program(112, 160, 41, 1, between, 2))
    assert (lanes > 0) is (between > 0)


@given(
    side=st.integers(3, 40),
    groups=st.sampled_from([1, 2, 4, 8]),
    read=st.integers(1, 9),
    filters=st.integers(1, 12),
    between=st.sampled_from([0, 16]),
    stride=st.integers(1, 4),
)
@settings(max_examples=examples(8), deadline=None)
def test_results_are_those_of_the_reference(
    side: int, groups: int, read: int, filters: int, between: int, stride: int
) -> None:
    module = program(side, read * groups, filters * groups, groups, between, stride)
    x = RNG.standard_normal((1, between or read * groups, side, side)).astype(np.float32)
    result, expected = (
        np.asarray(build(partition_whole(module, Target(target)))(x))
        for target in (NATIVE, "cpu -toolchain=reference")
    )
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
