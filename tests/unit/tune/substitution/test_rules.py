"""Every rule on its own example: it matches, makes what it shows, keeps types, and computes the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.each_case import each_case
from tests.effort import examples
from tests.pass_checks import assert_same_results
from tests.substitution_examples import EVERY_RULE, example, places, symbols

from intarsia.ir import structural_equal
from intarsia.measure.inputs import random_inputs
from intarsia.op import verify
from intarsia.tune.substitution import FAMILIES, RULES, SubstitutionRule, substitute


def test_there_are_many_rules_and_each_stands_in_one_family() -> None:
    homes = [rule.name for family in FAMILIES for rule in vars(family).values() if hasattr(rule, "sources")]
    assert sorted(homes) == sorted(RULES)
    assert len(homes) >= 60


@each_case("rule", EVERY_RULE)
def test_before_becomes_after(rule: SubstitutionRule) -> None:
    before, after = example(rule)
    verify(before)
    found = places(rule, before)
    assert found, f"{rule} does not match\n{before}"
    made = [substitute(before, rule.name, each.positions) for each in found]
    assert any(structural_equal(each, after) for each in made), "\n".join(map(str, (after, *made)))
    for each in made:
        verify(each)
        assert each["main"].result_type == before["main"].result_type


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("rule", EVERY_RULE, ids=str)
@given(data=st.data())
@settings(
    max_examples=examples(3, quick=1),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_it_computes_the_same_on_random_inputs_of_random_sizes(
    rule: SubstitutionRule, data: st.DataObject
) -> None:
    sizes = {name: data.draw(st.integers(1, 5), name) for name in symbols(rule)}
    before, _ = example(rule, sizes)
    found = places(rule, before)
    assert found
    inputs = random_inputs(before["main"], data.draw(st.integers(0, 99), "seed"))
    for each in found:
        after = substitute(before, rule.name, each.positions)
        assert after["main"].result_type == before["main"].result_type
        assert_same_results(before, after, inputs)
