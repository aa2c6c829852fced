"""Toolchains that must not live in one process."""

from __future__ import annotations

from typing import ClassVar

from tests.collage_costs import HOST_SPEC, REFERENCE_SPEC, One, Two, acme, native
from tests.collage_programs import program

from intarsia.collage.conflicts import are_in_conflict, declared_conflicts, marked_toolchains, specs_beside
from intarsia.runtime.kernel import TOOLCHAINS

PAIRS = frozenset({("acme", "native")})


class Quarrelsome(Two):
    """Cannot stand `One`, which does not know of it."""

    name: ClassVar[str] = "quarrelsome"
    conflicts: ClassVar[frozenset[str]] = frozenset({"one"})


def test_one_declares_it_for_both() -> None:
    with TOOLCHAINS.holding("one", One), TOOLCHAINS.holding("quarrelsome", Quarrelsome):
        assert ("one", "quarrelsome") in declared_conflicts()
    assert not any("quarrelsome" in pair for pair in declared_conflicts())


def test_pairs_have_no_direction() -> None:
    assert are_in_conflict(["native"], ["acme"], PAIRS)
    assert are_in_conflict(["reference", "acme"], ["native"], PAIRS)
    assert not are_in_conflict(["acme"], ["acme", "reference"], PAIRS)
    assert not are_in_conflict([], ["acme"], PAIRS)


def test_specs_that_can_live_beside() -> None:
    specs = (native(), acme(), REFERENCE_SPEC, HOST_SPEC)
    assert [one.name for one in specs_beside(specs, {"acme"}, PAIRS)] == ["acme", "reference", "host"]
    assert specs_beside(specs, set(), PAIRS) == list(specs)
    assert specs_beside(specs, {"acme", "native"}, frozenset()) == list(specs)


def test_toolchains_that_a_module_uses() -> None:
    mod = program("""
    def @main(%x: T) {
      %0 = fn (%y: T) attributes {Compiler="acme"} { Relu(%y) };
      @other(%0(%x))
    }
    def @other(%x: T) attributes {Compiler="one", global_symbol="other"} { Abs(%x) }
    """)
    assert marked_toolchains(mod) == {"acme", "one"}
