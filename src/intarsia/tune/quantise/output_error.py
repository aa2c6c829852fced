"""Errors of a program in integers against float32, on the inputs of a user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.tune.quantise.calibration_inputs import CalibrationInputs
from intarsia.tune.quantise.metrics import Metric, Outputs
from intarsia.tune.quantise.program_runner import ProgramRunner

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class OutputError:
    """The error of a program.

    Attributes:
        relative: Largest RMS error of an output on an input set, as a fraction of the output's RMS.
        drop: Metric of float32 minus that of the program; 0 without a metric.
    """

    relative: float
    drop: float = 0.0

    @property
    def decibels(self) -> float:
        """Ratio of the power of the signal to that of the noise."""
        return -20 * math.log10(self.relative) if self.relative > 0 else math.inf


def relative_error(expected: Outputs, actual: Outputs) -> float:
    """Return the largest RMS error of an output, as a fraction of its RMS; infinite if one is not finite."""
    return max(map(_relative, expected, actual), default=0.0)


def _relative(expected: Array, actual: Array) -> float:
    if expected.dtype.kind not in "fV":
        return 0.0
    wide = expected.astype(np.float64)
    difference = wide - actual.astype(np.float64)
    if not np.isfinite(difference).all():
        return math.inf
    size, error = (
        float(np.sqrt(np.mean(array * array))) if array.size else 0.0 for array in (wide, difference)
    )
    return error / size if size else (math.inf if error else 0.0)


def measure_error(
    run: ProgramRunner, data: CalibrationInputs, expected: Sequence[Outputs], metric: Metric | None
) -> OutputError:
    """Run a program on input sets, and return its error.

    Args:
        run: Function that runs the program.
        data: The input sets.
        expected: Results of float32 for each set.
        metric: Metric whose drop is measured, as the mean over the sets; None for none.
    """
    relative, drops = 0.0, []
    for number, inputs in enumerate(data.inputs):
        outputs, wanted = run(inputs), expected[number]
        relative = max(relative, relative_error(wanted, outputs))
        if metric is not None:
            labels = data.labels[number] if data.labels else None
            drops.append(metric(wanted, wanted, labels) - metric(outputs, wanted, labels))
    return OutputError(relative, float(np.mean(drops)) if drops else 0.0)
