"""The way from the fastest toolchain alone to the winner, decision by decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from intarsia.report.explained_function import ExplainedRegion
from intarsia.report.explanation import ContestRecord, Explanation
from intarsia.report.tuning_record import TuningRecord

_LEAST: Final = 1e-3
"""Share of the latency below which a decision is not shown: measurements are not that exact."""

SCHEDULES: Final = "-schedules="
"""Option of a target that names searched schedules of kernels."""

AS_IT_IS: Final = "as it is"
"""Name of the candidate that changes nothing."""


@dataclass(frozen=True, slots=True)
class WaterfallStep:
    """A difference of latencies.

    Attributes:
        label: Decision in words.
        delta: Seconds after minus seconds before.
        is_rest: Whether it is the difference that no decision explains.
    """

    label: str
    delta: float
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The way from the fastest toolchain alone to the winner.

    Attributes:
        engine: Fastest candidate for the whole model by one toolchain, other than the winner.
        winner: The winner.
        steps: Differences between both in order; they add up exactly.
        remark: Basis of the differences, in sentences.
    """

    engine: ContestRecord
    winner: ContestRecord
    steps: tuple[WaterfallStep, ...]
    remark: str


def waterfall(explanation: Explanation) -> Waterfall | str:
    """Return the way to the winner, or a sentence on why there is none."""
    winner = next((record for record in explanation.contest if record.is_chosen), None)
    if winner is None or winner.seconds is None:
        return "Nothing was chosen by a race, so that there is no winner to explain."
    engine = fastest_engine(explanation)
    if engine is None:
        return "No other toolchain alone runs the whole model, so that there is nothing to start from."
    if winner.is_whole and not explanation.decisions and SCHEDULES not in winner.target:
        return f"{winner.name} won as it is: no decision of a pass or of a placement is part of it."
    placed = [] if explanation.decisions else list(_region_steps(explanation, engine))
    steps = placed or list(_decision_steps(explanation, engine))
    total = winner.seconds - (engine.seconds or 0.0)
    rest = total - sum(step.delta for step in steps)
    remark = _PLACED if placed else _DECIDED if steps else _UNEXPLAINED
    ends = _SINGLE if winner.ratio is None else _UNRACED if engine.ratio is None else _RACED
    rest_step = WaterfallStep(_REST, rest, is_rest=True)
    return Waterfall(engine, winner, (*steps, rest_step), f"{ends} {remark}")


def fastest_engine(explanation: Explanation) -> ContestRecord | None:
    """Return the fastest candidate by one toolchain other than the winner, one that raced if any did."""
    wholes = [
        record
        for record in explanation.contest
        if record.is_whole and not record.is_chosen and record.seconds is not None
    ]
    return min(wholes, key=lambda record: (record.ratio is None, record.seconds), default=None)


_RACED: Final = "Both ends are medians of the interleaved race."
_SINGLE: Final = "There was no race: both ends are single measurements at different times."
_UNRACED: Final = (
    "The fastest toolchain alone was too slow to race: its latency is that of a single measurement, at "
    "another time than the race."
)
_REST: Final = "not explained by single measurements"
_PLACED: Final = (
    "Each part is the difference of two measurements of its "
    "operators alone, on the winner's toolchain and on the fastest toolchain. The rest is what parts in "
    "isolation do not show: borders, fusion across them, and noise."
)
_DECIDED: Final = (
    "Each decision is the difference of two single "
    "measurements of whole programs at different times, which noise may have made. The rest is what the race "
    "did not confirm."
)
_UNEXPLAINED: Final = (
    "No part of the winner was measured alone on the fastest "
    "toolchain, so that the difference is not divided."
)


def _region_steps(explanation: Explanation, engine: ContestRecord) -> Iterator[WaterfallStep]:
    """Yield the gain of each region that another toolchain than the fastest one runs."""
    for function in explanation.functions:
        for region in function.regions:
            alone = _alone(region, engine.target)
            if region.target != engine.target and region.predicted is not None and alone is not None:
                label = f"{region.label} on {region.toolchain}"
                yield WaterfallStep(label, region.predicted - alone)


def _alone(region: ExplainedRegion, target: str) -> float | None:
    """Return the seconds of the operators of a region on a target, if exactly these were measured."""
    same = (tried for tried in region.tried if tried.target == target and tried.nodes == region.nodes)
    return next((tried.seconds for tried in same if tried.seconds is not None), None)


def _decision_steps(explanation: Explanation, engine: ContestRecord) -> Iterator[WaterfallStep]:
    """Yield the gain of each chosen candidate of a tuning pass against the program before it."""
    single = next(
        (
            trial.cost
            for trial in explanation.trials
            if trial.target == engine.target
            and trial.workload == explanation.workload
            and trial.kind == "whole"
        ),
        None,
    )
    current = single
    for tree in explanation.tuning:
        for label, seconds in _chosen(tree):
            if current is not None and abs(seconds - current) > _LEAST * current:
                yield WaterfallStep(label, seconds - current)
            current = seconds


def _chosen(record: TuningRecord) -> Iterator[tuple[str, float]]:
    """Yield the chosen candidates below a pass with their seconds, inner ones first."""
    for child in record.children:
        if not child.is_candidate:
            yield from _chosen(child)
        elif child.is_chosen:
            start = _unchanged(child)
            if start is not None:
                yield f"{record.name}: {child.name}", start
            yield from _chosen(child)
            if start is None and child.seconds is not None:
                yield f"{record.name}: {child.name}", child.seconds


def _unchanged(candidate: TuningRecord) -> float | None:
    """Return the seconds of a candidate before the passes inside it."""
    names = (inner for inner in candidate.children if inner.name == AS_IT_IS or inner.children)
    for inner in names:
        if inner.is_candidate and inner.seconds is not None:
            return inner.seconds
        for option in inner.children:
            if option.name == AS_IT_IS and option.seconds is not None:
                return option.seconds
    return None
