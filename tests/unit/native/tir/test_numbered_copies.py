"""Copies with numbers in place of counters are those of a plain replacement, and few."""

from __future__ import annotations

from itertools import product

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, Literal, Load, LoopVar, Scalar
from intarsia.native.tir.numbered_copies import NumberedCopies
from intarsia.native.tir.rewriting import Replacement

ROW, J, K = LoopVar("i"), LoopVar("j"), LoopVar("k")
X, T, U = (Buffer(name, (64, 64), DType.FLOAT32) for name in "xtu")


def number(value: int) -> Literal:
    return Literal(value, DType.INT64)


def scalar() -> Arith:
    """The product x[i * 8 + k, 3] * t[j, k]."""
    row = Arith(ArithOp.ADD, (Arith(ArithOp.MUL, (ROW, number(8))), K))
    return Arith(ArithOp.MUL, (Load(X, (row, number(3))), Load(T, (J, K))))


def test_copies_are_those_of_a_replacement() -> None:
    root, copies = scalar(), NumberedCopies()
    for i, j in product(range(3), range(2)):
        copies.number(ROW, i)
        copies.number(J, j)
        assert copies.scalar(root) == Replacement({ROW: number(i), J: number(j)}).scalar(root)


def test_what_depends_on_the_same_numbers_is_one_object() -> None:
    root, copies = scalar(), NumberedCopies()
    found: list[Scalar] = []
    for i, j in product(range(3), range(2)):
        copies.number(ROW, i)
        copies.number(J, j)
        found.append(copies.scalar(root))
    assert len({id(each) for each in found}) == 6
    for place, count in ((0, 3), (1, 2)):
        assert len({id(each.operands[place]) for each in found if isinstance(each, Arith)}) == count


def test_what_has_no_such_counter_stays_the_same_object() -> None:
    root, copies = Load(X, (K, number(1))), NumberedCopies()
    copies.number(ROW, 1)
    assert copies.scalar(root) is root
    assert copies.scalar(K) is K
    copies.number(K, 2)
    assert copies.scalar(root) == Load(X, (number(2), number(1)))
    copies.number(K, None)
    assert copies.scalar(root) is root
    assert copies.scalar(K) is K


def test_another_buffer_stands_for_one_only_while_it_is_said_so() -> None:
    root, copies = scalar(), NumberedCopies()
    copies.number(J, 1)
    before = copies.scalar(root)
    renamed = copies.with_buffer(T, U).scalar(root)
    assert renamed == Replacement({J: number(1)}, {T: lambda indices: (U, indices)}).scalar(root)
    assert copies.scalar(root) is before
