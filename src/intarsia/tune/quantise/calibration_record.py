"""Ranges and means of the values to quantise, as text: a trace holds them, and any process applies them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Self

import ml_dtypes
import numpy as np
import numpy.typing as npt

from intarsia.support.errors import UsageError
from intarsia.support.json_text import parse_json_text
from intarsia.tune.quantise.calibrators import Range, calibrated_range
from intarsia.tune.quantise.observation import ObservedValue

Array = npt.NDArray[Any]

_STORED: Final = np.dtype(ml_dtypes.bfloat16)
"""Type of the means in the text: 2 bytes each, of which a large model has 50,000."""


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationRecord:
    """The result of calibration.

    Attributes:
        limits: Range of each value, by its number in the program.
        means: Means of its channels, for some of them.
    """

    limits: MappingProxyType[int, Range]
    means: MappingProxyType[int, Array] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, values: Iterable[ObservedValue], method: str, percentile: float = 99.99) -> Self:
        """Return the ranges that a calibrator selects for observed values."""
        listed = tuple(values)
        limits = {
            value.key: value.limits
            if method == "minmax"
            else calibrated_range(value.histogram, method, percentile)
            for value in listed
        }
        means = {value.key: value.mean for value in listed if value.mean is not None}
        return cls(MappingProxyType(limits), MappingProxyType(means))

    @property
    def text(self) -> str:
        """JSON: for each number the range, and the means in base64."""
        data = {
            str(key): [*limits, *([_encoded(self.means[key])] if key in self.means else [])]
            for key, limits in self.limits.items()
        }
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the record that `text` was made of.

        Raises:
            UsageError: The text is something else.
        """
        try:
            data = {int(key): values for key, values in parse_json_text(text).items()}
            limits = {key: (float(values[0]), float(values[1])) for key, values in data.items()}
            means = {key: _decoded(values[2]) for key, values in data.items() if len(values) > 2}
        except (ValueError, TypeError, AttributeError, IndexError) as error:
            raise UsageError(
                f"a record of a calibration is malformed: {error}",
                help='it is what calibration_record returns, such as {"0":[-1.0,2.5]}',
            ) from None
        return cls(MappingProxyType(limits), MappingProxyType(means))


def _encoded(mean: Array) -> str:
    return base64.b64encode(mean.astype(_STORED).tobytes()).decode()


def _decoded(text: str) -> Array:
    return np.frombuffer(base64.b64decode(text), _STORED).astype(np.float32)
