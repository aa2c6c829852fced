"""A sequential sign test, valid after every trial."""

from __future__ import annotations

import math
from functools import lru_cache


def needed_successes(trials: int, chance: float, risk: float) -> int:
    """Return the fewest successes that prove that a success is likelier than `chance`, or `trials + 1`.

    A test after every trial, for ever, errs with at most the probability `risk`, provided that no success was
    likelier than `chance` given the trials before it. No other assumption is made, so outliers
    of any size do no harm. The proof is that the likelihood ratio, mixed evenly over all probabilities above
    `chance`, is a supermartingale that starts at 1: it ever reaches 1/risk with at most probability `risk`.
    Source: J. Ville, Etude critique de la notion de collectif, 1939; H. Robbins, Statistical methods related
    to the law of the iterated logarithm, 1970.

    Args:
        trials: Number of trials.
        chance: Probability of a success under the null hypothesis, between 0 and 1.
        risk: Probability of a false proof, between 0 and 1.
    """
    return _needed(trials, chance, math.log(1 / risk))


@lru_cache(maxsize=1 << 16)
def _needed(trials: int, chance: float, level: float) -> int:
    low, high = 0, trials + 1  # the evidence grows with the successes
    while low < high:
        middle = (low + high) // 2
        if log_evidence(middle, trials, chance) >= level:
            high = middle
        else:
            low = middle + 1
    return low


def log_evidence(successes: int, trials: int, chance: float) -> float:
    """Return the logarithm of the mixed likelihood ratio: the integral over p > chance, in closed form."""
    flat = _log_at_most(successes, trials + 1, chance) - math.log1p(-chance)
    return flat - math.log(trials + 1) - _log_probability(successes, trials, chance)


def _log_at_most(successes: int, trials: int, chance: float) -> float:
    logarithms = [_log_probability(each, trials, chance) for each in range(successes + 1)]
    largest = max(logarithms)  # taken out of the sum, which would round to 0 where all of them are tiny
    return largest + math.log(math.fsum(math.exp(each - largest) for each in logarithms))


def _log_probability(successes: int, trials: int, chance: float) -> float:
    failures = trials - successes
    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(failures + 1)
    return ways + successes * math.log(chance) + failures * math.log1p(-chance)
