"""When a race of candidates is stopped, and who is told of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from intarsia.measure.race.policy import DEFAULT_RACE, RacePolicy
from intarsia.support.callbacks import never, silent


@dataclass(frozen=True, slots=True)
class RaceLimits:
    """When a race is stopped.

    Attributes:
        policy: When it is decided, and how many rounds it may take.
        seconds: No round begins after so much time, warm-up included, but for the policy's first rounds.
        should_stop: Asked after each turn; a yes ends the race at once.
        on_turn: Told after each turn: complete rounds, and seconds since the beginning.
        clock: Tells seconds.
    """

    policy: RacePolicy = DEFAULT_RACE
    seconds: float = math.inf
    should_stop: Callable[[], bool] = never
    on_turn: Callable[[int, float], object] = silent
    clock: Callable[[], float] = time.monotonic
