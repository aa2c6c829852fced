"""What a schedule search of a kernel can gain for the whole model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

ATTAINABLE: Final = 0.6
"""Share of the roofline that schedules reach on most kernels; what is faster is not searched."""


@dataclass(frozen=True, slots=True)
class KernelOutlook:
    """Time of a kernel, and its roofline.

    Attributes:
        seconds: Seconds of all its calls in a run of the model with its best measured schedule.
        bound: Lower bound of these seconds by the roofline.
    """

    seconds: float
    bound: float

    @property
    def gain(self) -> float:
        """Seconds that a search can gain per run of the model, by estimate; 0 if the kernel does not run."""
        return max(0.0, self.seconds - self.bound / ATTAINABLE) if math.isfinite(self.seconds) else 0.0

    def reason_to_skip(self, total: float, least_share: float) -> str:
        """Return in words why the kernel is not searched; "" if it is.

        Args:
            total: Seconds of all kernels in a run of the model.
            least_share: Least share of `total` that a search must be able to gain.
        """
        if not math.isfinite(self.seconds):
            return "its default schedule was not measured"
        if self.gain <= 0:
            return f"it is near its roofline: at {min(1.0, self.bound / self.seconds):.0%} of it"
        if self.gain < least_share * total:
            return f"it can gain too little: {self.gain / total:.1%} of the kernels' time at most"
        return ""
