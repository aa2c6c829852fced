"""The fewest products of a call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import Constant, DType, Expr, TensorType, Var
from intarsia.native.least_work import least_multiply_adds
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.op.work import multiply_adds


def value(*shape: int) -> Expr:
    return Var("x", checked_type=TensorType(shape, DType.FLOAT32))


def transposed(extent: int, taps: int, stride: int, dilation: int, pads: tuple[int, int]) -> Expr:
    """Return a transposed convolution of 3 to 2 channels along one dimension."""
    x = value(1, 3, extent)
    weight = Constant(np.ones((3, 2, taps), np.float32))
    return typed(
        call(
            "ConvTranspose",
            x,
            weight,
            strides=(stride,),
            dilations=(dilation,),
            pads=pads,
            kernel_shape=(taps,),
        )
    )


@given(
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_transposed_convolutions_count_the_products_that_reach_a_result(
    extent: int, taps: int, stride: int, dilation: int, begin: int, end: int
) -> None:
    whole = (extent - 1) * stride + (taps - 1) * dilation + 1
    if whole <= begin + end:
        return
    expr = transposed(extent, taps, stride, dilation, (begin, end))
    reached = np.zeros(whole, int)
    for element in range(extent):
        reached[element * stride : element * stride + (taps - 1) * dilation + 1 : dilation] += 1
    expected = 3 * 2 * int(reached[begin : whole - end].sum())
    assert least_multiply_adds(expr) == min(expected, multiply_adds(expr))
    assert expected <= multiply_adds(expr)


def test_zeros_between_elements_cost_nothing() -> None:
    expr = transposed(64, 4, 2, 1, (1, 1))
    assert least_multiply_adds(expr) == pytest.approx(multiply_adds(expr) / 2, rel=0.02)


def test_products_that_winograd_leaves() -> None:
    x = value(1, 64, 56, 56)
    weight = Constant(np.ones((64, 64, 3, 3), np.float32))
    expr = typed(call("Conv", x, weight, pads=(1, 1, 1, 1), kernel_shape=(3, 3)))
    assert least_multiply_adds(expr) == multiply_adds(expr) / 4
