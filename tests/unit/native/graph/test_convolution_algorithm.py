"""Which algorithm a convolution gets, and that plans with each compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import ConvolutionAlgorithm, PlanOptions, plan_region
from intarsia.native.graph.convolution_algorithm import may_be_winograd, winograd_tile
from intarsia.native.llvm.isa import Isa
from intarsia.native.te.operators.windows import Window
from intarsia.op import call

AUTO = ConvolutionAlgorithm.AUTO


def windows(size: int, taps: int = 3, stride: int = 1, dilation: int = 1) -> tuple[Window, Window]:
    count = (size - 1) // stride + 1
    window = Window(size, count, taps, stride, dilation, taps // 2 * dilation, taps // 2 * dilation)
    return window, window


@pytest.mark.parametrize(
    ("channels", "size", "tile"),
    [(64, 56, 4), (128, 28, 4), (64, 224, 4), (512, 28, 4), (512, 7, 0), (2, 56, 0)],
)
def test_estimates(channels: int, size: int, tile: int) -> None:
    """Many tiles pay for transforms; few do not pay for reading four times the weights."""
    assert winograd_tile(AUTO, channels, channels, windows(size)) == tile


@pytest.mark.parametrize(("algorithm", "tile"), [("direct", 0), ("winograd_2", 2), ("winograd_6", 6)])
def test_what_is_asked_for_is_done(algorithm: str, tile: int) -> None:
    assert winograd_tile(ConvolutionAlgorithm(algorithm), 64, 64, windows(56)) == tile


def test_other_windows_have_no_transforms() -> None:
    assert may_be_winograd(1, windows(8))
    assert not may_be_winograd(2, windows(8))
    assert not may_be_winograd(1, windows(8, taps=5))
    assert not may_be_winograd(1, windows(8, stride=2))
    assert not may_be_winograd(1, windows(8, dilation=2))
    assert not may_be_winograd(1, windows(8)[:1])


@pytest.mark.parametrize("algorithm", ConvolutionAlgorithm)
def test_plans_compute_the_same(algorithm: ConvolutionAlgorithm) -> None:
    isa, generator = Isa.host(), np.random.default_rng(0)
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 16, 10, 9), np.float32)))
    weight = constant(generator.standard_normal((24, 16, 3, 3)) / 12)
    conv = call("Conv", x, weight, constant(generator.standard_normal(24)), pads=(1, 0, 1, 2))
    module = IRModule({GlobalVar("main"): Function((x,), call("Relu", conv))})
    function = module["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, isa, PlanOptions(convolutions=algorithm))
    names = {op.name for kernel in plan.kernels for op in kernel.dag.ops}
    assert any(name.endswith(".product") for name in names) == (algorithm not in (AUTO, AUTO.DIRECT))
    given = generator.standard_normal((1, 16, 10, 9)).astype(np.float32)
    (expected,) = build(module).run_flat(given)
    np.testing.assert_allclose(run_plan(plan, [given], isa)[0], np.asarray(expected), atol=1e-4)
