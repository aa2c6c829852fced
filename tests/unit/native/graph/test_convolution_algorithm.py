"""Which algorithm a convolution gets, and that plans with each compute the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import Call, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import ConvolutionAlgorithm, PlanOptions, plan_region
from intarsia.native.graph.convolution_algorithm import (
    BY_ESTIMATE,
    ConvolutionAlgorithms,
    ConvolutionShape,
    algorithm_names,
    estimated_tile,
    transformable_shape,
)
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.relative_costs import REFERENCE_COSTS
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.target.machine_families import FAMILIES

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
    text = "direct,32x7x7x64=winograd_2,32x7x7x64/4=winograd_4,32x7x7x64/4d3=direct,64x56x56x64=auto"
    found = ConvolutionAlgorithms.parse(text)
    assert str(found) == text
    assert found.tile(ConvolutionShape(32, 7, 7, 64)) == 2
    assert found.tile(ConvolutionShape(32, 7, 7, 64, 4)) == 4
    assert found.others[2][0] == ConvolutionShape(32, 7, 7, 64, 4, 3)
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
    assert transformable_shape(convolution(16, 3, dilations=(2, 2))) == ConvolutionShape(16, 8, 7, 24, 1, 2)


@pytest.mark.parametrize(("size", "dilation", "tile"), [(56, 2, 4), (56, 6, 4), (28, 2, 4), (14, 6, 0)])
def test_estimates_of_dilated_convolutions(size: int, dilation: int, tile: int) -> None:
    """A phase must have enough tiles."""
    assert estimated_tile(ConvolutionShape(64, size, size, 64, 1, dilation)) == tile


@settings(max_examples=examples(20, quick=2), deadline=None)
@given(
    groups=st.sampled_from([1, 1, 2]),
    channels=st.tuples(st.integers(8, 20), st.integers(8, 20)),
    extents=st.tuples(st.integers(3, 13), st.integers(3, 13)),
    dilation=st.integers(2, 4),
    pads=st.tuples(*[st.integers(1, 5)] * 4),
    algorithm=st.sampled_from(["winograd_2", "winograd_4", "auto"]),
    threads=st.sampled_from([1, 2]),
)
def test_phases_of_dilated_convolutions_compute_the_same(
    groups: int,
    channels: tuple[int, int],
    extents: tuple[int, int],
    dilation: int,
    pads: tuple[int, int, int, int],
    algorithm: str,
    threads: int,
) -> None:
    read, written = channels
    assume(
        all(
            size + begin + end > 2 * dilation
            for size, begin, end in zip(extents, pads[:2], pads[2:], strict=True)
        )
    )
    generator = np.random.default_rng(0)
    data = generator.standard_normal((2, read * groups, *extents)).astype(np.float32)
    x = Var("x", checked_type=TensorType.of(data))
    weight = constant(generator.standard_normal((written * groups, read, 3, 3)) / (3 * read**0.5))
    bias = constant(generator.standard_normal(written * groups))
    conv = call("Conv", x, weight, bias, pads=pads, dilations=(dilation, dilation), group=groups)
    module = IRModule({GlobalVar("main"): Function((x,), call("Relu", conv))})
    (expected,) = build(module).run_flat(data)
    target = Target.for_toolchain("native", threads=threads, convolutions=algorithm)
    (found,) = build(partition_whole(module, target)).run_flat(data)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-3, atol=1e-3)


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
    data = generator.standard_normal((1, 16, 10, 9)).astype(np.float32)
    (expected,) = build(module).run_flat(data)
    np.testing.assert_allclose(run_plan(plan, [data], isa)[0], np.asarray(expected), atol=1e-4)


@pytest.mark.parametrize(("weights", "tile"), [(0.05, 4), (1.0, 2), (8.0, 0)])
def test_transforms_pay_where_reads_of_weights_keep_up(weights: float, tile: int) -> None:
    """F(4, 3) reads four times the weights of direct sums, F(2, 3) not twice as many."""
    costs = REFERENCE_COSTS._replace(weights=weights)
    assert estimated_tile(shape(256, 14), costs) == tile
    assert BY_ESTIMATE.tile(shape(256, 14), costs) == tile


def test_plans_estimate_with_the_machine_and_the_threads() -> None:
    """Two threads share a memory that is fast enough for one of them."""
    weight = np.ones((256, 256, 3, 3), np.float32)
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 256, 14, 14), np.float32)))
    function = Function((x,), call("Conv", x, constant(weight), pads=(1, 1, 1, 1)))
    znver3 = FAMILIES["znver3"]
    small = replace(znver3.caches, third=weight.nbytes)  # it does not keep them beside other values
    machine = replace(znver3, busy_memory_bandwidth=0.5, caches=small)
    isa = replace(Isa("x86_64", "znver3", ("avx", "avx2", "fma")), cores=2, machine=machine)

    def algorithms(threads: int) -> set[str]:
        kernels = plan_region(function, isa, PlanOptions(threads=threads)).kernels
        return {name for kernel in kernels for name in algorithm_names(kernel.dag)}

    assert algorithms(1) == {"winograd2"}
    assert algorithms(2) == set()


@pytest.mark.parametrize(("third", "expected"), [(1 << 22, "winograd2"), (1 << 23, "winograd4")])
def test_plans_know_whether_the_last_cache_keeps_all_weights(third: int, expected: str) -> None:
    weight = np.ones((256, 256, 3, 3), np.float32)  # 2.25 MiB
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 256, 14, 14), np.float32)))
    function = Function((x,), call("Conv", x, constant(weight), pads=(1, 1, 1, 1)))
    znver3 = FAMILIES["znver3"]
    isa = Isa("x86_64", "znver3", ("avx", "avx2", "fma"), machine=znver3)
    plan = plan_region(
        function, replace(isa, machine=replace(znver3, caches=replace(znver3.caches, third=third)))
    )
    assert {name for kernel in plan.kernels for name in algorithm_names(kernel.dag)} == {expected}
