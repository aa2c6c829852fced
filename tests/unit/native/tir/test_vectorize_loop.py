from tests.each_case import each_case
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.native.tir import NOT_VECTORIZED, VectorizeLoop


def vectorized(text: str, lanes: int = 0) -> tuple[list[str], object]:
    after = checked(VectorizeLoop(lanes), parsed(text))
    return lines_of(after), after.attrs.get(NOT_VECTORIZED, ())


ROW_SUMS = """def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(8,), float32]) {
  for vectorized j in 8 {
    alloc t: Buffer[(), float32] {
      t[] = 0f32;
      for i in 4 { t[] = t[] + x[i, j]; }
      y[j] = t[] * 2f32;
    }
  }
}"""


def test_what_one_iteration_has_gets_a_dimension() -> None:
    assert vectorized(ROW_SUMS) == (
        [
            "alloc t: Buffer[(8,), float32] {",
            "  for vectorized j in 8 {",
            "    t[j] = 0.0f32;",
            "  }",
            "  for i in 4 {",
            "    for vectorized j in 8 {",
            "      t[j] = t[j] + x[i, j];",
            "    }",
            "  }",
            "  for vectorized j in 8 {",
            "    y[j] = t[j] * 2.0f32;",
            "  }",
            "}",
        ],
        (),
    )


STRAIGHT = """def prim @f(x: Buffer[(9,), float32], y: Buffer[(9,), float32]) {
  for vectorized j in 9 { alloc t: Buffer[(), float32] { t[] = exp(x[j]); y[j] = t[] * t[]; } }
}"""


def test_straight_loops_stay() -> None:
    mod = in_module(parsed(STRAIGHT))
    assert VectorizeLoop()(mod) is mod
    assert VectorizeLoop(3)(mod) is mod


def test_a_main_part_and_the_rest() -> None:
    assert vectorized(STRAIGHT, 4)[0] == [
        "for vectorized j in 8 {",
        "  alloc t: Buffer[(), float32] {",
        "    t[] = exp(x[j]);",
        "    y[j] = t[] * t[];",
        "  }",
        "}",
        "for vectorized j in 1 {",
        "  alloc t_1: Buffer[(), float32] {",
        "    t_1[] = exp(x[j + 8]);",
        "    y[j + 8] = t_1[] * t_1[];",
        "  }",
        "}",
    ]


GUARDED = """def prim @f(x: Buffer[(8,), float32], y: Buffer[(8,), float32]) {
  for i in 3 { for vectorized j in 8 {
    if i < 2 { y[j] = x[j]; } else { y[j] = y[j] * 2f32; }
    if 3 < j { y[j] = y[j] + 1f32; }
  } }
}"""


def test_a_guard_that_all_iterations_share_moves_out() -> None:
    assert vectorized(GUARDED) == (
        [
            "for i in 3 {",
            "  if i < 2 {",
            "    for vectorized j in 8 {",
            "      y[j] = x[j];",
            "    }",
            "  } else {",
            "    for vectorized j in 8 {",
            "      y[j] = y[j] * 2.0f32;",
            "    }",
            "  }",
            "  for j in 8 {",
            "    if 3 < j {",
            "      y[j] = y[j] + 1.0f32;",
            "    }",
            "  }",
            "}",
        ],
        ("j: a guard depends on it",),
    )


LEGAL = {
    "y[j] = y[j] + 1f32;": True,
    "y[j] = y[7 - j];": False,
    "y[j] = y[j + 8];": True,
    "y[j + 1] = y[j];": False,
    "y[0] = x[j];": False,
    "y[j * 2] = y[j * 2 + 1];": True,
    "y[j * 2] = y[j + 1];": False,
    "z[j floordiv 4, j mod 4] = z[j floordiv 4, j mod 4] * 2f32;": True,
    "z[0, j mod 4] = x[j];": False,
    "for k in 2 { y[j * 2 + k] = x[j]; }": True,
    "for k in 3 { y[j * 2 + k] = x[j]; }": False,
    "for k in 2 { z[k, j mod 4] = x[j]; }": False,
    "for k in 2 { y[k * 8 + j] = y[k * 8 + j] + x[j]; }": True,
    "y[n[j]] = x[j];": False,
    "y[j] = x[n[j]];": True,
    "if x[0] < 1f32 { y[j + 1] = x[j]; }": True,
    "if y[1] < 1f32 { y[j] = x[j]; }": False,
}


@each_case("body", LEGAL)
def test_iterations_must_not_meet(body: str) -> None:
    function = parsed(
        f"""def prim @f(
          n: Buffer[(8,), int64], x: Buffer[(8,), float32], y: Buffer[(17,), float32],
          z: Buffer[(2, 4), float32]
        ) {{ for vectorized j in 8 {{ {body} }} }}"""
    )
    after = checked(VectorizeLoop(), function)
    lines = "\n".join(lines_of(after))
    assert ("vectorized" in lines) == LEGAL[body]
    assert (NOT_VECTORIZED in after.attrs) != LEGAL[body]


def test_of_two_vectorised_loops_the_inner_one_stays() -> None:
    text = """def prim @f(y: Buffer[(4, 8), float32]) {
      for vectorized i in 4 { for vectorized j in 8 { y[i, j] = 1f32; } }
    }"""
    lines, reasons = vectorized(text)
    assert lines[:2] == ["for i in 4 {", "  for vectorized j in 8 {"]
    assert reasons == ("i: a vectorised loop is inside",)


def test_reasons_of_an_earlier_run_are_kept() -> None:
    text = """def prim @f(y: Buffer[(4, 8), float32]) attributes {not_vectorized=["k: it was so"]} {
      for vectorized i in 4 { y[0, 0] = 1f32; }
    }"""
    reasons = vectorized(text)[1]
    assert isinstance(reasons, tuple)
    assert reasons[0] == "k: it was so"
    assert reasons[1] == "i: an element of y that one iteration stores may be stored by another"
