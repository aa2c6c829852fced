"""Detect fill values: large values of an output that do not bound the errors of its other values.

A mask puts -1e9 or the lowest number of its type beside values of ordinary size. Tolerances are relative to
the largest value, so that beside such ones anything would pass. An output is split where its other values
cannot come from sums with terms as large as the largest: the
rounding errors of such sums would be larger.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

_FAR = 2.0**-10
"""Fraction of a rounding error, or of its square, that remains by chance."""

Floats = npt.NDArray[np.float64]


def scale_of_rest(pairs: Iterable[tuple[Floats, Floats]], scale: float, eps: float) -> float | None:
    """Return the largest magnitude beside the fill values; None if no values stand apart.

    Values stand apart if the others are all smaller than a rounding error of the largest, and
    * either the large ones are one value (but for the sign) at several places, computed exactly,
    * or the others, not all zero, are smaller even than the square of a rounding error.

    Args:
        pairs: Blocks of the actual and the expected output.
        scale: The largest finite magnitude that is expected.
        eps: Distance from 1 to the next number of the output's type.
    """
    rest, count, is_fill = 0.0, 0, True
    far = _FAR * eps * eps * scale
    for actual, expected in pairs:
        sizes = np.abs(expected)
        large: npt.NDArray[Any] = np.isfinite(sizes) & (sizes > eps * scale)
        rest = max(rest, float(np.max(sizes, initial=0.0, where=np.isfinite(sizes) & ~large)))
        count += int(np.count_nonzero(large))
        is_fill = is_fill and bool((sizes[large] == scale).all() and (actual[large] == expected[large]).all())
        if rest > far and not is_fill:
            return None
    return rest if 0 < rest <= far or (is_fill and count > 1) else None
