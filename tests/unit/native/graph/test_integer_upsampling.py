"""Transposed convolutions of quantised numbers sum words of bytes, and are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

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

from intarsia.build import build
from intarsia.ir import Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

SETS = x86_sets()
SCALE = 2.0**-5


@dataclass(frozen=True)
class Upsampling:
    """A quantised transposed convolution, with scales that are powers of two.

    Attributes:
        channels: Numbers of channels of the input and of the result.
        size: Extents of the image.
        taps: Extents of the window.
        strides: Strides.
        pad: Number of results cut off at each border.
        dtype: Type of the bytes.
        zero: Zero point of the input.
        seed: Seed of all numbers.
    """

    channels: tuple[int, int]
    size: tuple[int, int]
    taps: tuple[int, int]
    strides: tuple[int, int]
    pad: int
    dtype: Any
    zero: int
    seed: int

    def numbers(self) -> tuple[Array, Array, Array, Array]:
        """The input, the weights, their scales, and the bias as multiples of the scale."""
        random, limits = np.random.default_rng(self.seed), np.iinfo(self.dtype)
        x = random.integers(
            limits.min, limits.max, (2, self.channels[0], *self.size), self.dtype, endpoint=True
        )
        weight = random.integers(-128, 127, (*self.channels, *self.taps), np.int8, endpoint=True)
        scale = 2.0 ** random.integers(-8, -4, self.channels[1])
        return x, weight, scale.astype(np.float32), random.integers(-5000, 5000, self.channels[1], np.int32)

    def program(self, *behind: str) -> Function:
        """The program; its parameter is the quantised input.

        Args:
            *behind: Operators behind the convolution.
        """
        x, weight, scale, bias = self.numbers()
        parameter = Var("x", checked_type=TensorType.of(x))
        args = (
            call("DequantizeLinear", parameter, constant(SCALE), constant(self.zero, self.dtype)),
            call("DequantizeLinear", constant(weight, np.int8), constant(scale), axis=1),
            call("DequantizeLinear", constant(bias, np.int32), constant(scale * np.float32(SCALE)), axis=0),
        )
        result = call("ConvTranspose", *args, strides=self.strides, pads=(self.pad,) * 4)
        for operator in behind:
            result = call(operator, result)
        function = IRModule({GlobalVar("main"): Function((parameter,), result)})["main"]
        assert isinstance(function, Function)
        return function

    def expected(self) -> Array:
        """The result, by sums of integers."""
        x, weight, scale, bias = self.numbers()
        centred, wide = x.astype(np.int64) - self.zero, weight.astype(np.int64)
        whole = [
            (extent - 1) * stride + taps
            for extent, stride, taps in zip(self.size, self.strides, self.taps, strict=True)
        ]
        sums = np.zeros((2, self.channels[1], *whole), np.int64)
        for row, column in np.ndindex(*self.size):
            top, left = row * self.strides[0], column * self.strides[1]
            window = np.einsum("nc,cmhw->nmhw", centred[:, :, row, column], wide)
            sums[:, :, top : top + self.taps[0], left : left + self.taps[1]] += window
        inside = slice(self.pad, -self.pad or None)
        sums = sums[:, :, inside, inside] + bias[:, None, None]
        return sums.astype(np.float32) * (scale * np.float32(SCALE))[:, None, None]


@st.composite
def upsamplings(draw: st.DrawFn) -> Upsampling:
    dtype = draw(BYTES)
    limits = np.iinfo(dtype)
    taps = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return Upsampling(
        (draw(st.sampled_from((5, 8, 16, 18))), draw(st.sampled_from((8, 16, 20)))),
        (draw(st.integers(2, 7)), draw(st.integers(2, 7))),
        taps,
        (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        draw(st.integers(0, (min(taps) - 1) // 2)),
        dtype,
        draw(st.sampled_from((0, 5, int(limits.min), int(limits.max)))),
        draw(st.integers(0, 2**32 - 1)),
    )


def _reads_words(plan: RegionPlan) -> bool:
    return any("dot_u8s8" in str(kernel.dag) for kernel in plan.kernels)


@given(upsamplings(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(80, quick=6), deadline=None)
def test_layers_without_a_schedule(layer: Upsampling, name: str) -> None:
    plan = plan_region(layer.program(), SETS[name])
    assert _reads_words(plan)
    (found,) = run_plan(plan, [layer.numbers()[0]], SETS[name])
    np.testing.assert_array_equal(found, layer.expected())


@given(upsamplings(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=4), deadline=None)
def test_layers_as_they_are_built(layer: Upsampling, name: str) -> None:
    module = IRModule({GlobalVar("main"): layer.program()})
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, Target.for_toolchain("native", threads=1)))
    np.testing.assert_array_equal(executable(layer.numbers()[0]), layer.expected())


@given(upsamplings())
@settings(max_examples=examples(30, quick=2), deadline=None)
def test_layers_in_plain_layout(layer: Upsampling) -> None:
    """Blocks hold no result of Floor, so that its kernel is plain."""
    plan = plan_region(layer.program("Floor"), Isa.host())
    assert not _reads_words(plan)
    (found,) = run_plan(plan, [layer.numbers()[0]], Isa.host())
    np.testing.assert_array_equal(found, np.floor(layer.expected()))


@pytest.mark.parametrize("channels", [(4, 16), (16, 2)])
def test_few_channels_stay_in_float32(channels: tuple[int, int]) -> None:
    layer = Upsampling(channels, (5, 5), (2, 2), (2, 2), 0, np.uint8, 3, 0)
    assert not _reads_words(plan_region(layer.program(), Isa.host()))
