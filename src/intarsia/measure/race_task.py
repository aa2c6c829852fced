"""The tasks of a worker in a race: candidates stay loaded in its process, and are timed interleaved."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, check_candidate, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.sized_calls import Turns, sized_calls
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.runtime.artifact_load import load
from intarsia.support.closed_on_exit import ClosedOnExit


@dataclass(frozen=True, slots=True)
class Racer:
    """A candidate that waits in this process for its turns.

    Attributes:
        loaded: The candidate; closing it unloads it.
        turns: Its calls, warm.
        check: Function that compares its results with the reference after the race.
    """

    loaded: ClosedOnExit
    turns: Turns
    check: Callable[[], Outcome]


_RACERS: dict[Path, Racer] = {}
"""Candidates that race in this process; they stay loaded from turn to turn."""


def take_turn(folder: Path, target: str, artifact: Path, policy: TimingPolicy) -> Outcome:
    """Take one sample of a program of a race; its first turn in a process loads it and warms it up.

    Returns:
        The weighted mean over the timed sizes; if there are several, its parts have the cost at each of them,
        with the sizes as message.
    """
    return take_turn_with(artifact, partial(_enter, WorkloadFolder(folder), target, artifact, policy))


def take_turn_with(artifact: Path, enter: Callable[[], Racer]) -> Outcome:
    """Take one sample of a candidate of a race.

    Args:
        artifact: Folder of the candidate, by which it is found at its next turn.
        enter: Function that loads it and warms it up, at its first turn in a process.
    """
    try:
        if artifact not in _RACERS:
            _RACERS[artifact] = enter()
        racer = _RACERS[artifact]
        mean, seconds = racer.turns.take()
    except Exception as error:  # toolchains raise what they like
        _unload(artifact)
        return failure_outcome(MeasureError.RUNTIME, error)
    pairs = zip(racer.turns.calls, seconds, strict=True) if len(seconds) > 1 else ()
    parts = tuple(Outcome(message=item.label, costs=(value,)) for item, value in pairs)
    return Outcome(costs=(mean,), parts=parts)


def leave_race(artifact: Path) -> Outcome:
    """Unload a candidate; check before whether it is still right, after calls that reuse the same buffers."""
    racer = _RACERS.pop(artifact, None)
    if racer is None:  # its process was lost after its last turn
        return Outcome()
    with racer.loaded:
        try:
            return racer.check()
        except Exception as error:  # as above
            return failure_outcome(MeasureError.RUNTIME, error)


def _unload(artifact: Path) -> None:
    """Unload a candidate that has failed."""
    racer = _RACERS.pop(artifact, None)
    if racer is not None:
        with contextlib.suppress(Exception):  # it may be too broken even for that
            racer.loaded.close()


def _enter(workload: WorkloadFolder, target: str, artifact: Path, policy: TimingPolicy) -> Racer:
    executable = load(artifact)
    turns = Turns.warmed_up(sized_calls(workload, executable), policy)
    return Racer(executable, turns, lambda: check_candidate(workload, target, executable, is_timed=True))
