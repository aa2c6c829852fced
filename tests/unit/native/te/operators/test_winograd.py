"""Winograd's transforms: their matrices, and the declaration, against direct convolution in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.te_evaluator import evaluate

from intarsia.native import te
from intarsia.native.te.operators.blocked_layout import blocked_array, plain_array
from intarsia.native.te.operators.windows import Window
from intarsia.native.te.operators.winograd import (
    TAPS,
    TILES,
    Transforms,
    winograd_convolution,
    winograd_weight,
)


@pytest.mark.parametrize("tile", TILES)
def test_transforms_make_a_correlation_of_every_pair(tile: int) -> None:
    """As both sides are bilinear, pairs of unit vectors say it all."""
    matrices = Transforms.of(tile)
    assert matrices.inputs.shape == (tile + 2, tile + 2)
    assert matrices.weights.shape == (tile + 2, TAPS)
    assert matrices.results.shape == (tile, tile + 2)
    found = np.einsum("yp,pk,pd->ykd", matrices.results, matrices.weights, matrices.inputs)
    expected = [[[d == y + k for d in range(tile + 2)] for k in range(TAPS)] for y in range(tile)]
    np.testing.assert_allclose(found, np.array(expected, float), atol=1e-13)


@pytest.mark.parametrize("tile", TILES)
def test_rows_of_a_point_and_its_negative_differ_in_signs_only(tile: int) -> None:
    matrices = Transforms.of(tile)
    for first in range(1, tile + 1, 2):
        for matrix in (matrices.inputs, matrices.results.T):
            signs = np.where(np.arange(matrix.shape[1]) % 2, -1, 1)
            signs = signs if matrix is not matrices.inputs else np.resize([1, -1], tile + 2)
            np.testing.assert_array_equal(matrix[first] * signs, matrix[first + 1])


def test_transformed_weights_of_f_2_3_are_those_of_the_paper() -> None:
    """Lavin and Gray, equation 10, up to a factor of rows that belongs to the inputs here."""
    expected = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    np.testing.assert_allclose(np.abs(Transforms.of(2).weights), np.abs(expected))


sizes = st.integers(3, 9)


@given(
    st.sampled_from(TILES),
    st.tuples(sizes, sizes),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 2)),
)
def test_declaration_is_a_convolution(
    tile: int, size: tuple[int, int], pads: tuple[int, ...], channels: tuple[int, int, int]
) -> None:
    read, made, batch = channels
    windows = tuple(
        Window(extent, extent + before + behind - 2, 3, 1, 1, before, behind)
        for extent, before, behind in zip(size, pads[:2], pads[2:], strict=True)
    )
    generator = np.random.default_rng(0)
    data = generator.standard_normal((batch, read, *size)).astype(np.float32)
    weight = generator.standard_normal((made, read, 3, 3)).astype(np.float32)
    arrays = blocked_array(data, 2), winograd_weight(weight, tile, 2, 4)
    x, w = (te.placeholder(each.shape, name=name) for each, name in zip(arrays, "xw", strict=True))
    (found,) = evaluate(
        [winograd_convolution(x, w, windows, tile, "conv")], dict(zip("xw", arrays, strict=True))
    )
    widths = [(0, 0), (0, 0), *zip(pads[:2], pads[2:], strict=True)]
    wide = np.pad(data.astype(np.float64), widths)
    cut = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwrs,mcrs->nmhw", cut, weight.astype(np.float64))
    np.testing.assert_allclose(plain_array(found, made), expected, atol=2e-4)
