from collections.abc import Callable

import pytest
from tests.ir_programs import relu, var
from tests.loop_programs import every_statement, matmul, scale

from intarsia.ir import DType, Function, GlobalVar, IRModule, PrimFunc, structural_equal
from intarsia.ir.parser import parse_module
from intarsia.ir.prim_func import (
    DEEPEST,
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.printer import print_module
from intarsia.ir.verify import verify
from intarsia.support.errors import VerifyError

Check = Callable[[str, str], None]


def test_loop_functions_beside_a_graph_function(check_golden: Check) -> None:
    x = var()
    functions: dict[GlobalVar, Function | PrimFunc] = {
        GlobalVar("main"): Function((x,), relu(x)),
        GlobalVar("scale"): scale(),
        GlobalVar("matrix product"): matmul(),
        GlobalVar("every"): every_statement(),
        GlobalVar("nothing"): PrimFunc((), Block(())),
    }
    mod = IRModule(functions)
    verify(mod)
    text = print_module(mod).text
    check_golden("loop_functions.txt", text)
    again = parse_module(text)
    assert structural_equal(mod, again)
    assert [type(function) for function in again.functions.values()] == [Function, *[PrimFunc] * 4]
    assert again.prim_func("every").span == every_statement().span
    assert "@span" not in print_module(mod, show_spans=False).text.partition("@every")[2]


F32, BOOL, I64 = DType.FLOAT32, DType.BOOL, DType.INT64
X, Z = Buffer("x", (4, 8), F32), Buffer("z", (), F32)
ROW, ONE, TRUE = LoopVar("i"), Literal(1.0, F32), Literal(True, BOOL)
PLACE: tuple[Scalar, ...] = (ROW, Literal(0, I64))


def wrong_scalars() -> PrimFunc:
    """A loop function that breaks every rule of scalars."""
    statements: tuple[Statement, ...] = (
        Store(X, PLACE, Arith(ArithOp.ADD, (ONE, Literal(1, I64)))),
        Store(X, PLACE, Arith(ArithOp.ADD, (ONE, ONE, ONE))),
        Store(X, PLACE, Arith(ArithOp.ADD, (TRUE, TRUE))),
        Store(X, PLACE, Literal(0.5, DType.FLOAT64)),
        Store(X, (ROW,), ONE),
        Store(X, (ROW, ONE), ONE),
        Store(X, (LoopVar("k"), Literal(0, I64)), Load(Buffer("y", (), F32), ())),
        Store(Buffer("x", (4,), F32), (ROW,), ONE),
        Store(X, PLACE, Arith(ArithOp.SELECT, (ONE, ONE, ONE))),
        Store(X, PLACE, Arith(ArithOp.FLOOR_DIV, (ONE, ONE))),
        Store(X, PLACE, Arith(ArithOp.NOT, (ONE,))),
        Store(X, PLACE, Intrinsic("gamma", (ONE,), F32)),
        Store(X, PLACE, Intrinsic("exp", (ONE,), DType.FLOAT16)),
        Store(X, PLACE, Cast(Cast(ONE, DType.FLOAT8_E5M2), F32)),
        Store(X, PLACE, Cast(Literal(300, DType.INT8), F32)),
    )
    return PrimFunc((X,), For(ROW, 4, Block(statements)))


def wrong_statements() -> PrimFunc:
    """A loop function that breaks every rule of statements, and nests too deep."""
    scalar: Scalar = ONE
    for _ in range(DEEPEST):
        scalar = Intrinsic("abs", (scalar,), F32)
    statement: Statement = Store(X, (Literal(0, I64),) * 2, scalar)
    for _ in range(DEEPEST):
        statement = IfThenElse(TRUE, statement)
    loop = For(ROW, 4, For(ROW, -1, Allocate(X, Store(Z, (), Load(Z, ())))))
    params = (X, X, Buffer("s", (), DType.STRING), Buffer("negative", (2, -1), F32))
    return PrimFunc(params, Block((loop, IfThenElse(ONE, Block(()), statement), Store(Z, (), ONE))))


@pytest.mark.parametrize("wrong", [wrong_scalars, wrong_statements])
def test_complaints_about_a_loop_function(wrong: Callable[[], PrimFunc], check_golden: Check) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(IRModule({GlobalVar("f"): wrong()}))
    check_golden(f"loop_complaints_{wrong.__name__}.txt", f"{caught.value}\n")
