"""Values of axes from loops, checked by counting through all iterations."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, LoopVar, Scalar
from intarsia.native.loop_state.relation import FuseRelation, Relation, SplitRelation
from intarsia.native.lowering.loop_values import loop_extents, loop_values, part_extents
from intarsia.native.tir.affine import Affine, as_scalar
from intarsia.support.errors import UsageError

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=3)


def split(parent: str, lengths: list[int], inner_to_outer: bool) -> SplitRelation:
    parts = tuple(f"{parent}.{place}" for place in range(len(lengths) + 1))
    return SplitRelation(parent, None, parts, tuple(lengths), inner_to_outer)


def fuse(*parts: str) -> FuseRelation:
    return FuseRelation("@".join((*parts, "")), parts, (None,) * len(parts))


def number(scalar: Scalar, counters: dict[str, int]) -> int:
    match scalar:
        case LoopVar():
            return counters[scalar.name]
        case Literal(value=value):
            return int(value)
        case Arith(op=op, operands=operands):
            left, right = (number(each, counters) for each in operands)
            operations = {
                ArithOp.ADD: left + right,
                ArithOp.SUB: left - right,
                ArithOp.MUL: left * right,
                ArithOp.FLOOR_DIV: left // right if right else 0,
                ArithOp.FLOOR_MOD: left % right if right else 0,
            }
            return operations[op]
        case _:
            raise AssertionError(scalar)


def visited(
    relations: list[Relation], axes: dict[str, int], leaves: list[str]
) -> tuple[list[tuple[int, ...]], int]:
    """The values of the axes in every iteration whose checks hold, and how many checks there are."""
    extents = loop_extents(relations, axes)
    given_values = {name: Affine({LoopVar(name): 1}) for name in leaves}
    ranges = {LoopVar(name): (0, extents[name] - 1) for name in leaves}
    values, checks = loop_values(relations, extents, given_values, ranges)
    found = []
    for counts in product(*(range(extents[name]) for name in leaves)):
        counters = dict(zip(leaves, counts, strict=True))
        if all(number(as_scalar(each.value, DType.INT64), counters) < each.extent for each in checks):
            found.append(tuple(number(as_scalar(values[axis], DType.INT64), counters) for axis in axes))
    return found, len(checks)


@given(st.integers(1, 30), LENGTHS, st.booleans())
def test_a_split_visits_each_value_once(extent: int, lengths: list[int], inner_to_outer: bool) -> None:
    relation = split("i", lengths, inner_to_outer)
    found, _ = visited([relation], {"i": extent}, list(relation.parts))
    assert found == [(value,) for value in range(extent)]


@given(st.integers(1, 9), st.integers(1, 6), LENGTHS, st.integers(1, 5), st.booleans())
def test_fused_parts_that_are_split_again_visit_each_value_once(
    rows: int, columns: int, lengths: list[int], length: int, inner_to_outer: bool
) -> None:
    first = split("i", lengths, inner_to_outer)
    fused = fuse(first.parts[-1], "j")
    again = split(fused.fused, [length], not inner_to_outer)
    leaves = [*again.parts, *first.parts[:-1]]
    found, _ = visited([first, fused, again], {"i": rows, "j": columns}, leaves)
    assert sorted(found) == list(product(range(rows), range(columns)))


def test_an_even_split_needs_no_check() -> None:
    assert visited([split("i", [2, 4], True)], {"i": 32}, ["i.0", "i.1", "i.2"])[1] == 0
    assert visited([split("i", [2, 4], False)], {"i": 32}, ["i.0", "i.1", "i.2"])[1] == 0
    assert visited([split("i", [2, 4], True)], {"i": 33}, ["i.0", "i.1", "i.2"])[1] == 1


def test_fused_loops_that_are_split_evenly_need_no_quotient() -> None:
    relations: list[Relation] = [fuse("i", "j"), split("i@j@", [8], True)]
    extents = loop_extents(relations, {"i": 4, "j": 8})
    names = ("i@j@.0", "i@j@.1")
    given_values = {name: Affine({LoopVar(name): 1}) for name in names}
    ranges = {LoopVar(name): (0, extents[name] - 1) for name in names}
    values, _ = loop_values(relations, extents, given_values, ranges)
    assert values["i"] == Affine({LoopVar("i@j@.0"): 1})
    assert values["j"] == Affine({LoopVar("i@j@.1"): 1})


def test_parts_count_no_more_than_is_needed() -> None:
    assert part_extents(split("i", [2, 16], True), 8) == [1, 1, 8]
    assert part_extents(split("i", [4], False), 5) == [3, 2]
    assert part_extents(split("i", [4, 2], True), 0) == [0, 0, 0]
    assert part_extents(split("i", [4], False), 0) == [0, 0]


def test_an_open_length_is_refused() -> None:
    relation = SplitRelation("i", 8, ("i.0", "i.1"), (None,), True)
    with pytest.raises(UsageError, match="a length of the split of loop i is not chosen"):
        part_extents(relation, 8)
