"""Mean pools of quantised values sum bytes as integers, in plain and blocked layouts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.quantised_layers import BYTES
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call

Array = npt.NDArray[Any]

SETS = x86_sets()
SCALE, RESULT_SCALE = 2.0**-3, 2.0**-4


@dataclass(frozen=True)
class Pool:
    """A mean of dequantised bytes, perhaps behind a quantised convolution, perhaps quantised.

    Attributes:
        operator: AveragePool or GlobalAveragePool.
        shape: Shape of the bytes.
        attrs: Attributes of the operator.
        dtype: Type of the bytes.
        zero: Their zero point.
        is_requantised: Whether the result is quantised.
        is_blocked: Whether a convolution computes the bytes.
        seed: Seed of the numbers.
    """

    operator: str
    shape: tuple[int, ...]
    attrs: dict[str, Any]
    dtype: Any
    zero: int
    is_requantised: bool
    is_blocked: bool
    seed: int

    def bytes(self) -> Array:
        """The bytes of the parameter."""
        limits = np.iinfo(self.dtype)
        random = np.random.default_rng(self.seed)
        return random.integers(limits.min, limits.max, self.shape, self.dtype, endpoint=True)

    def _parts(self) -> tuple[Expr, Expr]:
        return constant(SCALE), constant(self.zero, self.dtype)

    def program(self) -> Function:
        """The program."""
        parameter = Var("x", checked_type=TensorType(self.shape, TensorType.of(self.bytes()).dtype))
        value: Expr = parameter
        if self.is_blocked:
            channels = self.shape[1]
            identity = np.eye(channels).reshape(channels, channels, *(1,) * (len(self.shape) - 2))
            weight = call("DequantizeLinear", constant(identity, np.int8), constant(1.0))
            given_x = call("DequantizeLinear", parameter, *self._parts())
            value = call("QuantizeLinear", call("Conv", given_x, weight), *self._parts())
        value = call(self.operator, call("DequantizeLinear", value, *self._parts()), **self.attrs)
        if self.is_requantised:
            value = call("QuantizeLinear", value, constant(RESULT_SCALE), constant(3, self.dtype))
        function = IRModule({GlobalVar("main"): Function((parameter,), value)})["main"]
        assert isinstance(function, Function)
        return function

    def check(self, found: Array) -> None:
        """Compare with the mean in float64."""
        centred = (self.bytes().astype(np.float64) - self.zero) * SCALE
        value = self._mean(centred, found.shape)
        if not self.is_requantised:
            np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-6)
            return
        limits, steps = np.iinfo(self.dtype), value / RESULT_SCALE
        exact = np.clip(np.rint(steps) + 3, limits.min, limits.max)
        is_tie = np.abs(steps % 1 - 0.5) < 1e-4
        np.testing.assert_array_equal(found[~is_tie], exact[~is_tie])
        assert np.abs(found[is_tie] - exact[is_tie]).max(initial=0) <= 1

    def _mean(self, values: Array, shape: tuple[int, ...]) -> Array:
        """The means of windows; what ONNX's reference gives with ceil_mode is wrong (`reference_gaps`)."""
        spatial, rank = values.shape[2:], len(shape) - 2
        if self.operator == "GlobalAveragePool":
            return np.asarray(values.mean(axis=tuple(range(2, rank + 2)), keepdims=True))
        taps, strides, pads = (self.attrs[name] for name in ("kernel_shape", "strides", "pads"))
        result = np.zeros(shape)
        for position in np.ndindex(*shape[2:]):
            begins = [n * stride - pad for n, stride, pad in zip(position, strides, pads, strict=False)]
            ends = [begin + tap for begin, tap in zip(begins, taps, strict=True)]
            window = tuple(slice(max(0, first), last) for first, last in zip(begins, ends, strict=True))
            part = values[(slice(None), slice(None), *window)]
            count = prod(part.shape[2:])
            if self.attrs["count_include_pad"]:
                padded = [size + pad for size, pad in zip(spatial, pads[rank:], strict=True)]
                count = prod(
                    min(last, size) - first for first, last, size in zip(begins, ends, padded, strict=True)
                )
            result[(slice(None), slice(None), *position)] = part.sum(axis=tuple(range(2, rank + 2))) / count
        return result


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    rank = draw(st.sampled_from((1, 2, 2, 3)))
    channels = draw(st.sampled_from((3, 16, 32, 40)))
    spatial = tuple(draw(st.integers(4, 9)) for _ in range(rank))
    dtype, seed = draw(BYTES), draw(st.integers(0, 2**32 - 1))
    limits = np.iinfo(dtype)
    zero = draw(st.one_of(st.integers(int(limits.min), int(limits.max)), st.just(0)))
    rest = dtype, zero, draw(st.booleans()), draw(st.booleans()) and channels > 3, seed
    if draw(st.booleans()):
        return Pool("GlobalAveragePool", (1, channels, *spatial), {}, *rest)
    taps = [draw(st.integers(1, 4)) for _ in range(rank)]
    attrs: dict[str, Any] = {
        "kernel_shape": taps,
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
        "pads": [draw(st.integers(0, (tap - 1) // 2)) for tap in (*taps, *taps)],
        "count_include_pad": draw(st.integers(0, 1)),
        "ceil_mode": draw(st.integers(0, 1)),
    }
    return Pool("AveragePool", (2, channels, *spatial), attrs, *rest)


def _sums_integers(plan: RegionPlan) -> bool:
    return any(".centred" in str(kernel.dag) for kernel in plan.kernels)


@given(pools(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(120, quick=12), deadline=None)
def test_means_of_bytes(pool: Pool, name: str) -> None:
    plan = plan_region(pool.program(), SETS[name])
    assert _sums_integers(plan)
    (found,) = run_plan(plan, [pool.bytes()], SETS[name])
    pool.check(found)


@pytest.mark.parametrize(("taps", "stride"), [(2, 2), (2, 1), (3, 3), (3, 1)])
@pytest.mark.parametrize("zero", [3, 255])
def test_columns_of_padding_are_as_many_zero_points_as_the_window_has_rows(
    taps: int, stride: int, zero: int
) -> None:
    attrs = {
        "kernel_shape": (taps, taps),
        "strides": (stride, stride),
        "pads": (1, 1, 1, 1),
        "count_include_pad": 0,
    }
    pool = Pool("AveragePool", (1, 3, 8, 8), attrs, np.uint8, zero, False, False, 0)
    (found,) = run_plan(plan_region(pool.program(), Isa.host()), [pool.bytes()], Isa.host())
    pool.check(found)


@pytest.mark.parametrize("operator", ["AveragePool", "GlobalAveragePool"])
@pytest.mark.parametrize("value", [0, 255])
def test_means_of_the_largest_and_least_bytes(operator: str, value: int) -> None:
    """4,096 equal bytes have their own mean."""
    attrs = {"kernel_shape": (64, 64)} if operator == "AveragePool" else {}
    pool = Pool(operator, (1, 16, 64, 64), attrs, np.uint8, 128, False, False, 0)
    plan = plan_region(pool.program(), Isa.host())
    (found,) = run_plan(plan, [np.full(pool.shape, value, np.uint8)], Isa.host())
    np.testing.assert_array_equal(found, np.full(found.shape, (value - 128) * SCALE, np.float32))


def test_a_pool_between_convolutions_stays_in_blocks() -> None:
    """No kernel only converts a layout, and no value but the last is float32."""
    attrs = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    pool = Pool("AveragePool", (1, 32, 12, 12), attrs, np.uint8, 7, True, True, 3)
    plan = plan_region(pool.program(), Isa.host())
    pools = [kernel for kernel in plan.kernels if ".centred" in str(kernel.dag)]
    assert len(pools) == 1
    assert "uint8" in str(pools[0].dag)
