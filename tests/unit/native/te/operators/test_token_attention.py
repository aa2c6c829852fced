"""The rule for intarsia::token_attention, for a number of tokens that is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.te.operators.checked_call import check, make_call

from intarsia.op.opset import INTARSIA_DOMAIN


@pytest.mark.parametrize("replaces", [0, 1])
@pytest.mark.parametrize("biases", [(), ((1, 1, 1, 5),), ((1, 2, 1, 5), (1, 1, 1, 1)), ((1, 1, 1, 1),)])
def test_every_form(biases: tuple[tuple[int, ...], ...], replaces: int) -> None:
    rng = np.random.default_rng(len(biases))
    shapes = ((1, 2, 5, 3), (1, 2, 5, 3), (1, 2, 5, 4), *biases)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    call = make_call("token_attention", *arrays, domain=INTARSIA_DOMAIN, replaces=replaces, scale=0.5)
    check(call, length=8)
