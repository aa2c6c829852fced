import sys

import pytest
from tests.each_case import each_case
from tests.tir_checks import checked, in_module, lines_of, parsed

from intarsia.ir import DType, PrimFunc
from intarsia.ir.loop_printer import scalar_text
from intarsia.ir.prim_func import Block, Buffer, For, IfThenElse, Literal, LoopVar, Scalar, Store
from intarsia.native.tir import Simplify

AROUND = """def prim @f(x: Buffer[(9,), float32], n: Buffer[(9,), int32], y: Buffer[(), {type}]) {{
  for i in 4 {{ for j in 8 {{ for k in 1 {{ for f in 100 {{ y[] = {scalar}; }} }} }} }}
}}"""


def simplified(scalar: str, dtype: str) -> str:
    function = checked(Simplify(), parsed(AROUND.format(type=dtype, scalar=scalar)))
    statement = function.body
    while isinstance(statement, For):
        statement = statement.body
    assert isinstance(statement, Store)
    return scalar_text(statement.value)


@each_case(
    ("scalar", "expected"),
    [
        ("2 * 3 + i - 6", "i"),
        ("(i * 8 + j) floordiv 8", "i"),
        ("(i * 8 + j) mod 8", "j"),
        ("(i * 8 + j) floordiv 4", "i * 2 + j floordiv 4"),
        ("(i * 16 + j) floordiv 32", "i floordiv 2"),
        ("(i * 16 + j) mod 32", "i mod 2 * 16 + j"),
        ("(j + 8) mod 8 + k", "j"),
        ("(i - 4) floordiv 4", "-1"),
        ("j + i - j * 2", "i - j"),
        ("3 - j", "3 - j"),
        ("0 - j", "j * -1"),
        ("(f floordiv 10) floordiv 5", "f floordiv 50"),
        ("f mod 20 mod 10", "f mod 10"),
        ("f floordiv 10 * 10 + f mod 10", "f"),
        ("f floordiv 10 * 30 + f mod 10 * 3 + j", "j + f * 3"),
        ("(f floordiv 10 * 10 + f mod 10) * i", "f * i"),
        ("min(j, 7)", "j"),
        ("max(i - 3, 0)", "0"),
        ("max(j, 1)", "max(j, 1)"),
        ("select(j < 8, i, j)", "i"),
        ("9223372036854775807 + i - 9223372036854775807", "i"),
        ("(i * 4611686018427387904) floordiv 2", "i * 4611686018427387904 floordiv 2"),
    ],
)
def test_indices(scalar: str, expected: str) -> None:
    assert simplified(scalar, "int64") == expected


@each_case(
    ("scalar", "expected"),
    [
        ("x[0] * 1f32", "x[0]"),
        ("1f32 * x[i]", "x[i]"),
        ("x[0] / 1f32", "x[0]"),
        ("x[0] / 4f32", "x[0] * 0.25f32"),
        ("x[0] / 3f32", "x[0] / 3.0f32"),
        ("x[0] - 0f32", "x[0]"),
        ("x[0] + -0f32", "x[0]"),
        ("x[0] + 0f32", "x[0] + 0.0f32"),
        ("x[0] - -0f32", "x[0] - -0.0f32"),
        ("x[0] * 0f32", "x[0] * 0.0f32"),
        ("x[0] - x[0]", "x[0] - x[0]"),
        ("max(x[0], x[0])", "x[0]"),
        ("0.1f32 + 0.2f32", "0.3f32"),
        ("0f32 / 0f32", "nan_f32"),
        ("sqrt(4f32) + x[k]", "2.0f32 + x[0]"),
        ("float32(float64(x[0]))", "x[0]"),
        ("float32(float16(x[0]))", "float32(float16(x[0]))"),
        ("float32(x[0])", "x[0]"),
        ("select(x[0] == x[0], x[1], x[1])", "x[1]"),
    ],
)
def test_floats_stay_the_same_bit_for_bit(scalar: str, expected: str) -> None:
    assert simplified(scalar, "float32") == expected


