"""Measurers of schedules without hardware: what a schedule costs is a function of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from intarsia.autoschedule.cost_model import Scores, draft_cycles
from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower

SMALL_MACHINE = Machine(32, 16, 32 * 1024, 512 * 1024, 4)
"""A CPU with vectors of 32 bytes and 4 threads."""
HERTZ = 1e9
"""Cycles a second of it."""


def draft_seconds(state: LoopState) -> float:
    """What the draft model expects of a state on SMALL_MACHINE, in seconds."""
    return draft_cycles(lower(state.initial_dag, state), SMALL_MACHINE) / HERTZ


def failing(share: int) -> Callable[[LoopState], float]:
    """`draft_seconds`, but about one state of so many fails."""

    def seconds(state: LoopState) -> float:
        return -1.0 if crc32(state.text.encode()) % share == 0 else draft_seconds(state)

    return seconds


@dataclass(eq=False)
class FakeMeasurer:
    """Measures by a function; keeps what it was asked.

    Attributes:
        seconds: The cost of a state; a negative one is a failure.
        again: Cost of a state that is measured against others.
        rounds: The states of each call of `measure`.
        contests: States of each call of `remeasure`.
    """

    seconds: Callable[[LoopState], float] = draft_seconds
    again: Callable[[LoopState], float] | None = None
    rounds: list[tuple[LoopState, ...]] = field(default_factory=list)
    contests: list[tuple[LoopState, ...]] = field(default_factory=list)

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """A cost for each."""
        self.rounds.append(tuple(states))
        return [_measurement(self.seconds(state)) for state in states]

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """A cost for each, by `again` if there is one."""
        self.contests.append(tuple(states))
        return [_measurement((self.again or self.seconds)(state)) for state in states]

    @property
    def measured(self) -> list[LoopState]:
        """All states that were measured, in order."""
        return [state for states in self.rounds for state in states]


def _measurement(seconds: float) -> MeasureResult:
    if seconds < 0:
        return MeasureResult((), MeasureError.RUNTIME, "it failed")
    return MeasureResult((seconds,), MeasureError.OK)


@dataclass(eq=False)
class FunctionModel:
    """Scores by a function; keeps what it was asked and taught."""

    score: Callable[[LoopState], float]
    asked: list[LoopState] = field(default_factory=list)
    taught: list[tuple[LoopState, float]] = field(default_factory=list)

    def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Keep them."""
        self.taught += zip(states, costs, strict=True)

    def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
        """A score for each."""
        self.asked += states
        return np.array([self.score(state) for state in states], np.float64)
