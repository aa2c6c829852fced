import sys

import pytest
from tests.each_case import each_case
from tests.loop_programs import F32, I64, arith, integer, scale

from intarsia.ir import GlobalVar, IRModule, PrimFunc, structural_digest, structural_equal
from intarsia.ir.loop_printer import scalar_text
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.parser import parse_module
from intarsia.ir.prim_func import (
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Store,
)
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.support.errors import VerifyError

A, B, C = LoopVar("a"), LoopVar("b"), LoopVar("c")
ADD, SUB, MUL, LE, EQ = ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.LE, ArithOp.EQ


@each_case(
    ("scalar", "text"),
    [
        (arith(ADD, arith(ADD, A, B), C), "a + b + c"),
        (arith(ADD, A, arith(ADD, B, C)), "a + (b + c)"),
        (arith(SUB, A, arith(MUL, B, C)), "a - b * c"),
        (arith(MUL, arith(SUB, A, B), C), "(a - b) * c"),
        (arith(ArithOp.FLOOR_MOD, A, arith(ArithOp.FLOOR_DIV, B, C)), "a mod (b floordiv c)"),
        (arith(LE, arith(ADD, A, B), C), "a + b <= c"),
        (arith(EQ, arith(LE, A, B), arith(LE, B, C)), "(a <= b) == (b <= c)"),
        (arith(ArithOp.NOT, arith(LE, A, B)), "not a <= b"),
        (arith(EQ, arith(ArithOp.NOT, arith(LE, A, B)), arith(LE, A, B)), "(not a <= b) == (a <= b)"),
        (
            arith(ArithOp.OR, arith(ArithOp.AND, arith(LE, A, B), arith(LE, B, C)), arith(LE, A, C)),
            "a <= b and b <= c or a <= c",
        ),
        (
            arith(ArithOp.AND, arith(ArithOp.OR, arith(LE, A, B), arith(LE, B, C)), arith(LE, A, C)),
            "(a <= b or b <= c) and a <= c",
        ),
        (arith(ArithOp.SELECT, arith(LE, A, B), A, arith(ADD, B, C)), "select(a <= b, a, b + c)"),
        (arith(SUB, A, integer(-1)), "a - -1"),
    ],
)
def test_scalars_have_the_parentheses_that_they_need(scalar: Scalar, text: str) -> None:
    assert scalar_text(scalar) == text
    buffer = Buffer("y", (9, 9, 9), I64)
    is_bool = text.partition("select")[1] == "" and "<=" in text
    value = arith(ArithOp.SELECT, scalar, A, B) if is_bool else scalar
    body = For(A, 2, For(B, 2, For(C, 2, Store(buffer, (A, B, C), value))))
    mod = IRModule({GlobalVar("f"): PrimFunc((buffer,), body)})
    verify(mod)
    assert parse_module(print_module(mod).text).prim_func("f") == mod.prim_func("f")


def test_text_by_hand() -> None:
    text = """
        // Everything that can be left out is, and the rest is spaced at will.
        def prim @scale ( x : Buffer [(4,8),float32], y: Buffer[(4, 8,), float32], )
            attributes {threads=2} {
          for parallel i in 4 { /* the rows */ for vectorized j in 8{y[i,j]=((x[i , j])) * 2f32;} }
        }"""
    mod = parse_module(text.replace(", )", ")"))
    assert mod.prim_func("scale") == scale()


def test_a_minus_is_an_operator_after_an_operand_and_a_sign_before_one() -> None:
    text = "def prim @f(y: Buffer[(), int64]) { for i in 2 { y[] = i -1 - -2-3; } }"
    mod = parse_module(text)
    stored = arith(SUB, arith(SUB, arith(SUB, LoopVar("i"), integer(1)), integer(-2)), integer(3))
    loop = mod.prim_func("f").body
    assert isinstance(loop, For)
    assert isinstance(loop.body, Store)
    assert loop.body.value == stored


def test_a_call_of_a_loop_function_is_read() -> None:
    mod = parse_module("def @main(%x) { @f(%x) }\ndef prim @f() { }")
    assert mod.global_var("f").checked_type is None
    assert structural_equal(mod, parse_module(print_module(mod).text))
    verify(mod)


SCOPED = "def prim @f(x: Buffer[(4,), float32]) { alloc t: Buffer[(4,), float32%s] { t[0] = x[0]; } }"


@pytest.mark.parametrize("scope", ["thread", "register"])
def test_scopes_are_printed_read_and_count(scope: str) -> None:
    mod, plain = parse_module(SCOPED % f", {scope}"), parse_module(SCOPED % "")
    verify(mod)
    assert f"alloc t: Buffer[(4,), float32, {scope}] {{" in print_module(mod).text
    assert parse_module(print_module(mod).text).prim_func("f") == mod.prim_func("f")
    assert not structural_equal(mod, plain)
    assert structural_equal(plain, parse_module(SCOPED % ", global"))


def test_functions_without_scopes_keep_their_digests() -> None:
    assert structural_digest(scale()).startswith("20a2d71593a3de0f")


def test_parameters_are_in_memory() -> None:
    x = Buffer("x", (4,), F32, MemoryScope.THREAD)
    with pytest.raises(VerifyError, match="the parameter x is in the scope thread; expected global"):
        verify(IRModule({GlobalVar("f"): PrimFunc((x,), Block(()))}))


def long_function(length: int) -> PrimFunc:
    x = Buffer("x", (length,), F32)
    stores = tuple(Store(x, (integer(n),), Literal(n, F32)) for n in range(length))
    return PrimFunc((x,), For(LoopVar("i"), 2, Block(stores), ForKind.UNROLLED))


@pytest.mark.slow
def test_long_blocks_are_no_deep_ones() -> None:
    length = 5 * sys.getrecursionlimit()
    mod = IRModule({GlobalVar("f"): long_function(length)})
    verify(mod)
    again = parse_module(print_module(mod).text)
    assert again.prim_func("f") == mod.prim_func("f")
    assert structural_equal(mod, again)


def test_scalars_too_deep_for_the_language_can_be_printed_and_read() -> None:
    x = Buffer("x", (), F32)
    scalar: Scalar = Load(x, ())
    for _ in range(2 * sys.getrecursionlimit()):
        scalar = arith(ADD, Literal(1, F32), scalar)
    mod = IRModule({GlobalVar("f"): PrimFunc((x,), Store(x, (), scalar))})
    text = print_module(mod).text
    assert structural_equal(mod, parse_module(text))
    assert print_module(parse_module(text)).text == text


def test_a_walk_tells_equal_statements_apart() -> None:
    x = Buffer("x", (), F32)
    store = Store(x, (), Literal(1, F32))
    visits = list(walk(Block((store, For(LoopVar("i"), 2, Block((store, store)))))))
    assert [(visit.event, visit.number, visit.depth) for visit in visits] == [
        (Event.ENTER, 0, 0),
        (Event.ENTER, 1, 0),
        (Event.ENTER, 2, 1),
        (Event.ENTER, 3, 1),
        (Event.LEAVE, 1, 0),
    ]
