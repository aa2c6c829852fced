"""What scalars read, and what a builder remembers as long as it is known."""

from __future__ import annotations

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Cast, Literal, Load, LoopVar
from intarsia.native.emission.builder import Builder, ModuleText
from intarsia.native.emission.reads import Reads, ScalarReads, reads_of

ROW = LoopVar("i")
PLACES = Buffer("places", (8,), DType.INT64)
X = Buffer("x", (8,), DType.FLOAT32)


def test_indices_are_read_and_not_computed_with() -> None:
    inner = Load(PLACES, (ROW,))
    outer = Load(X, (inner,))
    known: Reads = {}
    assert reads_of(outer, known) == ScalarReads((outer, inner), 4)
    assert reads_of(Arith(ArithOp.ADD, (outer, inner)), known) == ScalarReads((outer, inner, inner), 8)
    assert reads_of(Cast(outer, DType.FLOAT64), known).widest == 8
    assert reads_of(ROW, known) == reads_of(Literal(1.0, DType.FLOAT64), known) == ScalarReads()


def test_each_object_is_looked_at_once() -> None:
    load, known = Load(X, (ROW,)), Reads()
    assert reads_of(load, known) is reads_of(load, known)


def test_notes_end_with_the_code_that_does_not_always_run() -> None:
    builder = Builder(ModuleText())
    builder.note("outside", 1)
    with builder.conditional():
        assert builder.noted("outside") == 1
        builder.note("inside", 2)
        with builder.writing_into([]):
            builder.note("deeper", 3)
            assert builder.noted("inside") == 2
        assert builder.noted("deeper") is None
    assert builder.noted("inside") is None
    assert builder.noted("outside") == 1
