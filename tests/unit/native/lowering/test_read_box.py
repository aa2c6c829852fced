"""Regions, checked by counting through all iterations."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, LoopVar, Scalar
from intarsia.native.lowering.read_box import Interval, Read, read_box
from intarsia.native.tir.affine import Affine, Range, affine, as_scalar

OUTER, INNER, DEEPER = LoopVar("outer"), LoopVar("inner"), LoopVar("deeper")
FACTORS = st.integers(-4, 4)
FIXED: dict[LoopVar, Range] = {OUTER: (0, 3)}
RANGES: dict[LoopVar, Range] = {**FIXED, INNER: (0, 4), DEEPER: (0, 2)}
LARGE = 1000


def value(form: Affine, counters: dict[LoopVar, int]) -> int:
    total = form.constant
    for scalar, factor in form.terms.items():
        match scalar:
            case LoopVar():
                total += factor * counters[scalar]
            case Arith(op=ArithOp.FLOOR_DIV, operands=(number, Literal(value=int(by)))):
                inner = counters[number] if isinstance(number, LoopVar) else value(form_of(number), counters)
                total += factor * (inner // by)
            case _:
                raise AssertionError(scalar)
    return total


def form_of(scalar: Scalar) -> Affine:
    return affine(scalar)


def terms(outer: int, inner: int, deeper: int, constant: int) -> Affine:
    found = {OUTER: outer, INNER: inner, DEEPER: deeper}
    return Affine({var: factor for var, factor in found.items() if factor}, constant)


def read_at(index: Affine, outer: int) -> list[int]:
    counts = product(range(5), range(3))
    return [value(index, {OUTER: outer, INNER: inner, DEEPER: deeper}) for inner, deeper in counts]


@given(FACTORS, FACTORS, FACTORS, st.integers(-20, 20))
def test_one_read_by_a_sum_of_loops_is_exact(outer: int, inner: int, deeper: int, constant: int) -> None:
    index = terms(outer, inner, deeper, constant)
    (found,) = read_box([Read((index,), RANGES)], FIXED, (LARGE,))
    for count in range(4):
        places = read_at(index, count)
        begin = value(found.begin, {OUTER: count})
        if outer:
            assert (begin, begin + found.extent - 1) == (min(places), max(places))
        else:  # it does not move, and is clipped
            inside = [place for place in places if 0 <= place < LARGE]
            assert found.extent >= (max(inside) - min(inside) + 1 if inside else 0)
            assert all(begin <= place < begin + found.extent for place in inside)


@given(st.tuples(FACTORS, FACTORS, FACTORS, FACTORS), st.tuples(FACTORS, FACTORS, FACTORS, FACTORS))
def test_several_reads_are_inside(
    first: tuple[int, int, int, int], second: tuple[int, int, int, int]
) -> None:
    indices = [terms(*first), terms(*second)]
    (found,) = read_box([Read((index,), RANGES) for index in indices], FIXED, (LARGE,))
    for index, count in product(indices, range(4)):
        begin = value(found.begin, {OUTER: count})
        for place in read_at(index, count):
            assert begin <= place < begin + found.extent or not 0 <= place < LARGE


@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 5), st.integers(1, 4))
def test_quotients_are_inside(outer: int, inner: int, constant: int, by: int) -> None:
    number = as_scalar(terms(outer, inner, 0, constant), DType.INT64)
    index = Affine({Arith(ArithOp.FLOOR_DIV, (number, Literal(by, DType.INT64))): 1})
    (found,) = read_box([Read((index,), RANGES)], FIXED, (LARGE,))
    for count in range(4):
        begin = value(found.begin, {OUTER: count})
        places = [(outer * count + inner * step + constant) // by for step in range(5)]
        assert all(begin <= place < begin + found.extent for place in places)
        assert found.extent <= max(places) - min(places) + 2


def test_what_is_not_known_is_the_whole_dimension() -> None:
    assert read_box([Read((None, Affine({OUTER: 1})), RANGES)], FIXED, (7, 9)) == (
        Interval(Affine(), 7),
        Interval(Affine({OUTER: 1}), 1),
    )


def test_a_region_is_not_larger_than_the_tensor() -> None:
    index = Affine({OUTER: 1, INNER: 3})
    assert read_box([Read((index,), RANGES)], FIXED, (10,)) == (Interval(Affine(), 10),)


def test_nothing_read_is_nothing() -> None:
    assert read_box([], FIXED, (7,)) == (Interval(Affine(), 0),)
