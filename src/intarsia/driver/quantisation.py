"""Preparation of quantisation in a run: scales from the user's inputs, and errors on inputs held back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from intarsia.driver.baselines import engines, whole_name
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.passes import AnnotateQuantization
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.passes import TuneQuantization
from intarsia.tune.quantise.calibrate_quantization import calibrate
from intarsia.tune.quantise.calibration_inputs import CalibrationInputs, calibration_of, read_calibration
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.output_error import Metric, OutputError, Outputs, measure_error, metric_of
from intarsia.tune.quantise.program_runner import running_program
from intarsia.tune.quantise.quantised import in_integers, simplified_program
from intarsia.tune.tuned_candidate import tuned_candidate

Array = npt.NDArray[Any]
CalibrationArgument: TypeAlias = str | PathLike[str] | Mapping[str, Array]
"""FILE.npz or a folder of such files, arrays by input name, or "random"."""

RANDOM: Final = "random"
_RANDOM_SETS: Final = 8
_METHODS: Final = ("minmax", "mse")
"""Calibrators that are tried; that with the least error on the calibration inputs is used."""

_ENGINES_DIFFER: Final = 1.5
"""Factor of the measured error for the bound of a program that was accepted by its metric.

Right integer programs differ by steps of rounding, so that no two engines have the same error."""


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How much worse than float32 a program may be.

    Attributes:
        tolerance: Largest error, as a fraction of the norm of an output; None for no limit but `max_drop`.
        max_drop: Largest drop of the metric; None for none.
        metric: The metric: "top-1", "cosine", or a function.
    """

    tolerance: float | None
    max_drop: float | None
    metric: str | Metric = "top-1"

    @property
    def measured_metric(self) -> Metric | None:
        """The metric, if it limits anything."""
        return None if self.max_drop is None else metric_of(self.metric)

    def allows(self, error: OutputError) -> bool:
        """Whether a program with this error may be chosen."""
        fits = self.tolerance is None or error.relative <= self.tolerance
        return fits and (self.max_drop is None or error.drop <= self.max_drop)

    def bound(self, error: OutputError) -> float:
        """Return the error bound of a program that was accepted with this error."""
        return self.tolerance if self.tolerance is not None else max(1e-6, _ENGINES_DIFFER * error.relative)


@dataclass(frozen=True, slots=True, eq=False)
class Quantisation:
    """What quantisation adds to a run.

    Attributes:
        passes: Tuning passes to run before the others; none if nothing can be quantised within the budget.
        inputs: Input arrays that candidates are measured and judged on.
        notes: Sentences for people: which error was measured on which inputs.
    """

    passes: tuple[Pass, ...] = ()
    inputs: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def check_quantisation(
    calibration: CalibrationArgument | None, tolerance: float | None, max_drop: float | None, *, exact: bool
) -> None:
    """Check the options of quantisation.

    Raises:
        UsageError: There are calibration inputs without a budget of errors, a budget without them, or exact
            results are required.
    """
    if max_drop is not None and not max_drop >= 0:
        raise UsageError(f"the largest drop is {max_drop}, expected 0 or more")
    if calibration is None:
        if max_drop is not None:
            raise UsageError(
                "a largest drop of a metric is given, but no inputs to measure it on",
                help="give calibration inputs: --calibration FILE.npz",
            )
        return
    if exact:
        raise UsageError("exact results are required, but calibration is for narrower types")
    if tolerance is None and max_drop is None:
        raise UsageError(
            "calibration inputs are given, but not how large errors may be",
            help="give --tolerance 0.05 for errors of 5 % of an output, or --max-drop 0.01 for 1 % accuracy",
        )


def prepare_quantisation(
    module: IRModule,
    calibration: CalibrationArgument,
    budget: ErrorBudget,
    seed: int,
    on_note: Callable[[str], object],
) -> Quantisation:
    """Calibrate a program on half of the inputs, and measure its error in integers on the other half.

    Args:
        module: The program.
        calibration: Input sets.
        budget: Limits of the error.
        seed: Seed of random inputs.
        on_note: Function that is called with each note.

    Raises:
        InputError: The inputs cannot be read, or do not fit the program.
        UsageError: A value is not finite on a calibration input.
        ExecutionError: No toolchain runs the program.
    """
    data = _read(module, calibration, seed)
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        on_note(text)

    if calibration == RANDOM:
        note("calibrated on random inputs: errors on real inputs will differ; give --calibration FILE.npz")
    used, held_back = data.split()
    simplified = simplified_program(module)
    annotated = AnnotateQuantization()(simplified)
    if annotated is simplified:
        note("nothing to quantise: the model has no convolution or product with constant weights")
        return Quantisation((), held_back.inputs[0], tuple(notes))
    method, record = _calibrate(simplified, annotated, used)
    expected = _results(simplified, held_back)
    program = in_integers(simplified, record, (), method)
    with running_program(program) as run:
        error = measure_error(run, held_back, expected, budget.measured_metric)
    sets = f"{len(held_back.inputs)} input sets of {data.source}"
    sets += f" ({len(used.inputs)} used to calibrate, {method})"
    drop = "" if budget.max_drop is None else f", a drop of {error.drop:.3g}"
    is_allowed = budget.allows(error)
    fate = "" if is_allowed else ", more than is allowed: it is not tried"
    note(f"int8 has an error of {error.relative:.3g} ({error.decibels:.1f} dB){drop} on {sets}{fate}")
    passes = (TuneQuantization(tolerance=budget.bound(error), record=record.text, method=method),)
    return Quantisation(passes if is_allowed else (), held_back.inputs[0], tuple(notes))


def quantised_entrants(
    workload: Workload, targets: Sequence[Target], passes: Sequence[Pass]
) -> list[Entrant]:
    """Return each toolchain alone with layers in integers, as passes of a run offer it.

    They are measured in any case: a toolchain that is slow in float32 may be the fastest in integers.

    Args:
        workload: The model, with its inputs.
        targets: Targets that may run it.
        passes: Passes of the run.
    """
    offered = [item.decisions() for item in passes if isinstance(item, TuneQuantization)]
    return [
        Entrant(
            f"{whole_name(target)} {name}",
            MeasureInput(workload, target, tuned_candidate((decision,), WHOLE)),
        )
        for target in engines(targets)
        for decisions in offered
        for name, decision in decisions.items()
    ]


def _read(module: IRModule, calibration: CalibrationArgument, seed: int) -> CalibrationInputs:
    main = module["main"]
    if isinstance(calibration, Mapping):
        return calibration_of(calibration, main)
    if calibration == RANDOM:
        sets = tuple(random_inputs(main, seed + number) for number in range(_RANDOM_SETS))
        return CalibrationInputs(sets, (), "random inputs")
    return read_calibration(Path(calibration), main)


def _calibrate(
    simplified: IRModule, annotated: IRModule, data: CalibrationInputs
) -> tuple[str, CalibrationRecord]:
    """Return the calibrator with the least error on the calibration inputs, and its ranges."""
    expected = _results(simplified, data)
    tried: list[tuple[float, str, CalibrationRecord]] = []
    for method in _METHODS:
        # Read from its text, as workers do: means have fewer digits there.
        record = CalibrationRecord.from_text(calibrate(annotated, data.inputs, method).text)
        with running_program(in_integers(simplified, record, (), method)) as run:
            tried.append((measure_error(run, data, expected, None).relative, method, record))
    _, method, record = min(tried, key=lambda item: item[0])
    return method, record


def _results(program: IRModule, data: CalibrationInputs) -> list[Outputs]:
    with running_program(program) as run:
        return [run(inputs) for inputs in data.inputs]
