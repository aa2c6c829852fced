"""How much worse than float32 a program may be, and the inputs that this is measured on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from intarsia.support.errors import UsageError
from intarsia.tune.quantise.metrics import TOP_1, Metric, metric_of
from intarsia.tune.quantise.output_error import OutputError

Array = npt.NDArray[Any]
CalibrationArgument: TypeAlias = str | PathLike[str] | Mapping[str, Array]
"""FILE.npz or a folder of such files, arrays by input name, or "random"."""

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
    metric: str | Metric = TOP_1

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


def check_quantisation(
    calibration: CalibrationArgument | None,
    tolerance: float | None,
    max_drop: float | None,
    metric: str | Metric = TOP_1,
    *,
    exact: bool,
) -> None:
    """Check the options of quantisation.

    Raises:
        UsageError: There are calibration inputs without a budget of errors, a budget without them, exact
            results are required, there is no such metric, no limit for it, or the tolerance is not between
            0 and 1.
    """
    metric_of(metric)
    if tolerance is not None and not 0 < tolerance < 1:
        # Zeros in place of an output have an error of 1. Whoever writes 5 means 5 %.
        raise UsageError(
            f"the tolerance {tolerance:g} is not between 0 and 1: it is a fraction of an output",
            help="write 0.05 for errors of 5 % of an output, or --tolerance 26dB on the command line",
        )
    if metric != TOP_1 and max_drop is None:
        raise UsageError(
            "a metric is given, but not how much it may drop",
            help="give --max-drop 0.01 and --calibration FILE.npz",
        )
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
