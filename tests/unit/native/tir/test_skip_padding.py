"""Products with padding are skipped where that saves more than the guard costs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.tir_checks import checked, lines_of, parsed

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import IfThenElse
from intarsia.native.tir.skip_padding import SkipPadding

SUMS = """def prim @f(x: Buffer[(8, 8), float32], w: Buffer[(3, 8, 8), float32], y: Buffer[(8, 8), float32]) {
  alloc p: Buffer[(SIZE, 8), float32] {
    for i in PAD { for j in 8 { p[i, j] = BORDER; } }
    for i in 8 { for j in 8 { p[i + PAD, j] = x[i, j]; } }
    for i in PAD { for j in 8 { p[i + (PAD + 8), j] = BORDER; } }
    for i in 8 { for j in 8 { y[i, j] = 0.0f32; } }
    for i in 8 { for t in 3 { for k in 8 { for vectorized j in 8 { STORE } } } }
  }
}"""
ADD = "y[i, j] = y[i, j] + p[i + t * PAD, k] * w[t, k, j];"


def _program(pad: int, store: str = ADD, border: str = "0.0f32") -> str:
    text = SUMS.replace("STORE", store).replace("BORDER", border).replace("SIZE", str(8 + 2 * pad))
    return text.replace("PAD", str(pad))


def _guards(text: str) -> int:
    after = checked(SkipPadding(), parsed(text))
    return sum(isinstance(v.statement, IfThenElse) for v in walk(after.body) if v.event is Event.ENTER)


@pytest.mark.parametrize("pad", [6, 8, 11])
def test_taps_in_padding_are_skipped(pad: int) -> None:
    after = checked(SkipPadding(), parsed(_program(pad)))
    (guard,) = [line.strip() for line in lines_of(after) if line.strip().startswith("if")]
    assert guard == f"if {pad - 1} < i + t * {pad} and i + t * {pad} < {pad + 8} {{"


def test_what_saves_little_is_not_guarded() -> None:
    """One of the eight rows of two taps, eight stores each: less than a store for each guard."""
    assert _guards(_program(1)) == 0


@pytest.mark.parametrize(
    "store",
    [
        "y[i, j] = max(y[i, j], p[i + t * PAD, k] * w[t, k, j]);",
        "y[i, j] = y[i, j] + (p[i + t * PAD, k] + w[t, k, j]);",
        "y[i, j] = y[i, j] * p[i + t * PAD, k];",
        "y[i, j] = p[i + t * PAD, k] * w[t, k, j];",
        "y[i, j] = y[j, i] + p[i + t * PAD, k] * w[t, k, j];",
    ],
)
def test_what_is_no_sum_of_products_stays(store: str) -> None:
    assert _guards(_program(6, store)) == 0


def test_padding_of_other_values_is_no_padding() -> None:
    assert _guards(_program(6, border="1.0f32")) == 0


def test_two_statements_are_skipped_together() -> None:
    """The second reads one row further on: what either of them needs is kept."""
    both = ADD + " y[i, j] = y[i, j] + p[i + t * 6 + 1, k] * w[t, k, j];"
    text = _program(6, both).replace("(20, 8)", "(21, 8)")
    text = text.replace("for i in 6 { for j in 8 { p[i + (6", "for i in 7 { for j in 8 { p[i + (6")
    after = checked(SkipPadding(), parsed(text))
    (guard,) = [line.strip() for line in lines_of(after) if line.strip().startswith("if")]
    assert guard == "if 4 < i + t * 6 and i + t * 6 < 14 {"


def test_another_factor_with_other_padding_is_enough() -> None:
    """A product is zero if either factor is: the first that skips enough is asked."""
    text = _program(6, "y[i, j] = y[i, j] + w[t, k, j] * p[i + t * PAD, k];")
    assert _guards(text) == 1


WINDOW = """def prim @f(x: Buffer[(EXTENT, 8), float32], w: Buffer[(TAPS, 8, 8), float32],
    y: Buffer[(COUNT, 8), float32]) {
  alloc p: Buffer[(PADDED, 8), float32] {
    for i in PADDED { for j in 8 { p[i, j] = 0.0f32; } }
    for i in EXTENT { for j in 8 { p[i + BEGIN, j] = x[i, j]; } }
    for i in COUNT { for vectorized j in 8 { y[i, j] = 0.0f32; } }
    for i in COUNT { for t in TAPS { for k in 8 { for vectorized j in 8 {
      y[i, j] = y[i, j] + p[i * STRIDE + t * DILATION, k] * w[t, k, j];
    } } } }
  }
}"""


@settings(max_examples=examples(200), deadline=None)
@given(*(st.integers(1, most) for most in (12, 4, 3, 9)), st.integers(0, 12), st.integers(0, 12))
def test_any_window_computes_the_same(
    extent: int, taps: int, stride: int, dilation: int, begin: int, end: int
) -> None:
    padded = max(extent + begin + end, (taps - 1) * dilation + 1)
    count = (padded - (taps - 1) * dilation - 1) // stride + 1
    sizes = {"EXTENT": extent, "TAPS": taps, "STRIDE": stride, "DILATION": dilation}
    text = WINDOW
    for name, size in (*sizes.items(), ("BEGIN", begin), ("COUNT", count), ("PADDED", padded)):
        text = text.replace(name, str(size))
    checked(SkipPadding(), parsed(text))
