"""Random graphs, rewritten by random sequences of substitutions, compute the same."""

from __future__ import annotations

from random import Random

import pytest
from tests.pass_checks import assert_same_results
from tests.substitution_examples import EVERY_RULE
from tests.substitution_graphs import RandomGraph

from intarsia.ir import IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.op import verify
from intarsia.tune.passes.rewrite_estimate import ProgramEstimate, estimated_cost
from intarsia.tune.substitution import Dataflow, apply_replacement, find_substitutions, substitute

STEPS = 6


def rewritten(mod: IRModule, rng: Random) -> tuple[IRModule, list[str]]:
    """A program after a few rules, each drawn alike, at places that are drawn; and the rules."""
    used: list[str] = []
    for _ in range(rng.randint(1, STEPS)):
        found = list(find_substitutions(Dataflow.of(mod), EVERY_RULE))
        rule = rng.choice(sorted({each.rule for each in found}))
        place = rng.choice([each.positions for each in found if each.rule == rule])
        mod = substitute(mod, rule, place)
        used.append(f"{rule} at {place}")
    return mod, used


def check(seed: int) -> list[str]:
    """Compare a random graph with what random rules make of it; returns the rules."""
    before = RandomGraph.program(seed, size=8)
    after, applied = rewritten(before, Random(seed))
    verify(after)
    assert after["main"].result_type == before["main"].result_type
    try:
        assert_same_results(before, after, random_inputs(before["main"], seed), rtol=1e-3, atol=1e-4)
    except AssertionError as error:
        error.add_note(f"seed {seed}: {', '.join(applied)}")
        raise
    return applied


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 8))]
)
def test_random_rules_on_two_hundred_random_graphs(block: int) -> None:
    used = {each.partition(" at ")[0] for seed in range(25 * block, 25 * block + 25) for each in check(seed)}
    assert len(used) >= 25  # different rules


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("seed", range(30))
def test_what_a_substitution_changes_is_estimated_as_the_whole_program_is(seed: int) -> None:
    flow = Dataflow.of(RandomGraph.program(seed, size=12))
    estimate = ProgramEstimate.of(flow)
    assert estimate.total == estimated_cost(flow.mod)
    found = list(find_substitutions(flow, EVERY_RULE))
    assert len(found) >= 5
    for one in found:
        assert estimate.cost_after(one) == estimated_cost(apply_replacement(flow, one.new, one.positions)), (
            one
        )
