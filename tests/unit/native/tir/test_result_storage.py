"""Rows that end in a result, and those that must have memory of their own."""

import pytest
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.native.tir import ResultStorage

PASS = ResultStorage(64, first_cache=16, second_cache=256)
"""On a machine whose first-level cache has 4 elements, and the second 64."""

ROWS = """def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
  for KIND i in 4 {
    alloc m: Buffer[(1,), float32] {
      alloc t: Buffer[(1, 8), float32] {
        for j in 8 { t[0, j] = exp(x[i, j]); }
        m[0] = 0.0f32;
        for j in 8 { m[0] = m[0] + t[0, j]; }
        for j in 8 { y[i, j] = t[0, j] * m[0]; }
      }
    }
  }
}"""


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_rows_are_computed_in_the_result(kind: str) -> None:
    text = "\n".join(lines_of(checked(PASS, parsed(ROWS.replace("KIND", kind)))))
    assert "alloc t" not in text
    assert "alloc m" in text
    assert all(part in text for part in ("y[i, j] = exp(x[i, j])", "m[0] + y[i, j]", "y[i, j] * m[0]"))


def test_rows_may_have_several_dimensions() -> None:
    text = """def prim @f(x: Buffer[(3, 4, 5), float32], y: Buffer[(3, 4, 5), float32]) {
      for i in 3 {
        alloc t: Buffer[(1, 4, 5), float32] {
          for j in 4 { for k in 5 { t[0, j, k] = x[i, j, k]; } }
          for k in 5 { for j in 4 { y[i, j, k] = t[0, j, k] + t[0, j, k]; } }
        }
      }
    }"""
    assert not any("alloc" in line for line in lines_of(checked(PASS, parsed(text))))


def test_short_rows_of_a_long_buffer_stay_apart() -> None:
    text = """def prim @f(x: Buffer[(2, 100, 14), float32], y: Buffer[(2, 100, 14), float32]) {
      for i in 2 {
        alloc t: Buffer[(1, 100, 14), float32] {
          for j in 100 { for k in 14 { t[0, j, k] = x[i, j, k]; } }
          for j in 100 { for k in 14 { y[i, j, k] = t[0, j, k]; } }
        }
      }
    }"""
    mod = in_module(parsed(text))
    assert ResultStorage(64, 10_000, 0)(mod) is mod


LAST = "for j in 8 { y[i, j] = t[0, j] * m[0]; }"


@pytest.mark.parametrize(
    "last",
    [
        "for j in 8 { y[i, j] = t[0, 7 - j]; }",  # an element that is overwritten before
        "for j in 8 { y[i, j] = t[0, j] + y[i, j]; }",  # what the result had before
        "for j in 7 { y[i, j] = t[0, j]; }",  # the last element stays as it was
        "for j in 8 { y[i, 7 - j] = t[0, 7 - j]; }",
        "for j in 8 { y[i, j] = t[0, j]; } for j in 8 { m[0] = m[0] + t[0, j]; }",
        "for j in 8 { y[i, j] = t[0, j]; } for j in 8 { y[i, j] = y[i, j] + 1.0f32; }",
        "for k in 2 { for j in 8 { y[i, j] = t[0, j] + t[0, j]; } }",
        "for j in 8 { y[i, j] = t[0, j]; m[0] = t[0, j]; }",
        "for j in 8 { if j < 4 { y[i, j] = t[0, j]; } }",
        "for j in 8 { m[0] = t[0, j]; }",
    ],
)
def test_other_rows_keep_their_memory(last: str) -> None:
    mod = in_module(parsed(ROWS.replace("KIND", "serial").replace(LAST, last)))
    assert PASS(mod) is mod


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y: Buffer[(4, 8), float32]", "y: Buffer[(4, 8), float64]"),
        ("alloc t: Buffer[(1, 8), float32]", "alloc t: Buffer[(1, 8), float32, register]"),
        ("alloc t: Buffer[(1, 8), float32]", "alloc t: Buffer[(1, 9), float32]"),
    ],
)
def test_other_memory_is_not_the_results(before: str, after: str) -> None:
    text = ROWS.replace("KIND", "serial").replace(before, after)
    if "float64" in after:
        text = text.replace(LAST, "for j in 8 { y[i, j] = float64(t[0, j] * m[0]); }")
    mod = in_module(parsed(text))
    assert PASS(mod) is mod


def test_a_result_that_does_not_vary_with_the_row_is_left_alone() -> None:
    text = """def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
      alloc t: Buffer[(1, 8), float32] {
        for j in 8 { t[0, j] = x[3, j]; }
        for i in 4 { for j in 8 { y[i, j] = t[0, j]; } }
      }
    }"""
    mod = in_module(parsed(text))
    assert PASS(mod) is mod


@pytest.mark.parametrize(
    ("vector_bytes", "first", "second", "row", "is_moved"),
    [
        (32, 1000, 1 << 30, 251, True),  # beyond the first-level cache
        (32, 1000, 1, 250, False),  # narrow vectors write a line in parts
        (64, 1000, 3 * 250 * 4 - 1, 250, True),
        (64, 1000, 3 * 250 * 4, 250, False),  # the result stays in the second-level cache
        (64, 1000, 1, 127, False),  # too short
    ],
)
def test_it_depends_on_the_caches(
    vector_bytes: int, first: int, second: int, row: int, is_moved: bool
) -> None:
    text = f"""def prim @f(x: Buffer[(3, {row}), float32], y: Buffer[(3, {row}), float32]) {{
      for i in 3 {{
        alloc t: Buffer[(1, {row}), float32] {{
          for j in {row} {{ t[0, j] = x[i, j]; }}
          for j in {row} {{ y[i, j] = t[0, j]; }}
        }}
      }}
    }}"""
    after = checked(ResultStorage(vector_bytes, first, second), parsed(text))
    assert any("alloc" in line for line in lines_of(after)) is not is_moved
