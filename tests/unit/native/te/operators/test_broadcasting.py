"""How elements of broadcast arguments are read."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compute_rule_checks import rule_call

from intarsia.native.dag import ComputeDAG
from intarsia.native.te.operators import compute, compute_call_of


@pytest.mark.parametrize(
    ("shapes", "reads"),
    [
        (((1, 3, 4), (1, 3, 4)), ("t.x0[i, j, k]", "t.x1[i, j, k]")),
        (((2, 3, 4), (1, 3, 4)), ("t.x0[i, j, k]", "t.x1[0, j, k]")),
        (((1, 3, 4), (3, 1)), ("t.x0[i, j, k]", "t.x1[j, 0]")),
    ],
)
def test_only_dimensions_that_are_repeated_are_read_at_zero(
    shapes: tuple[tuple[int, ...], ...], reads: tuple[str, ...]
) -> None:
    args = [np.ones(shape, np.float32) for shape in shapes]
    text = str(ComputeDAG(compute(compute_call_of(rule_call("Add", args), "t"))))
    for read in reads:
        assert read in text
