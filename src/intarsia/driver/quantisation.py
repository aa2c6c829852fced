"""Preparation of quantisation in a run: scales from the user's inputs, and errors on inputs held back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from intarsia.driver.baselines import NARROW_OPTIONS, engines, has_bfloat16, whole_name
from intarsia.driver.error_budget import CalibrationArgument, ErrorBudget
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.passes import AnnotateQuantization
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.passes import TuneQuantization
from intarsia.tune.quantise.calibrate_quantization import with_scales
from intarsia.tune.quantise.calibration_inputs import CalibrationInputs, calibration_of, read_calibration
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.layer_choice import LayerSearch
from intarsia.tune.quantise.layer_errors import layer_errors
from intarsia.tune.quantise.layer_times import precision_problem
from intarsia.tune.quantise.layer_types import ALL, ALL_INT8, LayerTypes
from intarsia.tune.quantise.metrics import Outputs
from intarsia.tune.quantise.observation import observe
from intarsia.tune.quantise.output_error import OutputError, measure_error
from intarsia.tune.quantise.program_runner import running_program
from intarsia.tune.quantise.program_times import program_times
from intarsia.tune.quantise.quantised import in_integers, simplified_program
from intarsia.tune.quantise.rewrites import Rewrites, possible_rewrites
from intarsia.tune.tuned_candidate import tuned_candidate

Array = npt.NDArray[Any]
RANDOM: Final = "random"
_RANDOM_SETS: Final = 8
_FRONT: Final = (2.0, 4.0, 8.0)
"""Fractions of the largest error that programs of the front have, as divisors: 6, 12 and 18 dB less."""

_SEARCH_SECONDS: Final = 15.0
"""Time for proposals for each budget and toolchain after the first ones."""

_SENSITIVITY_SETS: Final = 2
"""Input sets on which the error of each layer alone is measured: one run for each layer and set."""

TIMED_TOOLCHAINS: Final = ("openvino", "onnxruntime")
"""Toolchains that layers are timed on."""

_ELSE_TIMED: Final = "native"
"""Toolchain that layers are timed on without those: it takes seconds to compile each layer."""

_METHODS: Final = ("minmax", "mse")
"""Calibrators that are tried; that with the least error on the calibration inputs is used."""

_CHOICE_SETS: Final = 4
"""Input sets on which calibrators and rewrites are compared; ranges are those of all."""

_WORTH: Final = 0.95
"""Ratio of errors with and without a rewrite below which it is used: less is chance of the inputs."""


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


def prepare_quantisation(
    module: IRModule,
    calibration: CalibrationArgument,
    budget: ErrorBudget,
    seed: int,
    on_note: Callable[[str], object],
    targets: Sequence[Target] = (),
    *,
    front: bool = False,
) -> Quantisation:
    """Calibrate a program on half of the inputs, and measure its error in integers on the other half.

    Args:
        module: The program.
        calibration: Input sets.
        budget: Limits of the error.
        seed: Seed of random inputs.
        on_note: Function that is called with each note.
        targets: Targets of the run; times of layers are measured on their toolchains.
        front: Whether programs with smaller errors are offered as well.

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
    expected = _results(simplified, held_back)
    if budget.measured_metric is not None:  # a metric that does not fit the outputs is found at once
        budget.measured_metric(expected[0], expected[0], held_back.labels[0] if held_back.labels else None)
    calibrated = _calibrate(simplified, used)

    def measure(layers: LayerTypes) -> OutputError:
        with running_program(calibrated.in_integers(layers)) as run:
            return measure_error(run, held_back, expected, budget.measured_metric)

    error = measure(ALL_INT8)
    is_allowed = budget.allows(error)
    sets = f"{len(held_back.inputs)} input sets of {data.source}"
    note(_error_text(error, budget, f"{sets} ({len(used.inputs)} used to calibrate, {calibrated.text})"))
    offered = [(ALL, error)] if is_allowed else []
    if front or not is_allowed:
        search = _LayerSearch(calibrated, used, budget, error, measure)
        offered += search.choices(engines(targets), front=front, note=note)
    return Quantisation(_passes(offered, budget, calibrated), held_back.inputs[0], tuple(notes))


