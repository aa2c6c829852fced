"""What a mix can gain, judged by single operators."""

from __future__ import annotations

from math import inf

import pytest
from tests.collage_costs import spec
from tests.collage_programs import calls, main_graph, program

from intarsia.collage.costs.mix_gain import MixGain, mix_gain
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.typical_rules import graph_style_rule

GRAPH = main_graph(program("def @main(%x: Tensor[(64,), float32]) { Abs(Relu(Exp(%x))) }"))
EXP, RELU, ABS = calls(GRAPH)
SHARES = {EXP: 0.8, RELU: 0.15, ABS: 0.05}
SPECS = tuple(spec(name, graph_style_rule(lambda _: True)) for name in ("one", "two"))
WHOLE = "Exp+Relu+Abs"


def gain(known: dict[tuple[str, str], float]) -> MixGain:
    candidates = collect_candidates(GRAPH, SPECS).candidates
    by_name = {(item.spec.name, item.sub_graph.label): item for item in candidates}
    return mix_gain({by_name[name]: seconds for name, seconds in known.items()}, SHARES)


def test_a_mix_gains_what_the_best_toolchain_alone_loses() -> None:
    one = {("one", WHOLE): 9.0, ("one", "Exp"): 8.0, ("one", "Relu"): 1.0}
    other = {("two", WHOLE): 9.0, ("two", "Exp"): 4.0, ("two", "Relu"): 6.0}
    found = gain({**one, **other})
    assert found.share == pytest.approx(0.95)
    assert found.factor == pytest.approx(9.0 / 5.0)


def test_a_toolchain_that_lacks_an_operator_is_no_rival_of_a_mix() -> None:
    """The fast one is best in all that both have, and cannot run the rest: only a mix has its speed."""
    fast = {("one", "Exp"): 4.0, ("one", "Relu"): 1.0}
    slow = {("two", WHOLE): 9.0, ("two", "Exp"): 8.0, ("two", "Relu"): 2.0}
    assert gain({**fast, **slow}).factor == pytest.approx(2.0)


def test_without_a_toolchain_for_the_whole_there_is_a_mix_or_nothing() -> None:
    known = {("one", "Exp"): 4.0, ("two", "Exp"): 8.0}
    assert gain(known).factor == inf


def test_nothing_is_judged_by_operators_of_one_toolchain() -> None:
    assert gain({("one", WHOLE): 9.0, ("one", "Exp"): 4.0}) == MixGain(0, 1.0)
