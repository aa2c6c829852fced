"""How a function is searched: who is estimated when, and what happens when time or candidates run out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.collage_costs import BOUNDARIES, HOST_SPEC, REFERENCE_SPEC, DrawnCosts, parts_of, some_specs, spec
from tests.collage_programs import program

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.boundary_costs import BoundaryCosts, Crossing, DeferredCrossings
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.function_cover import CoverRecord, FunctionCover
from intarsia.collage.function_search import DEFAULT_OPTIONS, CollageOptions, FunctionSearch
from intarsia.collage.rules.typical_rules import (
    graph_style_rule,
    just_patterns_rule,
    single_operators_rule,
)
from intarsia.ir.pattern import is_op, wildcard
from intarsia.measure.measure_result import MeasureError
from intarsia.op.pattern_table import CompositePattern
from intarsia.support.errors import UnsupportedModelError

PLAIN = replace(DEFAULT_OPTIONS, shrink=False)
CHAIN = "def @main(%x: T) { Tanh(Abs(Relu(%x))) }"
GRAPH_STYLE = spec("one", graph_style_rule(lambda _: True))
SPECS = (GRAPH_STYLE, REFERENCE_SPEC, HOST_SPEC)


@dataclass(eq=False)
class Table:
    """Costs by spec and label; what is not in the table is invalid. Counts time by estimates.

    Attributes:
        costs: The table; infinite for what crashes.
        seconds: Number of candidates that can be estimated.
        second: Costs that a second look gives.
    """

    costs: Mapping[tuple[str, str], float]
    seconds: float = math.inf
    second: Mapping[tuple[str, str], float] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    settled: list[tuple[str, str]] = field(default_factory=list)

    def estimate(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        return [self._one(each) for each in candidates]

    def settle(self, candidates: Sequence[CandidatePartition]) -> list[Estimate]:
        keys = [(each.spec.name, each.sub_graph.label) for each in candidates]
        self.settled += keys
        return [replace(_cost(self.second.get(key, self.costs[key])), was_known=True) for key in keys]

    def seconds_left(self) -> float:
        return self.seconds - len(self.asked)

    def _one(self, candidate: CandidatePartition) -> Estimate:
        key = (candidate.spec.name, candidate.sub_graph.label)
        if self.seconds_left() <= 0:
            return Estimate(Cost.UNKNOWN)
        self.asked.append(key)
        return _cost(self.costs.get(key, math.inf))


def _cost(seconds: float) -> Estimate:
    if math.isinf(seconds):
        return Estimate(Cost.INVALID, math.inf, math.inf, MeasureError.CRASH, "it crashed")
    return Estimate(Cost.value(seconds), 0.9 * seconds, 1.2 * seconds)


def searched(
    table: Table,
    options: CollageOptions = PLAIN,
    text: str = CHAIN,
    specs: Sequence[PartitionSpec] = SPECS,
) -> FunctionCover:
    return FunctionSearch("main", program(text)["main"], specs, table, options=options).run()


ALL = {
    ("one", "Relu"): 1.0,
    ("one", "Abs"): 1.0,
    ("one", "Tanh"): 1.0,
    ("one", "Relu+Abs"): 1.5,
    ("one", "Abs+Tanh"): 1.8,
    ("one", "Relu+Abs+Tanh"): 4.0,
    **{("reference", name): 9.0 for name in ("Relu", "Abs", "Tanh")},
}


def test_the_whole_then_single_operators_then_what_matters() -> None:
    table = Table(ALL)
    found = searched(table)
    assert table.asked[0] == ("one", "Relu+Abs+Tanh")
    assert sorted(table.asked[1:4]) == [("one", "Abs"), ("one", "Relu"), ("one", "Tanh")]
    assert set(table.asked[4:]) <= {("one", "Relu+Abs"), ("one", "Abs+Tanh")}
    assert parts_of(found.best) == [("one", "Relu+Abs"), ("one", "Tanh")]
    assert found.best.seconds == 2.5
    assert found.best.interval == pytest.approx((0.9 * 2.5, 1.2 * 2.5))
    assert found.best.unmeasured == 0
    assert (found.is_exact, found.gap, found.lower_bound) == (True, 0.0, 2.5)
    assert (found.operators, found.measured, found.failed) == (3, 6, 0)
    assert [each.seconds for each in found.covers] == sorted(each.seconds for each in found.covers)


def test_the_last_resort_is_not_tried_where_others_are_able() -> None:
    found = searched(Table(ALL))
    untried = {
        each.spec.name: estimate
        for each, estimate in found.estimates.items()
        if estimate.message == "not tried: others run it"
    }
    assert set(untried) == {"reference"}
    assert untried["reference"].was_known
    alone = searched(Table(ALL), replace(PLAIN, last_resort=None))
    assert alone.measured == 9


def test_the_last_resort_takes_what_others_fail_at() -> None:
    table = Table({key: cost for key, cost in ALL.items() if "Abs" not in key[1] or key[0] == "reference"})
    found = searched(table)
    assert parts_of(found.best) == [("one", "Relu"), ("reference", "Abs"), ("one", "Tanh")]
    assert ("reference", "Relu") not in table.asked
    assert (found.best.seconds, found.failed) == (11.0, 4)


def test_the_last_resort_takes_what_others_fail_at_late() -> None:
    """That the only candidate for Relu and Abs is invalid shows when the search asks for it."""
    pair = CompositePattern("pair", is_op("Abs")(is_op("Relu")(wildcard())))
    three = CompositePattern("three", is_op("Exp")(is_op("Neg")(is_op("Tanh")(wildcard()))))
    specs = (spec("one", just_patterns_rule([pair])), spec("two", just_patterns_rule([three])), *SPECS[1:])
    table = Table({("two", "Tanh+Neg+Exp"): 1.0, ("reference", "Relu"): 5.0, ("reference", "Abs"): 5.0})
    found = searched(table, text="def @main(%x: T) { Exp(Neg(Tanh(Abs(Relu(%x))))) }", specs=specs)
    assert table.asked == [
        ("two", "Tanh+Neg+Exp"),
        ("one", "Relu+Abs"),
        ("reference", "Relu"),
        ("reference", "Abs"),
    ]
    assert parts_of(found.best) == [("reference", "Relu"), ("reference", "Abs"), ("two", "Tanh+Neg+Exp")]
    assert found.is_exact


def test_single_operators_take_their_share_of_the_time_only() -> None:
    """What is looked at after each batch of 16."""
    text = "def @main(%x: T) { " + "Tanh(" * 40 + "%x" + ")" * 40 + " }"
    table = Table(dict.fromkeys([("one", "Tanh")], 1.0), seconds=60)
    searched(table, replace(PLAIN, single_share=0.2), text)
    assert 16 <= table.asked[:33].count(("one", "Tanh")) <= 17


@pytest.mark.parametrize("seconds", [0, 1, 2, 3, 4])
def test_when_the_time_is_over_there_is_a_cover_nevertheless(seconds: int) -> None:
    table = Table(ALL, seconds)
    found = searched(table)
    assert len(table.asked) <= seconds
    assert sum(label.count("+") + 1 for _, label in parts_of(found.best)) == 3
    assert not found.is_exact
    if seconds == 0:
        assert parts_of(found.best) == [("one", "Relu+Abs+Tanh")]
        assert found.best.unmeasured == 1
        assert found.lower_bound == 0
    else:
        assert found.best.unmeasured == 0
        assert found.best.seconds == (4.0 if seconds < 4 else 3.0)
    assert found.gap > 0


def test_without_time_the_last_resort_is_not_chosen_before_others() -> None:
    found = searched(Table(ALL, 0), text="def @main(%x: T) { Softmax(Tanh(%x)) }")
    assert {name for name, _ in parts_of(found.best)} == {"one"}
    only_tanh = spec("one", single_operators_rule(lambda call: str(call.op) == "Tanh"))
    mixed = searched(
        Table(ALL, 0), text="def @main(%x: T) { Softmax(Tanh(%x)) }", specs=(only_tanh, *SPECS[1:])
    )
    assert parts_of(mixed.best) == [("one", "Tanh"), ("reference", "Softmax")]


def test_leaders_are_estimated_again_until_nothing_changes() -> None:
    """The whole looks cheapest at first; at a second look the two parts are."""
    costs = {**ALL, ("one", "Relu+Abs+Tanh"): 2.2}
    table = Table(costs, second={("one", "Relu+Abs+Tanh"): 3.5})
    found = searched(table)
    assert ("one", "Relu+Abs+Tanh") in table.settled
    assert parts_of(found.best) == [("one", "Relu+Abs"), ("one", "Tanh")]
    assert found.measured == 6, "a second look does not make a measured candidate a known one"
    once = Table(costs, second={("one", "Relu+Abs+Tanh"): 3.5})
    assert parts_of(searched(once, replace(PLAIN, settle_rounds=0)).best) == [("one", "Relu+Abs+Tanh")]
    assert once.settled == []


def test_nothing_is_settled_when_the_best_cover_fails() -> None:
    """A candidate that fails at the second look is out."""
    costs = {**ALL, ("one", "Relu+Abs+Tanh"): 2.2}
    found = searched(Table(costs, second={("one", "Relu+Abs+Tanh"): math.inf}))
    assert parts_of(found.best) == [("one", "Relu+Abs"), ("one", "Tanh")]
    assert found.failed == 1


def test_boundaries_make_covers_dearer() -> None:
    function = program(CHAIN)["main"]
    costs = DrawnCosts(3)
    free = FunctionSearch("main", function, some_specs(), DrawnCosts(3), options=PLAIN).run()
    charged = FunctionSearch("main", function, some_specs(), costs, BOUNDARIES, PLAIN).run()
    assert charged.best.seconds > free.best.seconds
    assert len(charged.best.partitions) <= len(free.best.partitions)


def test_shrinking_predicts_more_for_what_only_looked_cheap() -> None:
    costs = {("one", "Relu"): 1.0, ("two", "Relu"): 1.1}
    specs = (GRAPH_STYLE, spec("two", graph_style_rule(lambda _: True)), HOST_SPEC)
    text = "def @main(%x: T) { Relu(%x) }"
    raw = searched(Table(costs), PLAIN, text, specs)
    shrunk = searched(Table(costs), DEFAULT_OPTIONS, text, specs)
    assert raw.best.seconds == 1.0 < shrunk.best.seconds < 1.1
    assert parts_of(raw.best) == parts_of(shrunk.best) == [("one", "Relu")]
    assert shrunk.gap == 0


def test_a_function_without_work_has_the_empty_cover() -> None:
    found = searched(Table({}), text="def @main(%x: T) { (%x, %x) }")
    assert (found.best.partitions, found.best.seconds, found.operators) == ((), 0.0, 0)
    assert found.gap == 0
    assert searched(Table({}), text="def @main(%x: T) { %x }").best == CoverRecord((), 0.0, (0, 0))


def test_the_report_is_told() -> None:
    lines: list[str] = []
    FunctionSearch("main", program(CHAIN)["main"], SPECS, Table(ALL), report=lines.append).run()
    assert lines[0] == "1 candidates of main"


def test_nobody_runs_it() -> None:
    with pytest.raises(UnsupportedModelError, match="no toolchain runs all of function 'main': Relu"):
        searched(Table({}))


RIVALS = (GRAPH_STYLE, spec("two", graph_style_rule(lambda _: True)), REFERENCE_SPEC, HOST_SPEC)
WORTH = replace(PLAIN, worth=1.03)


def rival_costs(two: float, seconds: float = math.inf) -> Table:
    singles = {("two", "Relu"): two, ("two", "Abs"): 2.0, ("two", "Tanh"): 2.0}
    return Table({**ALL, **singles, ("two", "Relu+Abs+Tanh"): 4.0}, seconds)


def test_without_the_time_to_judge_mixes_none_is_guessed() -> None:
    """Two wholes and one operator on both: the other operators would take as long each."""
    table = rival_costs(0.5, seconds=4.0)
    found = searched(table, WORTH, specs=RIVALS)
    assert "it takes 60 % to judge mixes" in found.note
    assert len(found.best.partitions) == 1
    assert not searched(rival_costs(0.5, seconds=4.0), PLAIN, specs=RIVALS).note
    assert not searched(rival_costs(0.5), WORTH, specs=RIVALS).note


def test_a_search_that_finds_no_mix_worth_trying_needs_no_boundaries() -> None:
    looks = list[str]()

    def measure() -> Mapping[tuple[str, str], Crossing]:
        looks.append("measured")
        return {}

    for two in (1.0, 0.5):
        boundaries = BoundaryCosts(DeferredCrossings(measure))
        search = FunctionSearch("main", program(CHAIN)["main"], RIVALS, rival_costs(two), boundaries, WORTH)
        assert bool(search.run().note) == (two == 1.0)
        assert looks == (["measured"] if two == 0.5 else [])
        assert not boundaries.without_deferred().crossings
