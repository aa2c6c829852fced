"""What the time of a run was spent on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.report.explanation import Explanation
from intarsia.report.run_records import TrialRecord

STAGES: Final = {
    "import": "reading the model",
    "reference": "computing the reference result, with the first builds",
    "measure": "measuring each toolchain alone",
    "tune": "tuning passes and placement",
    "search": "placement of parts",
    "schedules": "search of schedules",
    "race": "the interleaved race",
    "kernels timed": "kernels within programs",
}
"""Stages of a run in words."""

_KINDS: Final = {
    "whole": "one toolchain for the whole model",
    "tuned": "whole programs after decisions",
    "collage": "mixes of toolchains",
    "as it is": "the program as it is",
    "race": "the interleaved race",
    "kernels timed": "kernels within programs",
}


@dataclass(frozen=True, slots=True)
class SpentOn:
    """Seconds that measurements of one kind took.

    Attributes:
        label: Kind in words.
        seconds: Seconds of all of them; of stored measurements, those of the run that made them.
        count: Number of measurements.
        failed: Number of those without a latency.
    """

    label: str
    seconds: float
    count: int
    failed: int


def spending(explanation: Explanation) -> tuple[SpentOn, ...]:
    """Return what measurements took by kind, the most expensive first."""
    groups: dict[str, list[TrialRecord]] = {}
    for trial in explanation.trials:
        groups.setdefault(_kind(trial, explanation.workload), []).append(trial)
    spent = (_spent(label, trials) for label, trials in groups.items())
    return tuple(sorted(spent, key=lambda item: -item.seconds))


def _kind(trial: TrialRecord, workload: str) -> str:
    return _KINDS.get(trial.kind, trial.kind) if trial.workload == workload else "parts of the model"


def _spent(label: str, trials: Sequence[TrialRecord]) -> SpentOn:
    failed = sum(trial.cost is None for trial in trials)
    return SpentOn(label, sum(trial.seconds for trial in trials), len(trials), failed)
