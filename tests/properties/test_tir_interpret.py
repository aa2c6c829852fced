"""The interpreter against the evaluator that walks loop functions object by object."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.loop_evaluator import UndefinedError, run_prim_func
from tests.properties.random_loops import loop_functions

from intarsia.ir import PrimFunc
from intarsia.native.tir import interpret
from intarsia.support.errors import ExecutionError


def arrays(function: PrimFunc, seed: int) -> dict[str, npt.NDArray[Any]]:
    random = np.random.default_rng(seed)
    return {
        buffer.name: random.integers(0, 100, buffer.shape).astype(buffer.dtype.numpy)
        for buffer in function.params
    }


def same(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> bool:
    if left.dtype.kind in "biu":
        return left.tobytes() == right.tobytes()
    pairs = zip(left.astype(np.float64).flat, right.astype(np.float64).flat, strict=True)
    return all(a == b and math.copysign(1, a) == math.copysign(1, b) if a == a else b != b for a, b in pairs)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(loop_functions(), st.integers(0, 9))
def test_both_compute_the_same(function: PrimFunc, seed: int) -> None:
    expected, found = arrays(function, seed), arrays(function, seed)
    try:
        run_prim_func(function, expected)
    except UndefinedError:
        try:
            interpret(function, found)
        except ExecutionError:
            return
        return  # an element that was never written: here it holds a sentinel
    interpret(function, found)
    for name, array in expected.items():
        assert same(found[name], array), name
