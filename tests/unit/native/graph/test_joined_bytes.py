"""Concats whose result is quantised join bytes, and give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call

SCALE = np.float32(0.03)


def _planned(x: Var, result: Expr) -> RegionPlan:
    function = IRModule({GlobalVar("main"): Function((x,), result)})["main"]
    assert isinstance(function, Function)
    return plan_region(function, Isa.host())


def _written_types(plan: RegionPlan) -> set[DType]:
    return {plan.values[number].type.dtype for kernel in plan.kernels for number in kernel.outputs}


def _quantised(x: Expr, zero: int, dtype: Any = np.uint8) -> Expr:
    return call("QuantizeLinear", x, constant(SCALE), constant(zero, dtype))


@given(
    st.lists(st.integers(1, 20), min_size=2, max_size=4),
    st.booleans(),
    st.sampled_from((np.uint8, np.int8)),
    st.integers(0, 100),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=examples(60, quick=8), deadline=None)
def test_parts_are_quantised_as_the_whole(
    channels: list[int], is_repeated: bool, dtype: Any, zero: int, seed: int
) -> None:
    x = Var("x", checked_type=TensorType((1, sum(channels), 5, 3), DType.FLOAT32))
    begins = np.concatenate([[0], np.cumsum(channels)])
    parts: list[Expr] = [
        call("Relu", call("Slice", x, *(constant([edge], np.int64) for edge in (begin, begin + count, 1))))
        for begin, count in zip(begins, channels, strict=False)
    ]
    parts = [*parts, parts[0]] if is_repeated else parts
    plan = _planned(x, _quantised(call("Concat", *parts, axis=1), zero, dtype))
    given_x = np.random.default_rng(seed).uniform(-3, 9, (1, sum(channels), 5, 3)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], Isa.host())
    whole = np.maximum(np.concatenate([given_x, given_x[:, : channels[0]]], 1) if is_repeated else given_x, 0)
    limits = np.iinfo(dtype)
    np.testing.assert_array_equal(found, np.clip(np.rint(whole / SCALE) + zero, limits.min, limits.max))
    assert _written_types(plan) == {DType.of(np.zeros(1, dtype))}


def _branch(x: Expr, seed: int) -> Expr:
    weight = np.random.default_rng(seed).integers(-127, 128, (32, 16, 1, 1))
    dequantised = call("DequantizeLinear", constant(weight, np.int8), constant(0.01), constant(0, np.int8))
    return call("Relu", call("Conv", x, dequantised))


@pytest.mark.parametrize("has_reader", [False, True])
def test_branches_of_a_network_store_bytes(has_reader: bool) -> None:
    """A Concat that something else reads as well stays in float32."""
    given_bytes = Var("x", checked_type=TensorType((1, 16, 6, 6), DType.UINT8))
    x = call("DequantizeLinear", given_bytes, constant(0.02), constant(0, np.uint8))
    joined = call("Concat", _branch(x, 0), _branch(x, 1), axis=1)
    result = _quantised(joined, 0)
    plan = _planned(given_bytes, Tuple((result, joined)) if has_reader else result)
    assert _written_types(plan) == ({DType.UINT8, DType.FLOAT32} if has_reader else {DType.UINT8})
    assert len(plan.kernels) > 1


def test_other_scales_for_each_channel_stay_behind_the_whole() -> None:
    x = Var("x", checked_type=TensorType((1, 4, 3, 3), DType.FLOAT32))
    joined = call("Concat", call("Relu", x), call("Neg", x), axis=1)
    scales = np.linspace(0.5, 2, 8).astype(np.float32)
    plan = _planned(x, call("QuantizeLinear", joined, constant(scales), constant([3] * 8, np.uint8), axis=1))
    given_x = np.random.default_rng(0).uniform(-9, 9, (1, 4, 3, 3)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], Isa.host())
    whole = np.concatenate([np.maximum(given_x, 0), -given_x], 1)
    exact = np.clip(np.rint(whole / scales[:, None, None]) + 3, 0, 255)
    np.testing.assert_array_equal(found, exact)
