"""How many taps of a window are elements, at all of its positions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const
from intarsia.native.te.operators import windows
from intarsia.native.te.operators.windows import Window

ORIGIN = const(0, DType.INT64)
FEW, PADS = st.integers(1, 5), st.integers(0, 9)


@given(st.integers(0, 12), PADS, st.integers(1, 9), FEW, FEW, PADS, PADS, st.booleans())
@settings(max_examples=examples(400, quick=6), deadline=None)
def test_a_number_is_counted_where_all_positions_have_the_same(
    extent: int, count: int, taps: int, stride: int, dilation: int, begin: int, end: int, with_padding: bool
) -> None:
    window = Window(extent, count, taps, stride, dilation, begin, end)
    low, high = (-begin, extent + end) if with_padding else (0, extent)
    starts = range(-begin, count * stride - begin, stride)
    counts = {sum(low <= start + tap * dilation < high for tap in range(taps)) for start in starts}
    counted = window.tap_count(ORIGIN, with_padding)
    assert isinstance(counted, Expression) == (len(counts) > 1)
    assert isinstance(counted, Expression) or counted == next(iter(counts), 0)


@pytest.mark.parametrize("begin", [0, 1])
def test_positions_of_long_dimensions_are_not_listed(begin: int) -> None:
    window = Window(2**40, 2**40 - 2 + 2 * begin, 3, 1, 1, begin, begin)
    assert window.tap_count(ORIGIN, with_padding=True) == 3
    assert isinstance(window.tap_count(ORIGIN, with_padding=False), Expression) == bool(begin)


def test_windows_longer_than_the_dimension_are_counted_at_few_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = Window(2, 3, 2**40, 1, 1, 2, 2**40)  # both elements are in the window at all three positions
    assert window.tap_count(ORIGIN, with_padding=False) == 2
    monkeypatch.setattr(windows, "_MOST_COUNTED", 2)
    assert isinstance(window.tap_count(ORIGIN, with_padding=False), Expression)
