"""Errors of a winner by output, input set and judge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from intarsia.measure.judge.trials import Trial
from intarsia.measure.whole_run import run_arrays
from intarsia.report.run_records import OutputDeviation
from intarsia.runtime.executable import Executable


def output_errors(executable: Executable, trials: Sequence[Trial]) -> tuple[OutputDeviation, ...]:
    """Run an executable on each input set, and return the error of each output.

    Args:
        executable: The winner.
        trials: Input sets with the gates of their results.
    """
    return tuple(record for trial in trials for record in _errors(executable, trial))


def _errors(executable: Executable, trial: Trial) -> Iterator[OutputDeviation]:
    outputs, gate = run_arrays(executable, trial.inputs), trial.gate
    for check in gate.checks:
        report = check.check(outputs)
        yield OutputDeviation(
            trial.title,
            gate.reference,
            ", ".join(gate.names[position] for position in check.positions),
            report.verdict if gate.is_proven else "unproven",
            *map(finite, (report.max_abs_error, report.max_rel_error, report.excess)),
        )


def finite(value: float) -> float | None:
    """Return a number, or None for what JSON cannot hold."""
    return float(value) if math.isfinite(value) else None
