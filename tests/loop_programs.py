"""Loop functions that tests are made of."""

from intarsia.ir import Attrs, DType, PrimFunc, Span
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)

F32, I64 = DType.FLOAT32, DType.INT64


def integer(value: int) -> Literal:
    return Literal(value, I64)


def arith(op: ArithOp, *operands: Scalar) -> Arith:
    return Arith(op, operands)


def scale() -> PrimFunc:
    """Twice x, one row a thread."""
    x, y = Buffer("x", (4, 8), F32), Buffer("y", (4, 8), F32)
    place = (LoopVar("i"), LoopVar("j"))
    store = Store(y, place, arith(ArithOp.MUL, Load(x, place), Literal(2.0, F32)))
    inner = For(LoopVar("j"), 8, store, ForKind.VECTORIZED)
    return PrimFunc((x, y), For(LoopVar("i"), 4, inner, ForKind.PARALLEL), Attrs({"threads": 2}))


def matmul(m: int = 3, n: int = 4, k: int = 5, dtype: DType = F32) -> PrimFunc:
    """The product of a and b, each element summed in a scalar of its own."""
    a, b, c = Buffer("a", (m, k), dtype), Buffer("b", (k, n), dtype), Buffer("c", (m, n), dtype)
    total = Buffer("total", (), dtype)
    i, j, p = LoopVar("i"), LoopVar("j"), LoopVar("p")
    product = arith(ArithOp.MUL, Load(a, (i, p)), Load(b, (p, j)))
    steps: tuple[Statement, ...] = (
        Store(total, (), Literal(0, dtype)),
        For(p, k, Store(total, (), arith(ArithOp.ADD, Load(total, ()), product))),
        Store(c, (i, j), Load(total, ())),
    )
    return PrimFunc((a, b, c), For(i, m, For(j, n, Allocate(total, Block(steps)))))


def every_statement() -> PrimFunc:
    """Every kind of statement and scalar, and every operator."""
    x, y, flags = (
        Buffer("x", (4, 8), F32),
        Buffer("for", (32,), DType.FLOAT16),
        Buffer("flags", (), DType.BOOL),
    )
    i, j, odd = LoopVar("i"), LoopVar("j"), LoopVar("float32")
    flat = arith(ArithOp.ADD, arith(ArithOp.MUL, i, integer(8)), j)
    row = arith(ArithOp.FLOOR_DIV, flat, integer(8))
    column = arith(ArithOp.FLOOR_MOD, arith(ArithOp.SUB, flat, arith(ArithOp.SUB, i, i)), integer(8))
    element = Load(x, (row, column))
    inside = arith(
        ArithOp.AND,
        arith(ArithOp.LE, i, j),
        arith(ArithOp.NOT, arith(ArithOp.OR, Load(flags, ()), arith(ArithOp.EQ, i, integer(3)))),
    )
    chosen = arith(
        ArithOp.SELECT,
        arith(ArithOp.LT, element, Literal(float("nan"), F32)),
        Intrinsic("fma", (element, element, Literal(-0.1, F32)), F32),
        arith(ArithOp.MIN, element, arith(ArithOp.MAX, element, Literal(float("-inf"), F32))),
    )
    ratio = arith(ArithOp.DIV, Intrinsic("exp", (chosen,), F32), Literal(3, F32))
    guarded = IfThenElse(inside, Store(y, (flat,), Cast(ratio, DType.FLOAT16)), Block(()))
    nothing = IfThenElse(Literal(True, DType.BOOL), Block((Block(()), Store(flags, (), Load(flags, ())))))
    loops = For(i, 4, For(j, 8, guarded, ForKind.UNROLLED), ForKind.PARALLEL)
    last = For(odd, 0, Store(flags, (), arith(ArithOp.EQ, Literal(7, DType.UINT8), Cast(odd, DType.UINT8))))
    body = Block(
        (
            Allocate(
                flags,
                Block((Store(flags, (), arith(ArithOp.NE, integer(-3), integer(-3))), loops, nothing, last)),
            ),
        )
    )
    return PrimFunc((x, y), body, Attrs({"note": 'a "b"', "threads": 2}), Span("model.onnx", "Mul_0", "Mul"))
