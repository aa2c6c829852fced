"""What is observed of the values to quantise, while a program runs on calibration inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, Expr, IRModule, substitute, with_fields
from intarsia.measure.judge.exposed_program import exposing
from intarsia.passes.quantise.heavy_layer import annotated_value, heavy_layers, is_annotation, top_level
from intarsia.passes.quantise.integer_values import is_moved
from intarsia.support.errors import UsageError
from intarsia.tune.quantise.calibrators import BINS, Histogram, Range
from intarsia.tune.quantise.program_runner import ProgramRunner, running_program

Array = npt.NDArray[Any]
InputSets = Sequence[Mapping[str, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class ObservedValue:
    """A value of float32 that is to be quantised.

    Attributes:
        key: Its number in the program.
        limits: Its least and largest value.
        mean: Mean of each channel; None if no layer reads it by channels.
        histogram: Its histogram over these limits; of one bin if none was requested.
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


def observe(mod: IRModule, inputs: InputSets, *, histograms: bool) -> tuple[ObservedValue, ...]:
    """Run an annotated program on input sets, and return what is observed of the annotated values.

    Args:
        mod: Program with annotations in @main.
        inputs: Input sets, by parameter name.
        histograms: Whether histograms are needed; the program then runs twice on each set.

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
    axes = _channel_axes(mod)
    with running_program(exposing(plain, [replaced[mark] for mark in marks.values()])) as run:
        limits, means = _limits_and_means(run, inputs, list(marks), axes)
        counts = _counts(run, inputs, limits) if histograms else {}
    return tuple(
        ObservedValue(
            key,
            limits[key],
            means.get(key),
            Histogram(*limits[key], counts.get(key, np.ones(1, np.int64))),
        )
        for key in marks
    )


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


def _limits_and_means(
    run: ProgramRunner, inputs: InputSets, keys: Sequence[int], axes: Mapping[int, int]
) -> tuple[dict[int, Range], dict[int, Array]]:
    limits: dict[int, Range] = {}
    sums: dict[int, Array] = {}
    for key, array in _values(run, inputs, keys):
        if not array.size:
            continue
        low, high = float(array.min()), float(array.max())
        if not np.isfinite([low, high]).all():
            raise UsageError(
                "a value that is to be quantised is not finite on a calibration input",
                help="give inputs for which the model computes numbers",
            )
        before = limits.get(key, (low, high))
        limits[key] = min(low, before[0]), max(high, before[1])
        if key in axes and array.ndim >= -axes[key]:
            others = tuple(axis for axis in range(array.ndim) if axis != array.ndim + axes[key])
            sums[key] = sums.get(key, 0.0) + array.mean(axis=others, dtype=np.float64)
    means = {key: (total / len(inputs)).astype(np.float32) for key, total in sums.items()}
    return {key: limits.get(key, (0.0, 0.0)) for key in keys}, means


def _counts(run: ProgramRunner, inputs: InputSets, limits: Mapping[int, Range]) -> dict[int, Array]:
    counts: dict[int, Array] = {}
    for key, array in _values(run, inputs, list(limits)):
        low, high = limits[key]
        if high > low:
            counts[key] = counts.get(key, 0) + np.histogram(array, BINS, (low, high))[0]
    return counts
