"""What is observed of the values to quantise, while a program runs on calibration inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, Expr, IRModule, substitute, with_fields
from intarsia.measure.judge.exposed_program import exposing
from intarsia.passes.quantise.heavy_layer import annotated_value, heavy_layers, is_annotation, top_level
from intarsia.passes.quantise.integer_values import is_moved
from intarsia.support.errors import UsageError
from intarsia.tune.quantise.calibrators import Histogram, Range
from intarsia.tune.quantise.program_runner import ProgramRunner, running_program
from intarsia.tune.quantise.samples import Samples

Array = npt.NDArray[Any]
InputSets = Sequence[Mapping[str, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class ObservedValue:
    """A value of float32 that is to be quantised.

    Attributes:
        key: Its number in the program.
        limits: Its least and largest value.
        mean: Mean of each channel; None if no layer reads it by channels.
        histogram: Its histogram over these limits, by samples if it has many elements.
    """

    key: int
    limits: Range
    mean: Array | None
    histogram: Histogram


def annotated_values(mod: IRModule) -> dict[int, Expr]:
    """Return the computed values of @main that are annotated, by their numbers."""
    marks = [node for node in top_level(mod["main"].body) if is_annotation(node)]
    computed = [node for node in marks if not isinstance(annotated_value(node), Constant)]
    # Values behind a move have the number of the value before it, which counts if it is annotated as well.
    return {key_of(mark): mark for mark in sorted(computed, key=_is_direct)}


def key_of(mark: Expr) -> int:
    """Return the number that an annotation has stored of its value."""
    assert isinstance(mark, Call)
    key = mark.attrs["key"]
    assert isinstance(key, int)
    return key


def observe(mod: IRModule, inputs: InputSets) -> tuple[ObservedValue, ...]:
    """Run an annotated program on input sets, and return what is observed of the annotated values.

    Args:
        mod: Program with annotations in @main.
        inputs: Input sets, by parameter name.

    Raises:
        UsageError: There is no input set, or a value is not finite on one of them.
        ExecutionError: No toolchain runs the program.
    """
    marks = annotated_values(mod)
    if not inputs:
        raise UsageError("there are no calibration inputs")
    if not marks:
        return ()
    main = mod["main"]
    replaced: dict[Expr, Expr] = {}
    for node in top_level(main.body):
        if is_annotation(node):
            replaced[node] = substitute(annotated_value(node), replaced)
    plain = mod.with_function("main", with_fields(main, body=substitute(main.body, replaced)))
    observing = _Observing(_channel_axes(mod), len(inputs))
    with running_program(exposing(plain, [replaced[mark] for mark in marks.values()])) as run:
        for key, array in _values(run, inputs, list(marks)):
            if array.size:
                observing.add(key, array)
    return tuple(map(observing.value, marks))


def _channel_axes(mod: IRModule) -> dict[int, int]:
    """Return the axis of the channels of each value that a heavy layer reads, negative."""
    layers = heavy_layers(top_level(mod["main"].body))
    read = ((layer.call.args[0], layer.input_axis) for layer in reversed(layers))
    return {key_of(value): axis for value, axis in read if is_annotation(value) and _is_direct(value)}


def _is_direct(mark: Expr) -> bool:
    """Whether no move stands between an annotation and the value whose number it has."""
    return not is_moved(annotated_value(mark))


def _values(run: ProgramRunner, inputs: InputSets, keys: Sequence[int]) -> Iterator[tuple[int, Array]]:
    for arrays in inputs:
        outputs = run(arrays)
        yield from zip(keys, outputs[len(outputs) - len(keys) :], strict=True)


@dataclass(eq=False)
class _Observing:
    """What was observed of values so far.

    Attributes:
        axes: Axis of the channels of the values whose means are wanted, negative.
        runs: Number of runs in all.
    """

    axes: Mapping[int, int]
    runs: int
    _limits: dict[int, Range] = field(default_factory=dict)
    _sums: dict[int, Array] = field(default_factory=dict)
    _samples: dict[int, Samples] = field(default_factory=dict)

    def add(self, key: int, array: Array) -> None:
        """Add a value that a run computed.

        Raises:
            UsageError: It is not finite.
        """
        low, high = float(array.min()), float(array.max())
        if not np.isfinite([low, high]).all():
            raise UsageError(
                "a value that is to be quantised is not finite on a calibration input",
                help="give inputs for which the model computes numbers",
            )
        before = self._limits.get(key, (low, high))
        self._limits[key] = min(low, before[0]), max(high, before[1])
        self._samples.setdefault(key, Samples.of_runs(self.runs)).add(array, (low, high))
        if key in self.axes and array.ndim >= -self.axes[key]:
            others = tuple(axis for axis in range(array.ndim) if axis != array.ndim + self.axes[key])
            self._sums[key] = self._sums.get(key, 0.0) + array.mean(axis=others, dtype=np.float64)

    def value(self, key: int) -> ObservedValue:
        """Return what was observed of a value."""
        limits = self._limits.get(key, (0.0, 0.0))
        mean = (self._sums[key] / self.runs).astype(np.float32) if key in self._sums else None
        counts = self._samples.get(key, Samples(1)).counts(limits)
        return ObservedValue(key, limits, mean, Histogram(*limits, counts))
