"""The rule for intarsia::token_filter, for a number of tokens that is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.te.operators.checked_call import check, make_call

from intarsia.op.opset import INTARSIA_DOMAIN


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("first", "count", "step"), [(0, 1, 1), (-1, 3, 1), (-6, 3, 3), (2, 1, 1), (-9, 2, 1)]
)
def test_every_form(first: int, count: int, step: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, taps = (rng.standard_normal(shape).astype(np.dtype(dtype)) for shape in ((2, 5, 3), (count, 3)))
    check(make_call("token_filter", x, taps, domain=INTARSIA_DOMAIN, first=first, step=step), length=8)
