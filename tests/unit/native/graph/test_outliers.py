"""How far an outlier of a convolution's input reaches: its windows, or a tile of Winograd's transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import intarsia as ia
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole

PIXELS = 12
REACH = {"direct": 1, "winograd_2": 1, "winograd_4": 3}
"""Rows and columns beside an outlier whose results it may change."""


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", REACH)
def test_outliers_stay_near(algorithm: str) -> None:
    rng = np.random.default_rng(0)
    x = Var("x", checked_type=TensorType((1, 16, PIXELS, PIXELS), DType.FLOAT32))
    weights = Constant(rng.standard_normal((16, 16, 3, 3)).astype(np.float32))
    module = IRModule.from_expr(Function((x,), call("Conv", x, weights, pads=(1, 1, 1, 1))))
    target = ia.Target(f"cpu -toolchain=native -convolutions={algorithm}")
    data = rng.standard_normal((1, 16, PIXELS, PIXELS)).astype(np.float32)
    reached: list[npt.NDArray[Any]] = []
    with ia.build(partition_whole(module, target)) as executable:
        for place in range(4, 8):  # all places in a tile
            changed = data.copy()
            changed[0, 3, place, place] = np.inf
            lost = np.argwhere(~np.isfinite(np.array(executable.run_flat(changed)[0]))[0].all(axis=0))
            reached.append(np.abs(lost - place).max())
            assert lost.size
    assert max(reached) == REACH[algorithm]
