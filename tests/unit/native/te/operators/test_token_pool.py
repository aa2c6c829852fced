"""The rule for intarsia::token_pool, for a number of tokens that is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.te.operators.checked_call import check, make_call

from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_pool_op import POOL_MODES


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("mode", POOL_MODES)
def test_every_form(mode: str, keepdims: int, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    call = make_call("token_pool", x, domain=INTARSIA_DOMAIN, axis=axis, keepdims=keepdims, mode=mode)
    check(call, length=8)
