"""The rule for intarsia::token_positions, for a number of tokens that is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.te.operators.checked_call import check, make_call

from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_positions_op import POSITION_MODES


@pytest.mark.parametrize("mode", POSITION_MODES)
def test_every_mode(mode: str) -> None:
    x = np.random.default_rng(0).integers(0, 9, {"positions": (2, 1), "start": (2,)}.get(mode, (2, 7)))
    like = np.zeros((2, 3), np.float32)
    check(make_call("token_positions", x, like, domain=INTARSIA_DOMAIN, mode=mode), length=8)
