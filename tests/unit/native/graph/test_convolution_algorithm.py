"""Which algorithm a convolution gets, and that plans with each compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import Call, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import ConvolutionAlgorithm, PlanOptions, plan_region
from intarsia.native.graph.convolution_algorithm import (
    BY_ESTIMATE,
    ConvolutionAlgorithms,
    ConvolutionShape,
    estimated_tile,
    transformable_shape,
)
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.support.errors import UsageError
from intarsia.target import Target

AUTO, DIRECT = ConvolutionAlgorithm.AUTO, ConvolutionAlgorithm.DIRECT


def shape(channels: int, size: int) -> ConvolutionShape:
    return ConvolutionShape(channels, size, size, channels)


@pytest.mark.parametrize(
    ("channels", "size", "tile"),
    [
        (64, 56, 4),
        (128, 28, 4),
        (64, 224, 4),
        (512, 28, 4),
        (256, 14, 2),
        (512, 7, 2),
        (96, 7, 0),
        (2, 56, 0),
    ],
)
def test_estimates(channels: int, size: int, tile: int) -> None:
    """Many tiles pay for transforms; few do not pay for reading four times the weights."""
    assert estimated_tile(shape(channels, size)) == tile
    assert BY_ESTIMATE.tile(shape(channels, size)) == tile


@pytest.mark.parametrize(("algorithm", "tile"), [("direct", 0), ("winograd_2", 2), ("winograd_6", 6)])
def test_what_is_asked_for_is_done(algorithm: str, tile: int) -> None:
    assert ConvolutionAlgorithms.parse(algorithm).tile(shape(64, 56)) == tile


def test_text_with_exceptions_is_read_back() -> None:
    text = "direct,32x7x7x64=winograd_2,32x7x7x64/4=winograd_4,64x56x56x64=auto"
    found = ConvolutionAlgorithms.parse(text)
    assert str(found) == text
    assert found.tile(ConvolutionShape(32, 7, 7, 64)) == 2
    assert found.tile(ConvolutionShape(32, 7, 7, 64, 4)) == 4
    assert found.tile(shape(64, 56)) == 4
    assert found.tile(shape(64, 28)) == 0
    target = Target.for_toolchain("native", convolutions=text)
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize("text", ["fast", "winograd_3", "auto,64x56x56=direct", "64x1x1x64=direct", "auto,"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"-convolutions is .*; expected a text like auto"):
        Target.for_toolchain("native", convolutions=text)


def convolution(channels: int, taps: int, **attrs: Any) -> Call:
    x = Var("x", checked_type=TensorType.of(np.zeros((1, channels, 10, 9), np.float32)))
    weight = constant(np.ones((24, channels // attrs.get("group", 1), taps, taps)))
    made = call("Conv", x, weight, pads=(1, 0, 1, 2), **attrs)
    assert isinstance(made, Call)
    return made


def test_shapes_with_transforms() -> None:
    assert transformable_shape(convolution(16, 3)) == ConvolutionShape(16, 10, 9, 24)
    assert transformable_shape(convolution(16, 3, group=2)) == ConvolutionShape(16, 10, 9, 24, 2)
    assert transformable_shape(convolution(16, 3, group=4)) is None, "4 channels of a group are too few"
    assert transformable_shape(convolution(16, 5)) is None
    assert transformable_shape(convolution(16, 3, strides=(2, 1))) is None
    assert transformable_shape(convolution(16, 3, dilations=(1, 2))) is None


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ConvolutionAlgorithm)
def test_plans_compute_the_same(algorithm: ConvolutionAlgorithm) -> None:
    isa, generator = Isa.host(), np.random.default_rng(0)
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 16, 10, 9), np.float32)))
    weight = constant(generator.standard_normal((24, 16, 3, 3)) / 12)
    conv = call("Conv", x, weight, constant(generator.standard_normal(24)), pads=(1, 0, 1, 2))
    module = IRModule({GlobalVar("main"): Function((x,), call("Relu", conv))})
    function = module["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, isa, PlanOptions(convolutions=ConvolutionAlgorithms(algorithm)))
    names = [kernel.name.rsplit("_", 1)[0] for kernel in plan.kernels]
    tile = "" if algorithm in (AUTO, DIRECT) else f"_winograd{algorithm.value[-1]}"
    assert f"conv_relu{tile}" in names
    given = generator.standard_normal((1, 16, 10, 9)).astype(np.float32)
    (expected,) = build(module).run_flat(given)
    np.testing.assert_allclose(run_plan(plan, [given], isa)[0], np.asarray(expected), atol=1e-4)
