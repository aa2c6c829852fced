"""What candidates cost at least, before they are measured."""

from __future__ import annotations

import pytest
from tests.collage_costs import REFERENCE_SPEC, spec
from tests.collage_programs import calls, main_graph, program

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.lower_bounds import GUESS_SHARE, HEAVY_SHARE, LIGHT_SHARE, lower_bounds
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.typical_rules import graph_style_rule

TYPES = "%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]"
GRAPH = main_graph(program(f"def @main({TYPES}) {{ Abs(Relu(Conv(%x, %w))) }}"))
CONV, RELU, ABS = calls(GRAPH)
SHARES = {CONV: 0.8, RELU: 0.15, ABS: 0.05}
SPECS = (spec("one", graph_style_rule(lambda _: True)), REFERENCE_SPEC)


def by_label() -> dict[tuple[str, str], CandidatePartition]:
    candidates = collect_candidates(GRAPH, SPECS).candidates
    return {(each.spec.name, each.sub_graph.label): each for each in candidates}


def bounds(known: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """The bounds of the others, given some costs."""
    all_of_them = by_label()
    estimates = {all_of_them[key]: seconds for key, seconds in known.items()}
    candidates = [
        each.with_cost(Cost.value(estimates[each])) if each in estimates else each
        for each in all_of_them.values()
    ]
    found = lower_bounds(candidates, estimates, SHARES)
    return {(each.spec.name, each.sub_graph.label): seconds for each, seconds in found.items()}


def test_without_knowledge_there_is_no_bound() -> None:
    assert set(bounds({}).values()) == {0.0}
    assert lower_bounds([], {}, {}) == {}


def test_known_candidates_need_none() -> None:
    assert ("one", "Conv") not in bounds({("one", "Conv"): 2.0})
    everything = dict.fromkeys(by_label(), 1.0)
    assert bounds(everything) == {}


def test_single_operators_bound_groups() -> None:
    """By the cheapest way to run each; what is heavy keeps more of its cost."""
    found = bounds({("one", "Conv"): 2.0, ("reference", "Conv"): 3.0, ("one", "Relu"): 1.0})
    assert found["one", "Conv+Relu"] == pytest.approx(2 * HEAVY_SHARE + LIGHT_SHARE)
    assert found["reference", "Relu"] == pytest.approx(LIGHT_SHARE)
    assert found["one", "Abs"] == 0


def test_the_whole_bounds_operators_that_are_not_known() -> None:
    """By their share of the fastest candidate for nearly everything."""
    found = bounds({("one", "Conv+Relu+Abs"): 10.0, ("one", "Conv+Relu"): 7.6})
    per_share = min(10.0, 7.6 / 0.95) * GUESS_SHARE
    assert found["one", "Relu+Abs"] == pytest.approx(0.2 * per_share)
    assert found["one", "Conv"] == pytest.approx(0.8 * per_share)
    known = bounds({("one", "Conv+Relu+Abs"): 10.0, ("one", "Relu"): 1.0})
    assert known["one", "Relu+Abs"] == pytest.approx(LIGHT_SHARE + 0.05 * 10 * GUESS_SHARE)


def test_bounds_grow_with_the_candidate() -> None:
    found = bounds({("one", "Conv+Relu+Abs"): 10.0, ("one", "Relu"): 1.0})
    assert found["one", "Conv"] < found["one", "Conv+Relu"]
    assert found["one", "Abs"] < found["one", "Relu+Abs"]
