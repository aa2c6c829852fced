"""The tasks of a worker in a race: candidates stay loaded in its process, and are timed interleaved."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from intarsia.measure.candidate_task import Outcome, check_candidate, failure_outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.sized_calls import Turns, sized_calls
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable


@dataclass(frozen=True, slots=True)
class _Racer:
    """A candidate that waits in this process for its turns.

    Attributes:
        executable: The built candidate.
        turns: Its calls, warm.
    """

    executable: Executable
    turns: Turns


_RACERS: dict[Path, _Racer] = {}
"""Candidates that race in this process; they stay loaded from turn to turn."""


def take_turn(folder: Path, artifact: Path, policy: TimingPolicy) -> Outcome:
    """Take one sample of a candidate of a race; its first turn in a process loads it and warms it up.

    Returns:
        The weighted mean over the timed sizes; if there are several, its parts have the cost at each of them,
        with the sizes as message.
    """
    try:
        if artifact not in _RACERS:
            _RACERS[artifact] = _enter(WorkloadFolder(folder), load(artifact), policy)
        racer = _RACERS[artifact]
        mean, seconds = racer.turns.take()
    except Exception as error:  # toolchains raise what they like
        _unload(artifact)
        return failure_outcome(MeasureError.RUNTIME, error)
    pairs = zip(racer.turns.calls, seconds, strict=True) if len(seconds) > 1 else ()
    parts = tuple(Outcome(message=item.label, costs=(value,)) for item, value in pairs)
    return Outcome(costs=(mean,), parts=parts)


def leave_race(folder: Path, target: str, artifact: Path) -> Outcome:
    """Unload a candidate; check before whether it is still right, after calls that reuse the same buffers."""
    racer = _RACERS.pop(artifact, None)
    if racer is None:  # its process was lost after its last turn
        return Outcome()
    with racer.executable:
        try:
            return check_candidate(WorkloadFolder(folder), target, racer.executable, is_timed=True)
        except Exception as error:  # as above
            return failure_outcome(MeasureError.RUNTIME, error)


def _unload(artifact: Path) -> None:
    """Unload a candidate that has failed."""
    racer = _RACERS.pop(artifact, None)
    if racer is not None:
        with contextlib.suppress(Exception):  # it may be too broken even for that
            racer.executable.close()


def _enter(workload: WorkloadFolder, executable: Executable, policy: TimingPolicy) -> _Racer:
    return _Racer(executable, Turns.warmed_up(sized_calls(workload, executable), policy))
