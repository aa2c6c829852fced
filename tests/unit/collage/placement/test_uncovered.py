"""Operators that a placement leaves to the reference."""

from __future__ import annotations

import pytest
from tests.collage_programs import program

from intarsia.collage.placement.placement import Partition, Placement
from intarsia.collage.placement.uncovered import calls_text, uncovered_calls
from intarsia.ir import Call, IRModule, Span, rewrite, with_fields
from intarsia.measure.candidate_kind import WHOLE

TARGET = "cpu -toolchain=reference"
CHAIN = program("def @main(%x: T) { Exp(Relu(Tanh(Sqrt(%x)))) }")


def placed(*nodes: int) -> Placement:
    return Placement((Partition("main", TARGET, nodes, "some"),))


def operators(mod: IRModule, placement: Placement) -> list[str]:
    return [str(call.op) for call in uncovered_calls(mod, placement.candidate) if isinstance(call, Call)]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [((1, 2, 3, 4), []), ((1, 2), ["Relu", "Exp"]), ((2, 3), ["Sqrt", "Exp"])],
    ids=["all", "the end", "both ends"],
)
def test_what_no_partition_has_is_left(nodes: tuple[int, ...], left: list[str]) -> None:
    assert operators(CHAIN, placed(*nodes)) == left


def test_branches_are_looked_into() -> None:
    mod = program("def @main(%x: T, %c: Tensor[(), bool]) { if (%c) { Relu(%x) } else { Exp(%x) } }")
    assert sorted(operators(mod, Placement(()))) == ["Exp", "Relu"]


def test_a_whole_leaves_nothing() -> None:
    assert uncovered_calls(CHAIN, WHOLE) == ()


def test_names_and_their_number_are_listed() -> None:
    main = rewrite(
        CHAIN["main"],
        lambda expr: with_fields(expr, span=Span("m", "act")) if isinstance(expr, Call) else expr,
    )
    named = CHAIN.with_function("main", main)  # type: ignore[arg-type]  # a function stays one
    assert calls_text(uncovered_calls(named, placed(1, 2, 3).candidate)) == '1 operator (Exp "act")'
    many = program("def @main(%x: T) { Neg(Neg(Neg(Neg(Neg(Neg(Neg(%x))))))) }")
    text = calls_text(uncovered_calls(many, Placement(()).candidate))
    assert text == "7 operators (Neg, Neg, Neg, Neg, Neg, and 2 more)"