@each_case(
    ("scalar", "expected"),
    [
        ("i * 8 + j < 32", "true"),
        ("i * 8 + j < 24", "i < 3"),
        ("i * 8 + j < 25", "i * 8 + j < 25"),
        ("0 <= i", "true"),
        ("0 <= i - 1", "0 < i"),
        ("i + 2 < j + 3", "i < j + 1"),
        ("j == 9", "false"),
        ("i * 2 == 5", "false"),
        ("i * 2 != 4", "i != 2"),
        ("not i < 2", "1 < i"),
        ("not x[0] < x[1]", "not x[0] < x[1]"),
        ("i < 4 and x[0] < 1f32", "x[0] < 1.0f32"),
        ("i < 4 or x[0] < 1f32", "true"),
        ("x[0] == x[0]", "x[0] == x[0]"),
        ("n[0] + 1i32 < n[0]", "n[0] + 1i32 < n[0]"),
        ("not (not x[0] < 1f32)", "x[0] < 1.0f32"),
    ],
)
def test_conditions(scalar: str, expected: str) -> None:
    assert simplified(scalar, "bool") == expected


@pytest.mark.parametrize("scalar", ["1i32 floordiv 0i32", "shift_left(1i32, 32i32)"])
def test_what_is_undefined_stays(scalar: str) -> None:
    text = f"def prim @f(y: Buffer[(), int32]) {{ for i in 0 {{ }} y[] = {scalar}; }}"
    mod = in_module(parsed(text))
    assert scalar in str(Simplify()(mod))


def test_statements_that_do_nothing_go() -> None:
    function = checked(
        Simplify(),
        parsed(
            """def prim @f(x: Buffer[(4,), float32], y: Buffer[(4,), float32]) {
              for i in 0 { y[i] = x[i]; }
              for i in 4 { if i < 9 { } }
              for i in 4 { y[i] = y[i]; }
              if x[0] < 1f32 { } else { y[0] = 2f32; }
              alloc t: Buffer[(4,), float32] {
                for i in 4 { t[i] = x[i]; }
                alloc u: Buffer[(), float32] { u[] = t[0]; y[1] = 3f32; }
              }
            }"""
        ),
    )
    assert lines_of(function) == ["if not x[0] < 1.0f32 {", "  y[0] = 2.0f32;", "}", "y[1] = 3.0f32;"]


def test_a_guard_says_something_about_what_it_guards() -> None:
    function = checked(
        Simplify(),
        parsed(
            """def prim @f(y: Buffer[(8,), float32]) {
              for i in 8 {
                if i < 4 {
                  if i < 6 { y[i] = 1f32; }
                } else {
                  if 3 < i and i == 5 { y[i floordiv 8] = 2f32; }
                }
              }
            }"""
        ),
    )
    assert lines_of(function) == [
        "for i in 8 {",
        "  if i < 4 {",
        "    y[i] = 1.0f32;",
        "  } else {",
        "    if i == 5 {",
        "      y[0] = 2.0f32;",
        "    }",
        "  }",
        "}",
    ]


def test_a_guard_that_a_store_may_change_is_asked_again() -> None:
    text = """def prim @f(y: Buffer[(2,), float32]) {
      if y[0] < 9f32 { y[0] = 10f32; if y[0] < 9f32 { y[1] = 1f32; } }
    }"""
    checked(Simplify(), parsed(text))
    assert str(Simplify()(in_module(parsed(text)))).count("if") == 2


def test_long_blocks() -> None:
    x = Buffer("x", (9,), DType.FLOAT32)
    var: Scalar = LoopVar("i")
    stores = tuple(
        IfThenElse(Literal(True, DType.BOOL), Store(x, (var,), Literal(n, DType.FLOAT32)))
        for n in range(2 * sys.getrecursionlimit())
    )
    mod = in_module(PrimFunc((x,), For(LoopVar("i"), 9, Block(stores))))
    after = Simplify()(mod).prim_func("f").body
    assert isinstance(after, For)
    assert isinstance(after.body, Block)
    assert len(after.body.statements) == len(stores)
    assert all(isinstance(one, Store) for one in after.body.statements)
