"""Collage of modules: which functions are searched, and what is put together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.collage_costs import HOST_SPEC, REFERENCE_SPEC, DrawnCosts, acme, native, parts, some_specs
from tests.collage_programs import program
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.collage.collage import collage
from intarsia.collage.function_search import DEFAULT_OPTIONS
from intarsia.ir import IRModule
from intarsia.op import verify
from intarsia.support.errors import UnsupportedModelError

TEXT = """
def @main(%x: T) { @f(@compiled(Relu(%x))) }
def @f(%x: T) { Abs(Relu(%x)) }
def @compiled(%x: T) attributes {Compiler="one", global_symbol="compiled"} { Relu(%x) }
def @fused(%x: T) attributes {Primitive=1} { Relu(%x) }
"""
COSTS = {"native": 2.0, "acme": 1.0, "reference": 50.0}
SPECS = (native(), acme(), REFERENCE_SPEC, HOST_SPEC)
QUARREL = replace(DEFAULT_OPTIONS, conflicts=frozenset({("acme", "native")}))


def test_all_open_functions_are_searched() -> None:
    mod = program(TEXT)
    found = collage(mod, SPECS, MockCostEstimator(COSTS))
    assert [each.name for each in found.functions] == ["main", "f"]
    chosen = [(each.function, each.toolchain, each.label) for each in found.best.partitions]
    assert chosen == [("main", "acme", "Relu"), ("f", "acme", "Relu"), ("f", "native", "Abs")]
    assert found.placements[0].seconds == 1.0
    after = found.best.applied(mod)
    verify(after)
    assert after["compiled"] is mod["compiled"]
    assert after["fused"] is mod["fused"]


def test_placements_differ_in_main() -> None:
    found = collage(program(TEXT), some_specs(), DrawnCosts(1), options=replace(DEFAULT_OPTIONS, covers=3))
    rest = {
        tuple(each for each in one.placement.partitions if each.function != "main")
        for one in found.placements
    }
    assert len(rest) == 1
    mains = [
        tuple(each for each in one.placement.partitions if each.function == "main")
        for one in found.placements
    ]
    assert len(set(mains)) == len(mains) > 1
    assert [one.seconds for one in found.placements] == sorted(one.seconds for one in found.placements)


def test_a_module_without_open_main() -> None:
    mod = program("def @f(%x: T) { Abs(%x) }")
    found = collage(mod, SPECS, MockCostEstimator(COSTS))
    assert parts(found.best.partitions) == [("native", "Abs")]
    assert (found.placements[0].seconds, len(found.placements)) == (0.0, 1)
    nothing = collage(IRModule({}), SPECS, MockCostEstimator(COSTS))
    assert nothing.best.partitions == ()


def test_conflicts_within_a_function() -> None:
    mod = program("def @main(%x: T) { Relu(Abs(Relu(%x))) }")
    free = collage(mod, SPECS, MockCostEstimator(COSTS))
    assert {each.toolchain for each in free.best.partitions} == {"acme", "native"}
    found = collage(mod, SPECS, MockCostEstimator(COSTS), options=QUARREL)
    for one in found.placements:
        assert {each.toolchain for each in one.placement.partitions} in (
            {"native"},
            {"native", "reference"},
            {"acme", "reference"},
        )
    assert {each.toolchain for each in found.best.partitions} == {"native"}


def test_conflicts_between_functions() -> None:
    """@main takes acme, so @f must do without native; runner-ups of @main keep to what @f has taken."""
    text = "def @main(%x: T) { @f(Relu(%x)) } def @f(%x: T) { Abs(%x) }"
    found = collage(program(text), SPECS, MockCostEstimator(COSTS), options=QUARREL)
    chosen = [(each.function, each.toolchain) for each in found.best.partitions]
    assert chosen == [("main", "acme"), ("f", "reference")]
    for one in found.placements:
        used = {each.toolchain for each in one.placement.partitions}
        assert not {"acme", "native"} <= used


def test_conflicts_with_what_is_compiled_already() -> None:
    text = """
    def @main(%x: T) { @done(Relu(%x)) }
    def @done(%x: T) attributes {Compiler="native", global_symbol="done"} { Abs(%x) }
    """
    found = collage(program(text), SPECS, MockCostEstimator(COSTS), options=QUARREL)
    assert parts(found.best.partitions) == [("native", "Relu")]
    for one in found.placements:
        assert "acme" not in {each.toolchain for each in one.placement.partitions}


def test_conflicts_can_leave_nobody() -> None:
    text = "def @main(%x: T) { @f(Relu(%x)) } def @f(%x: T) { Abs(%x) }"
    specs = (native(), acme(), HOST_SPEC)
    with pytest.raises(UnsupportedModelError, match=r"function 'f': Abs \(acme: not supported\)"):
        collage(program(text), specs, MockCostEstimator(COSTS), options=QUARREL)
