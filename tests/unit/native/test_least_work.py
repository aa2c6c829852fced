"""The fewest products of a call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import Constant, DType, Expr, TensorType, Var
from intarsia.native.least_work import least_multiply_adds
from intarsia.native.te.operators.winograd import Transforms, transform_operations
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


def convolution(channels: int, extent: int, results: int, batch: int = 1) -> Expr:
    """Return a convolution of 3 by 3 that keeps the size of its images."""
    x = value(batch, channels, extent, extent)
    weight = Constant(np.ones((results, channels, 3, 3), np.float32))
    return typed(call("Conv", x, weight, pads=(1, 1, 1, 1), kernel_shape=(3, 3)))


def test_products_and_transforms_that_winograd_leaves() -> None:
    """F(4, 3): 36 products of each pair of channels for 16 results, 10 and 6 in a line of the transforms."""
    tiles, of_input, of_result = 3 * 14 * 14, 12 * 10, 10 * 6
    expected = tiles * (36 * 64 * 32 + of_input * 64 + of_result * 32)
    assert least_multiply_adds(convolution(64, 56, 32, batch=3)) == expected


def test_tiles_at_the_edges_are_whole() -> None:
    whole, cut = (least_multiply_adds(convolution(256, extent, 256)) for extent in (16, 14))
    assert whole == cut
    assert least_multiply_adds(convolution(256, 12, 256)) < cut


def test_two_by_two_images_have_smaller_tiles() -> None:
    """F(4, 3) would compute 36 products; of direct sums only 16 read no padding."""
    expr = convolution(64, 2, 64)
    assert least_multiply_adds(expr) == multiply_adds(expr) == 16 * 64 * 64
    assert least_multiply_adds(convolution(64, 6, 64)) == 9 * (16 * 64 * 64 + (32 + 24) * 64)


@pytest.mark.parametrize("tile", [2, 4])
def test_transforms_have_the_operations_of_their_matrices(tile: int) -> None:
    """Without shared operations, a row with k terms has k - 1 additions, and f factors besides 1 and -1."""
    matrices = Transforms.of(tile)
    of_input, of_result = transform_operations(tile)
    for operations, lines, matrix in (
        (of_input, 2 * (tile + 2), matrices.inputs),
        (of_result, 2 * tile + 2, matrices.results),
    ):
        terms = int(np.count_nonzero(matrix)) - len(matrix)
        factors = int((~np.isin(abs(matrix), (0, 1))).sum())
        assert operations % lines == 0
        assert len(matrix) / 2 <= operations // lines <= max(factors, terms)
