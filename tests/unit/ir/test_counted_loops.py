"""Loops whose number of iterations is known at run time only: text, rules and meaning."""

from __future__ import annotations

import numpy as np
import pytest
from tests.loop_evaluator import run_prim_func
from tests.loop_programs import F32, I64, arith, integer

from intarsia.ir import GlobalVar, IRModule, PrimFunc, structural_digest, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.prim_func import ArithOp, Buffer, For, ForKind, Load, LoopVar, Scalar, Store
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.machine.isa import Isa
from intarsia.native.tir import default_tir
from intarsia.native.tir.interpret import interpret
from intarsia.support.errors import VerifyError

MOST = 40
COUNT, X, Y = Buffer("count", (), I64), Buffer("x", (MOST, 5), F32), Buffer("y", (MOST, 5), F32)
ROW, COLUMN = LoopVar("i"), LoopVar("j")


def doubled(
    count: Scalar | None, kind: ForKind = ForKind.SERIAL, inner: ForKind = ForKind.VECTORIZED
) -> PrimFunc:
    value = arith(ArithOp.ADD, Load(X, (ROW, COLUMN)), Load(X, (ROW, COLUMN)))
    return PrimFunc(
        (COUNT, X, Y), For(ROW, MOST, For(COLUMN, 5, Store(Y, (ROW, COLUMN), value), inner), kind, count)
    )


def half() -> Scalar:
    return arith(ArithOp.FLOOR_DIV, arith(ArithOp.ADD, Load(COUNT, ()), integer(1)), integer(2))


def module(function: PrimFunc) -> IRModule:
    return IRModule({GlobalVar("f"): function})


def test_text_is_read_back() -> None:
    written = print_module(module(doubled(half(), ForKind.PARALLEL))).text
    assert "for parallel i in 40 count (count[] + 1) floordiv 2 {" in written
    assert structural_equal(parse_module(written), module(doubled(half(), ForKind.PARALLEL)))


def test_count_is_compared() -> None:
    functions = (doubled(None), doubled(half()), doubled(Load(COUNT, ())))
    assert len({structural_digest(module(function)) for function in functions}) == 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (doubled(Load(X, (integer(0), integer(0)))), "the count is float32; expected int64"),
        (doubled(Load(Buffer("other", (), I64), ())), "unknown buffer other"),
        (
            doubled(half(), ForKind.UNROLLED),
            "a loop with a count is unrolled; expected serial, parallel or block",
        ),
        (doubled(ROW), "unbound loop variable i"),
    ],
)
def test_rules(function: PrimFunc, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify(module(function))


@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 39, 79])
def test_machine_code_and_interpreters_agree(kind: ForKind, count: int) -> None:
    function, isa = doubled(half(), kind), Isa.host()
    passed = default_tir(isa.vector_bytes, isa.vector_registers)(module(function)).prim_func("f")
    x = np.arange(MOST * 5, dtype=np.float32).reshape(MOST, 5)
    number, expected = np.array(count, np.int64), np.full_like(x, -1)
    expected[: (count + 1) // 2] = 2 * x[: (count + 1) // 2]
    results = [np.full_like(x, -1) for _ in range(4)]
    interpret(function, (number, x, results[0]))
    interpret(passed, (number, x, results[1]))
    run_prim_func(function, {"count": number, "x": x, "y": results[2]})
    with ThreadPool(2) as pool:
        compile_kernel(passed, isa).load()(number, x, results[3], pool=pool)
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_a_loop_that_may_be_empty_keeps_its_single_iteration() -> None:
    function = PrimFunc(
        (COUNT, X, Y), For(ROW, 1, Store(Y, (ROW, ROW), Load(X, (ROW, ROW))), ForKind.SERIAL, half())
    )
    passed = default_tir()(module(function)).prim_func("f")
    y = np.zeros((MOST, 5), np.float32)
    interpret(passed, (np.array(0, np.int64), np.ones_like(y), y))
    assert not y.any()
