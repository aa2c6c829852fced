"""Passes do not follow long blocks by recursion, and do not compare everything in them with everything."""

import sys

import pytest
from tests.tir_checks import in_module

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Statement,
    Store,
)
from intarsia.ir.verify import verify
from intarsia.native.tir import (
    LoopPartition,
    RegisterPromotion,
    Simplify,
    StorageRewrite,
    UnrollLoop,
    VectorizeLoop,
)
from intarsia.transform import Pass

LENGTH = 2 * sys.getrecursionlimit()
VAR, WIDTH = LoopVar("i"), 8


def long_function(kind: ForKind) -> PrimFunc:
    """A loop over many sums, each guarded, with a scratch buffer each."""
    x = Buffer("x", (LENGTH, WIDTH), DType.FLOAT32)
    inside = Arith(ArithOp.LT, (VAR, Literal(WIDTH - 1, DType.INT64)))
    statements: list[Statement] = []
    for number in range(LENGTH):
        place = (Literal(number, DType.INT64), VAR)
        scratch = Buffer(f"t{number}", (), DType.FLOAT32)
        add = Arith(ArithOp.ADD, (Load(x, place), Load(scratch, ())))
        both = (Store(scratch, (), Load(x, place)), Store(x, place, add))
        statements.append(IfThenElse(inside, Allocate(scratch, Block(both))))
    return PrimFunc((x,), For(VAR, WIDTH, Block(tuple(statements)), kind))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (Simplify(), ForKind.SERIAL),
        (LoopPartition(max_statements=9 * LENGTH), ForKind.SERIAL),
        (UnrollLoop(), ForKind.UNROLLED),
        (VectorizeLoop(), ForKind.VECTORIZED),
        (RegisterPromotion(), ForKind.SERIAL),
        (StorageRewrite(), ForKind.SERIAL),
    ],
    ids=repr,
)
def test_a_long_block(made: Pass, kind: ForKind) -> None:
    mod = in_module(long_function(kind))
    after = made(mod)
    verify(after)
    assert made(after) is after
