import pytest
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.native.tir import RegisterPromotion

WIDE = RegisterPromotion(vector_bytes=32, registers=16, kept_free=3)

TILE = """def prim @f(
  a: Buffer[(12, 9), float32], b: Buffer[(9, 32), float32], c: Buffer[(12, 32), float32]
) {
  for io in 2 { for jo in 2 { for k in 9 { for unrolled i in 6 { for vectorized j in 16 {
    c[io * 6 + i, jo * 16 + j] = c[io * 6 + i, jo * 16 + j] + a[io * 6 + i, k] * b[k, jo * 16 + j];
  } } } } }
}"""


def promoted(text: str, made: RegisterPromotion = WIDE) -> list[str]:
    after = checked(made, parsed(text))
    return [line.strip()[6:-2] for line in lines_of(after) if "alloc" in line]


def test_a_tile_of_a_matrix_product() -> None:
    assert promoted(TILE) == ["c_tile: Buffer[(6, 16), float32, register]"]
    assert lines_of(checked(WIDE, parsed(TILE)))[3:8] == [
        "      for unrolled i in 6 {",
        "        for vectorized j in 16 {",
        "          c_tile[i, j] = c[io * 6 + i, jo * 16 + j];",
        "        }",
        "      }",
    ]


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        (RegisterPromotion(32, 15, 3), True),
        (RegisterPromotion(32, 14, 3), False),
        (RegisterPromotion(64, 9, 3), True),
        (RegisterPromotion(16, 26, 3), False),
    ],
)
def test_only_what_fits(made: RegisterPromotion, fits: bool) -> None:
    assert bool(promoted(TILE, made)) == fits


STAY = {
    "for k in 9 { for j in 4 { y[j] = y[j] + x[k]; } }": "a serial loop inside",
    "for k in 9 { if k < 5 { y[0] = y[0] + x[k]; } }": "a guard",
    "for k in 9 { y[k] = y[k] + x[k]; }": "another element each time",
    "for k in 9 { for unrolled j in 4 { y[0] = y[j] + x[k]; } }": "tiles that overlap",
    "for k in 9 { for unrolled j in 4 { y[j] = y[j + 1] + x[k]; } }": "tiles that overlap",
    "for k in 9 { for unrolled i in 2 { for unrolled j in 3 { y[i + j] = y[i + j] + x[k]; } } }": "one place",
    "for k in 9 { y[n[0]] = y[n[0]] + x[k]; }": "a place that is loaded",
    "for k in 9 { for parallel j in 4 { y[j] = y[j] + x[k]; } }": "threads",
    "for vectorized k in 9 { y[0] = y[0] + x[k]; }": "a loop that is not serial",
}


@pytest.mark.parametrize("body", STAY)
def test_what_stays_in_memory(body: str) -> None:
    text = "def prim @f(n: Buffer[(4,), int64], x: Buffer[(9,), float32], y: Buffer[(9,), float32]) { %s }"
    assert promoted(text % body) == []


def test_elements_that_differ_have_a_register_each() -> None:
    text = """def prim @f(x: Buffer[(9,), float32], y: Buffer[(3, 4), float32]) {
      for r in 3 { for k in 9 {
        y[r, 0] = y[r, 0] + x[k];
        y[r, 1] = max(y[r, 1], x[k]);
        y[r, 2] = y[r, 3];
      } }
    }"""
    assert promoted(text) == [f"y_tile{n}: Buffer[(), float32, register]" for n in ("", "_1", "_2")]
    assert "y[r, 2] = y_tile_2[];" in "\n".join(lines_of(checked(WIDE, parsed(text))))


def test_the_outermost_loop_that_keeps_returning_counts() -> None:
    text = """def prim @f(x: Buffer[(9, 5), float32], y: Buffer[(2,), float32]) {
      for i in 2 { for k in 9 { for l in 5 { y[i] = y[i] + x[k, l]; } } }
    }"""
    assert lines_of(checked(WIDE, parsed(text)))[1:4] == [
        "  alloc y_tile: Buffer[(), float32, register] {",
        "    y_tile[] = y[i];",
        "    for k in 9 {",
    ]


