"""Errors of a winner by output, input set and judge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.judge.accuracy import judged_trials
from intarsia.measure.judge.trials import Trial
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.whole_run import run_arrays
from intarsia.report.run_records import OutputDeviation
from intarsia.runtime.executable import Executable


def winner_errors(
    winner: MeasureInput, executable: Executable, trials: Sequence[Trial]
) -> tuple[OutputDeviation, ...]:
    """Return the errors of a winner, with the error bound of its program if it has one.

    Args:
        winner: Measure input of the winner.
        executable: The winner, built.
        trials: Input sets with the gates of their results.
    """
    program = instantiate(winner.workload.module, winner.target, winner.candidate)
    return output_errors(executable, judged_trials(trials, program))


def output_errors(executable: Executable, trials: Sequence[Trial]) -> tuple[OutputDeviation, ...]:
    """Run an executable on each input set, and return the error of each output.

    Args:
        executable: The winner.
        trials: Input sets with the gates of their results.
    """
    return tuple(record for trial in trials for record in _errors(executable, trial))


def _errors(executable: Executable, trial: Trial) -> Iterator[OutputDeviation]:
    outputs, gate = run_arrays(executable, trial.inputs), trial.gate
    occasion = f"{trial.name}, {trial.label}" if trial.label and trial.label != trial.name else trial.name
    for check in gate.checks:
        report = check.check(outputs)
        yield OutputDeviation(
            occasion,
            gate.reference,
            ", ".join(gate.names[position] for position in check.positions),
            report.verdict if gate.is_proven else "unproven",
            *map(_finite, (report.max_abs_error, report.max_rel_error, report.excess)),
        )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
