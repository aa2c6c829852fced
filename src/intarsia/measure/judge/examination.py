"""Examine a candidate: call it on several input sets and check the results.

A candidate that returns its first result for ever is right on the first call. So is one that writes every
result into the same memory, or that forgets to clear a sum. So input sets alternate, the first one again at
the end (A, B, A), every result is kept, and at the end
no earlier result may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.gate_report import (
    Array,
    GateReport,
    InputSetError,
    input_set_error,
    joined_report,
    structure_report,
)
from intarsia.measure.judge.trials import Trial
from intarsia.measure.whole_run import run_arrays
from intarsia.runtime.executable import Executable

Call = Callable[[Mapping[str, Array]], Sequence[Array]]

_POISON_BYTE: Final = 0xAA


def examine(executable: Executable, trials: Sequence[Trial]) -> GateReport:
    """Check a candidate on all input sets, and on the first one again.

    Args:
        executable: The candidate; what it raises propagates.
        trials: Input sets with their gates.
    """
    return examine_calls(lambda inputs: run_arrays(executable, inputs), trials)


def examine_calls(call: Call, trials: Sequence[Trial]) -> GateReport:
    """Check a function of an input set as `examine` checks a candidate.

    The report has the error on each input set up to the first that is wrong.
    """
    reports: list[GateReport] = []
    errors: list[InputSetError] = []
    kept: list[tuple[Trial, Sequence[Array], list[Array]]] = []
    for number, trial in enumerate((*trials, trials[0])):
        outputs = call(trial.inputs)
        report = trial.gate.check(outputs)
        reports.append(_with_occasion(report, trial, number, len(trials)))
        if number < len(trials):
            errors.append(input_set_error(trial.title, report))
        elif not report.passed:
            errors.append(input_set_error(f"{trial.title} again", report))
        if not report.passed:
            wrong = _with_state(reports[-1], outputs, [copies for _, _, copies in kept])
            return replace(wrong, by_inputs=tuple(errors))
        kept.append((trial, outputs, [np.array(array) for array in outputs]))
    for trial, outputs, copies in kept:
        for name, array, copy in zip(trial.gate.names, outputs, copies, strict=True):
            if not _is_same(array, copy):
                return structure_report(f'output "{name}" of an earlier call was overwritten by a later one')
    return replace(joined_report(reports), by_inputs=tuple(errors))


def examine_buffers(executable: Executable, trials: Sequence[Trial]) -> GateReport:
    """Check a candidate that has been timed, on changed inputs, with its outputs in poisoned memory.

    Then elements that it does not write are not right by chance. The last input set comes first, as the
    candidate
    was timed on another one.

    Args:
        executable: The candidate; what it raises propagates.
        trials: Input sets with their gates.
    """
    reports = []
    for trial in (trials[-1], trials[0]):
        outputs = _run_into_poison(executable, trial)
        report = trial.gate.check(outputs)
        if not report.passed:
            return replace(report, message=f"in poisoned memory: {report.message}")
        reports.append(report)
    return joined_report(reports)


def _run_into_poison(executable: Executable, trial: Trial) -> Sequence[Array]:
    expected = trial.gate.expected
    if any(element_kind(array.dtype) is ElementKind.TEXT for array in expected):
        return run_arrays(executable, trial.inputs)  # texts have no buffers
    infos = executable.outputs
    if any(
        info.shape is None or any(not isinstance(dim, int) or dim < 0 for dim in info.shape) for info in infos
    ):
        return run_arrays(executable, trial.inputs)  # sizes are known after the run only
    buffers = [poisoned(array) for array in expected]
    executable.run_into(dict(trial.inputs), buffers)
    return buffers


def poisoned(expected: Array) -> Array:
    """Return an array like another one, filled with NaN, or with bytes 0xAA for types without NaN."""
    array = np.empty(expected.shape, expected.dtype)
    if element_kind(expected.dtype) in {ElementKind.FLOAT, ElementKind.COMPLEX} and expected.itemsize > 1:
        array[...] = np.array(float("nan")).astype(expected.dtype)
    elif expected.dtype != np.bool_ and array.size:
        array.reshape(-1).view(np.uint8)[...] = _POISON_BYTE
    return array


def _with_occasion(report: GateReport, trial: Trial, number: int, count: int) -> GateReport:
    if report.passed or number == 0:
        return report
    occasion = "second call with the same inputs" if number == count else f"{trial.name} inputs"
    return replace(report, message=f"{occasion}: {report.message}")


def _with_state(
    report: GateReport, outputs: Sequence[Array], earlier: Sequence[Sequence[Array]]
) -> GateReport:
    """Return the report of a wrong result, with a note if it is the result of an earlier call."""
    if not any(all(map(_is_same, outputs, copies)) for copies in earlier if len(copies) == len(outputs)):
        return report
    return replace(report, message=f"{report.message}; it is the result of an earlier call: state is kept")


def _is_same(array: Any, copy: Array) -> bool:
    left, right = np.asarray(array), copy
    if element_kind(left.dtype) is ElementKind.TEXT:
        return bool((left == right).all())
    return left.tobytes() == right.tobytes()
