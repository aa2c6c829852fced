"""What scalars read, and what a builder remembers as long as it is known."""

from __future__ import annotations

from intarsia.ir import DType
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    Buffer,
    Cast,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Store,
)
from intarsia.native.emission.builder import Builder, ModuleText
from intarsia.native.emission.reads import Reads, ScalarReads, reads_of_statement

ROW = LoopVar("i")
PLACES = Buffer("places", (8,), DType.INT64)
X = Buffer("x", (8,), DType.FLOAT32)


def store(value: Scalar, *indices: Scalar) -> Store:
    """Return a store into a buffer of as many dimensions as there are indices."""
    return Store(Buffer("y", (8,) * len(indices), DType.FLOAT32), indices, value)


def test_indices_are_read_and_not_computed_with() -> None:
    inner = Load(PLACES, (ROW,))
    outer = Load(X, (inner,))
    values = (
        outer,
        Arith(ArithOp.ADD, (outer, inner)),
        Cast(outer, DType.FLOAT64),
        Literal(1.0, DType.FLOAT64),
    )
    statements = [store(value, ROW) for value in values]  # kept alive: the cache knows them by identity
    known: Reads = {}
    of_load, of_sum, of_cast, of_number = (reads_of_statement(statement, known) for statement in statements)
    assert of_load == ScalarReads((outer, inner), 4)
    assert of_sum == ScalarReads((outer, inner, inner), 8)
    assert of_cast.widest == 8
    assert of_number == ScalarReads()


def test_reads_stand_in_the_order_of_evaluation() -> None:
    first, second, last = (Load(PLACES, (Literal(number, DType.INT64),)) for number in range(3))
    assert reads_of_statement(store(last, first, ROW, second), {}).loads == (first, second, last)


def test_a_guard_reads_its_condition_and_not_what_it_guards() -> None:
    load = Load(X, (ROW,))
    cond = Arith(ArithOp.LT, (load, Literal(0.0, DType.FLOAT32)))
    assert reads_of_statement(IfThenElse(cond, store(Load(PLACES, (ROW,)), ROW)), {}).loads == (load,)


def test_each_object_is_looked_at_once() -> None:
    known, statement = Reads(), store(Load(X, (ROW,)), ROW)
    assert reads_of_statement(statement, known) is reads_of_statement(statement, known)


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
