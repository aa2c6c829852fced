"""Limits and callbacks of a race of candidates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from intarsia.measure.race.policy import DEFAULT_RACE, RacePolicy
from intarsia.support.callbacks import never, silent


@dataclass(frozen=True, slots=True)
class RaceLimits:
    """Limits and callbacks of a race.

    Attributes:
        policy: Conditions of a decision, and limits of rounds.
        seconds: Time after which no round begins, warm-up included, except the policy's first rounds.
        should_stop: Called after each turn; returns true to end the race at once.
        on_turn: Called after each turn with the complete rounds and the seconds since the beginning.
        clock: Function that returns seconds.
    """

    policy: RacePolicy = DEFAULT_RACE
    seconds: float = math.inf
    should_stop: Callable[[], bool] = never
    on_turn: Callable[[int, float], object] = silent
    clock: Callable[[], float] = time.monotonic
