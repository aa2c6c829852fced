"""What a search of a kernel can gain, and why it is left out."""

from math import inf

import pytest

from intarsia.autoschedule.tuning.kernel_outlook import ATTAINABLE, KernelOutlook


def test_the_gain_ends_at_the_attainable_share_of_the_roofline() -> None:
    assert KernelOutlook(10.0, 3.0).gain == pytest.approx(10.0 - 3.0 / ATTAINABLE)
    assert KernelOutlook(4.0, 3.0).gain == 0.0
    assert KernelOutlook(inf, 3.0).gain == 0.0


@pytest.mark.parametrize(
    ("seconds", "bound", "reason"),
    [
        (10.0, 1.0, ""),
        (10.0, 9.0, "it is near its roofline: at 90% of it"),
        (1.0, 3.0, "it is near its roofline: at 100% of it"),
        (0.5, 0.1, "it can gain too little: 0.3% of the kernels' time at most"),
        (inf, 1.0, "its default schedule was not measured"),
    ],
)
def test_reasons(seconds: float, bound: float, reason: str) -> None:
    assert KernelOutlook(seconds, bound).reason_to_skip(100.0, 0.01) == reason
