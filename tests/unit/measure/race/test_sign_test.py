from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.measure.race.sign_test import log_evidence, needed_successes


def exact_evidence(successes: int, trials: int) -> Fraction:
    """The likelihood ratio mixed evenly over 1/2 < p < 1 by its expansion, in exact arithmetic."""
    failures = trials - successes
    total = Fraction(0)
    for power in range(failures + 1):  # (1 - p)**failures = sum of binomial(failures, i) (-p)**i
        degree = successes + power + 1
        integral = (1 - Fraction(1, 1 << degree)) / degree
        total += (1 - 2 * (power % 2)) * math.comb(failures, power) * integral
    return total * (2 << trials)


@settings(deadline=None)
@given(st.integers(0, 40), st.data())
def test_the_closed_form_is_the_integral(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    expected = math.log(exact_evidence(successes, trials))
    assert log_evidence(successes, trials, 0.5) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 3000), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([1e-6, 0.0125, 0.05]))
@settings(deadline=None, max_examples=examples(40))
def test_what_is_needed_is_just_enough(trials: int, chance: float, risk: float) -> None:
    needed = needed_successes(trials, chance, risk)
    assert chance * trials < needed <= trials + 1
    if needed <= trials:
        assert log_evidence(needed, trials, chance) >= math.log(1 / risk)
    assert log_evidence(needed - 1, trials, chance) < math.log(1 / risk)


def test_figures() -> None:
    assert [needed_successes(trials, 0.5, 0.05) for trials in (0, 5, 6, 7, 20, 100)] == [1, 6, 7, 7, 16, 65]
    assert [needed_successes(trials, 0.1, 0.0125) for trials in (1, 2, 3, 10)] == [2, 3, 3, 6]


@pytest.mark.parametrize("chance", [0.1, 0.5])
def test_looking_after_every_trial_deceives_as_seldom_as_promised(chance: float) -> None:
    generator = random.Random(1)
    needed = [needed_successes(trials, chance, 0.05) for trials in range(301)]
    deceived = 0
    for _ in range(2000):
        successes = 0
        for trials in range(1, 301):
            successes += generator.random() < chance
            if successes >= needed[trials]:
                deceived += 1
                break
    assert 0 < deceived <= 0.05 * 2000  # true rate: between 2 and 4 %
