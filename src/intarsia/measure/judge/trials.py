"""Several input sets of a program, each with its gate: some mistakes show on one kind of inputs only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from intarsia.ir import IRModule, TensorType, Var
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.inputs import ATTEMPTS, InputKind, input_set, random_inputs
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.numeric_check import UNSTABLE, NumericCheck
from intarsia.measure.judge.quorum import DEFAULT_LIMITS, JudgeLimits, Panel
from intarsia.measure.judge.ruling import Ruling
from intarsia.measure.judge.steps.range_check import UNSTABLE_SHARE
from intarsia.measure.judge.tolerance import machine_epsilon
from intarsia.measure.work import random_text
from intarsia.support.callbacks import silent
from intarsia.support.errors import IntarsiaError

_SETS: Final = 3
"""Number of input sets, if possible: fewer do not show results that are kept from earlier calls."""

_AMPLIFIED: Final = 32.0
_AMPLIFIED_EPSILONS: Final = 1024.0
"""Disagreement of trusted runs from which on a program amplifies rounding errors: as a multiple of that on
the first set, and at least so many machine epsilons. It is at most 1.5 times that of the first set on seven
models, and 2,000 times on EfficientNet with offsets of 1000, where correct engines differ by half of the
output."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An input set with the gate for its results.

    Attributes:
        name: The kind of the input set, for messages.
        inputs: Arrays by parameter name.
        gate: Lets right results for these inputs pass.
        weight: Share of the calls that have inputs of these sizes; 0 where calls are not timed with them.
        label: The sizes of the symbolic dimensions as text.
    """

    name: str
    inputs: Mapping[str, Array]
    gate: Gate
    weight: float = 0.0
    label: str = ""

    @property
    def title(self) -> str:
        """The kind of the input set, with the sizes of the symbolic dimensions if there are any."""
        return f"{self.name}, {self.label}" if self.label and self.label != self.name else self.name

    def loosened(self, bound: float | None) -> Self:
        """The trial of a program that may be off by a fraction of the norm; of None, the trial itself."""
        return self if bound is None else replace(self, gate=self.gate.loosened(bound))


def trials_for(
    module: IRModule,
    ordinary: Mapping[str, Array],
    limits: JudgeLimits = DEFAULT_LIMITS,
    seed: int = 0,
    on_judge: Callable[[str], object] = silent,
) -> tuple[Trial, ...]:
    """Return input sets of three kinds, each with the gate of its right result.

    Sets for which the program's own result is not finite, or on which it amplifies rounding errors, are
    scaled down; those that no judge computes, or on which judges do not agree, are left out, and further
    ordinary ones take their place.

    Args:
        module: Program without marked toolchains.
        ordinary: The first set: ordinary or real data, by parameter name.
        limits: Limits of the panel, and its judges.
        seed: Seed of the other sets.
        on_judge: Called with the name of each judge that starts, as for `Panel`.

    Raises:
        IntarsiaError: No judge computes the program on the first set.
    """
    with Panel(module, limits, on_judge) as panel:
        first = Trial(InputKind.ORDINARY, ordinary, Gate.of_ruling(panel.ruling(ordinary)))
        others = [
            trial
            for kind in (InputKind.LARGE, InputKind.EDGES)
            if (trial := _trial(panel, first, kind, seed)) is not None
        ]
        others += _further_trials(panel, ordinary, seed, _SETS - 1 - len(others))
    trials = (first, *others)
    notes = [f"inputs: {', '.join(trial.name for trial in trials)}"]
    if drawn := random_text(module):
        notes.append(drawn)
    if names := ", ".join(f'"{name}"' for name in _constant_outputs(trials)):
        notes.append(f"nearly the same for all inputs, which proves little: {names}")
    notes += _unstable_outputs(trials)
    gate = replace(first.gate, reference="; ".join((first.gate.reference, *notes)))
    return (replace(first, gate=gate), *others)


def _trial(panel: Panel, first: Trial, kind: InputKind, seed: int) -> Trial | None:
    """Return the largest set of a kind on which the program is well conditioned, or else the best of all."""
    main, ordinary, tried = panel.module["main"], first.inputs, first.inputs
    best: Trial | None = None
    least = math.inf
    for attempt in range(ATTEMPTS):
        inputs = input_set(main, ordinary, kind, seed, attempt)
        if _is_equal(inputs, tried) or _is_equal(inputs, ordinary):
            continue
        tried = inputs
        ruling = _proven_ruling(panel, inputs)
        if ruling is None or not all(map(_is_finite, ruling.runs.outputs)):
            continue
        trial = Trial(kind, inputs, Gate.of_ruling(ruling))
        amplification = _amplification(trial, first)
        if amplification < least:
            best, least = trial, amplification
        if least <= 1:
            break
    return best


def _amplification(trial: Trial, first: Trial) -> float:
    """Return how much more trusted runs disagree than on the first set, above 1 if much more."""
    usual = {check.position: check.disagreement for check in _numeric_checks(first)}
    return max(
        (
            check.disagreement / _most_disagreement(check, usual.get(check.position, 0.0))
            for check in _numeric_checks(trial)
        ),
        default=0.0,
    )


def _most_disagreement(check: NumericCheck, usual: float) -> float:
    return max(_AMPLIFIED * usual, _AMPLIFIED_EPSILONS * machine_epsilon(check.expected.dtype))


def _numeric_checks(trial: Trial) -> Iterator[NumericCheck]:
    return (check for check in trial.gate.checks if isinstance(check, NumericCheck))


def _further_trials(panel: Panel, ordinary: Mapping[str, Array], seed: int, count: int) -> Iterator[Trial]:
    """Ordinary input sets of other seeds.

    Their results need not be finite: those of the first set may not be either.
    """
    main = panel.module["main"]
    shapes = {param.name: _with_shape(param, ordinary[param.name]) for param in main.params}
    for number in range(1, count + 1):
        inputs = random_inputs(main, seed + number, shapes)
        if _is_equal(inputs, ordinary):
            return
        ruling = _proven_ruling(panel, inputs)
        if ruling is not None:
            yield Trial(f"{InputKind.ORDINARY} {number + 1}", inputs, Gate.of_ruling(ruling))


def _with_shape(param: Var, array: Array) -> TensorType:
    """Return the type of a parameter with the shape of an array."""
    assert isinstance(param.checked_type, TensorType)
    return TensorType(array.shape, param.checked_type.dtype)


def _proven_ruling(panel: Panel, inputs: Mapping[str, Array]) -> Ruling | None:
    try:
        ruling = panel.ruling(inputs)
    except IntarsiaError:  # such as an index that is out of range
        return None
    return ruling if ruling.is_proven else None


def _is_equal(inputs: Mapping[str, Array], others: Mapping[str, Array]) -> bool:
    return all(np.array_equal(array, others[name]) for name, array in inputs.items())


def _is_finite(array: Array) -> bool:
    kind = element_kind(array.dtype)
    return kind not in {ElementKind.FLOAT, ElementKind.COMPLEX} or bool(np.isfinite(array).all())


def _unstable_outputs(trials: Sequence[Trial]) -> Iterator[str]:
    """A sentence about each output that ties, steps or overflow decide: in these, engines may differ."""
    for trial in trials:
        for check in _numeric_checks(trial):
            about = f'output "{check.name}" is unstable for {trial.name} inputs'
            if check.disagreement > UNSTABLE:
                yield f"{about}: trusted runs differ by {100 * check.disagreement:.0f} %"
            elif check.undecided > UNSTABLE_SHARE:
                yield f"{about}: {100 * check.undecided:.3g} % of it lies behind a step that is near"


def _constant_outputs(trials: Sequence[Trial]) -> Iterator[str]:
    """Names of outputs for which the result of another input set would pass."""
    first, *others = (trial.gate for trial in trials)
    if not others:
        return
    for check in first.checks:
        results = [gate.expected for gate in others]
        if all(_has_shapes(result, first.expected) and check.check(result).passed for result in results):
            yield from (first.names[position] for position in check.positions)


def _has_shapes(result: Sequence[Array], expected: Sequence[Array]) -> bool:
    return all(one.shape == other.shape for one, other in zip(result, expected, strict=True))