def _error_text(error: OutputError, budget: ErrorBudget, sets: str) -> str:
    """Return the error with all layers in integers as a sentence, with the sets that it was measured on."""
    drop = "" if budget.max_drop is None else f", a drop of {error.drop:.3g}"
    fate = "" if budget.allows(error) else ", more than is allowed: it is not tried"
    return f"int8 has an error of {error.relative:.3g} ({error.decibels:.1f} dB){drop} on {sets}{fate}"


def _passes(
    offered: Sequence[tuple[str, OutputError]], budget: ErrorBudget, calibrated: _Calibrated
) -> tuple[Pass, ...]:
    """Return the pass that decides between sets of layers; none without a set.

    Args:
        offered: Sets of layers as text, with their errors.
        budget: Limits of the error.
        calibrated: Program with its calibration.
    """
    if not offered:
        return ()
    bound = max(budget.bound(error) for _, error in offered)
    layers = tuple(dict.fromkeys(text for text, _ in offered))
    record, method, rewrites = calibrated.record.text, calibrated.method, calibrated.rewrites
    return (
        TuneQuantization(
            tolerance=bound,
            record=record,
            method=method,
            layers=layers,
            equalizes=rewrites.equalizes,
            smoothing=rewrites.smoothing,
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Calibrated:
    """A program with its calibration.

    Attributes:
        program: Program after its rewrites.
        rewrites: Rewrites of the simplified program.
        method: Name of the calibrator.
        record: Ranges of the values.
    """

    program: IRModule
    rewrites: Rewrites
    method: str
    record: CalibrationRecord

    @property
    def annotated(self) -> IRModule:
        """The program with calibrated annotations of all layers."""
        return with_scales(AnnotateQuantization()(self.program), self.record, self.method)

    @property
    def text(self) -> str:
        """The calibrator and the rewrites."""
        return ", ".join(filter(None, (self.method, self.rewrites.description)))

    def in_integers(self, layers: LayerTypes) -> IRModule:
        """Return the program with layers in narrower types."""
        return in_integers(self.program, self.record, layers, self.method)


@dataclass(frozen=True, slots=True, eq=False)
class _LayerSearch:
    """The search for layers to compute in integers or bfloat16.

    Attributes:
        calibrated: The program.
        data: Calibration inputs.
        budget: Limits of the error.
        error: Error with all layers in integers.
        measure: Function that measures the error of a program with some layers in narrower types.
    """

    calibrated: _Calibrated
    data: CalibrationInputs
    budget: ErrorBudget
    error: OutputError
    measure: Callable[[LayerTypes], OutputError]

    def choices(
        self, targets: Sequence[Target], *, front: bool, note: Callable[[str], object]
    ) -> list[tuple[str, OutputError]]:
        """Return sets of layers as text, with their errors, for each toolchain that layers are timed on."""
        names = {target.toolchain for target in targets}
        others = [_ELSE_TIMED] if _ELSE_TIMED in names else []
        timed: list[str] = [name for name in TIMED_TOOLCHAINS if name in names] or others
        if not timed:
            return []
        sets, annotated = self.data.inputs[:_SENSITIVITY_SETS], self.calibrated.annotated
        errors = layer_errors(annotated, sets, with_bfloat16=has_bfloat16())
        count = len(errors.int8)
        choices: list[tuple[str, OutputError]] = []
        for target in (target for target in targets if target.toolchain in timed):
            try:
                problem = precision_problem(annotated, errors, target)
                search = LayerSearch(problem, self.measure, self._race(target), seconds=_SEARCH_SECONDS)
                chosen = [search.best(budget, self._allows(budget)) for budget in self._budgets(front=front)]
            except IntarsiaError as error:
                note(f"layers were not chosen by their times on {target.toolchain}: {error.problem}")
                continue
            for choice in chosen:
                if choice is not None and len(choice.layers.int8) < count:
                    text = f"{choice.layers.description} of {count}, by times on {target.toolchain}"
                    note(f"{text}: error {choice.error.relative:.3g} ({choice.error.decibels:.1f} dB)")
                    choices.append((choice.layers.text, choice.error))
        return choices

    def _budgets(self, *, front: bool) -> list[float]:
        """Return the largest errors to choose for: that of the user, and halves of it."""
        largest = self.error.relative if self.budget.allows(self.error) else self.budget.tolerance
        start = self.error.relative / 2 if largest is None else largest
        first = [] if self.budget.allows(self.error) else [start]
        return [*first, *(start / part for part in _FRONT)] if front else first

    def _allows(self, budget: float) -> Callable[[OutputError], bool]:
        return lambda error: self.budget.allows(error) and error.relative <= budget

    def _race(self, target: Target) -> Callable[[Sequence[LayerTypes]], Sequence[float]]:
        """Return the function that times programs on a target."""
        inputs, in_integers_of = self.data.inputs[0], self.calibrated.in_integers
        return lambda programs: program_times(list(map(in_integers_of, programs)), target, inputs)


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
        # Others have no kernels for tensors of bfloat16, and would be listed as failures.
        if "bfloat16" not in name or target.toolchain in NARROW_OPTIONS
    ]


def _read(module: IRModule, calibration: CalibrationArgument, seed: int) -> CalibrationInputs:
    main = module["main"]
    if isinstance(calibration, Mapping):
        return calibration_of(calibration, main)
    if calibration == RANDOM:
        sets = tuple(random_inputs(main, seed + number) for number in range(_RANDOM_SETS))
        return CalibrationInputs(sets, (), "random inputs")
    return read_calibration(Path(calibration), main)


def _calibrate(simplified: IRModule, data: CalibrationInputs) -> _Calibrated:
    """Return the program with the calibrator and rewrites of the least error on some calibration inputs.

    Calibrators are tried without rewrites, and rewrites with the best calibrator.
    """
    few = CalibrationInputs(data.inputs[:_CHOICE_SETS], data.labels[:_CHOICE_SETS], data.source)
    expected = _results(simplified, few)

    def error_of(calibrated: _Calibrated) -> float:
        with running_program(calibrated.in_integers(ALL_INT8)) as run:
            return measure_error(run, few, expected, None).relative

    plain = _calibrated(simplified, Rewrites(), data, _METHODS)
    tried = [(error_of(calibrated), calibrated) for calibrated in plain]
    least, best = min(tried, key=lambda item: item[0])
    rewritten = [
        (error_of(calibrated), calibrated)
        for rewrites in possible_rewrites(simplified, few.inputs)
        for calibrated in _calibrated(simplified, rewrites, data, (best.method,))
    ]
    worth = [item for item in rewritten if item[0] < _WORTH * least]
    return min(worth, key=lambda item: item[0], default=(least, best))[1]


def _calibrated(
    simplified: IRModule, rewrites: Rewrites, data: CalibrationInputs, methods: Sequence[str]
) -> list[_Calibrated]:
    """Return the program with each of some calibrators, which all look at the same runs."""
    program = rewrites.apply(simplified)
    seen = observe(AnnotateQuantization()(program), data.inputs)
    # Read from its text, as workers do: means have fewer digits there.
    texts = [CalibrationRecord.of(seen, method).text for method in methods]
    records = map(CalibrationRecord.from_text, texts)
    return [
        _Calibrated(program, rewrites, method, record)
        for method, record in zip(methods, records, strict=True)
    ]


def _results(program: IRModule, data: CalibrationInputs) -> list[Outputs]:
    with running_program(program) as run:
        return [run(inputs) for inputs in data.inputs]