def test_small_buffers() -> None:
    text = """def prim @f(x: Buffer[(8,), float32], y: Buffer[(8,), float32]) {
      alloc t: Buffer[(8,), float32] {
        alloc u: Buffer[(4,), float32] {
          alloc v: Buffer[(8,), float32] {
            for vectorized i in 8 { t[i] = x[i]; v[i] = x[i]; }
            for unrolled i in 4 { u[i] = x[i + 4]; }
            for vectorized i in 8 { y[i] = t[i] + v[7 - i]; }
            for i in 4 { y[i] = y[i] + u[i]; }
          }
        }
      }
    }"""
    assert promoted(text) == [
        "t: Buffer[(8,), float32, register]",
        "u: Buffer[(4,), float32]",
        "v: Buffer[(8,), float32, register]",
    ]


def test_what_threads_share_is_no_register() -> None:
    text = """def prim @f(y: Buffer[(8,), float32]) {
      alloc t: Buffer[(), float32] { t[] = 1f32; for parallel i in 8 { y[i] = t[]; } }
    }"""
    mod = in_module(parsed(text))
    assert WIDE(mod) is mod


def test_statements_around_the_loop_take_part() -> None:
    text = """def prim @f(x: Buffer[(9, 8), float32], b: Buffer[(8,), float32], y: Buffer[(2, 8), float32]) {
      for i in 2 {
        y[i, 3] = 7f32;
        for vectorized j in 8 { y[i, j] = 0f32; }
        for k in 9 { for vectorized j in 8 { y[i, j] = y[i, j] + x[k, j]; } }
        for vectorized l in 8 { y[i, l] = max(y[i, l] + b[l], 0f32); }
        y[i, 0] = y[i, 0] * 2f32;
      }
    }"""
    assert lines_of(checked(WIDE, parsed(text))) == [
        "for i in 2 {",
        "  y[i, 3] = 7.0f32;",
        "  alloc y_tile: Buffer[(8,), float32, register] {",
        "    for vectorized j in 8 {",
        "      y_tile[j] = 0.0f32;",
        "    }",
        "    for k in 9 {",
        "      for vectorized j in 8 {",
        "        y_tile[j] = y_tile[j] + x[k, j];",
        "      }",
        "    }",
        "    for vectorized l in 8 {",
        "      y_tile[l] = max(y_tile[l] + b[l], 0.0f32);",
        "    }",
        "    for vectorized j in 8 {",
        "      y[i, j] = y_tile[j];",
        "    }",
        "  }",
        "  y[i, 0] = y[i, 0] * 2.0f32;",
        "}",
    ]


def test_a_guarded_statement_ends_the_stay() -> None:
    text = """def prim @f(x: Buffer[(9,), float32], y: Buffer[(2,), float32]) {
      for i in 2 {
        if x[i] < 3f32 { y[i] = 1f32; }
        for k in 9 { y[i] = y[i] + x[k]; }
        x[0] = 1f32;
        for k in 9 { y[i] = y[i] * x[k]; }
      }
    }"""
    lines = lines_of(checked(WIDE, parsed(text)))
    assert lines[4:6] == ["  alloc y_tile: Buffer[(), float32, register] {", "    y_tile[] = y[i];"]
    assert sum("y[i]" in line for line in lines) == 3


def test_rows_of_registers_are_whole_vectors() -> None:
    """The last vector of a row then touches no other row."""
    text = """def prim @f(x: Buffer[(9, 2, 5), float32], y: Buffer[(2, 5), float32]) {
      for k in 9 { for unrolled i in 2 { for vectorized j in 5 { y[i, j] = y[i, j] + x[k, i, j]; } } }
    }"""
    after = checked(RegisterPromotion(16, 8), parsed(text))
    assert lines_of(after)[0] == "alloc y_tile: Buffer[(2, 8), float32, register] {"
