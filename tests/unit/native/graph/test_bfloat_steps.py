"""Convolutions and products in bfloat16 are those of rounded numbers, with sums in float32."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.quantised_layers import (
    convolved,
    dense_channels,
    depthwise_channels,
    grouped_channels,
)
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import PlanOptions, RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import NAMED_CPUS, named_cpu
from intarsia.op import call
from intarsia.op.onnx_types import elem_type_of
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

BFLOAT16 = DType.BFLOAT16.numpy
SETS = x86_sets()
NARROW = PlanOptions(narrows=True)


@dataclass(frozen=True)
class Layer:
    """A layer of numbers that bfloat16 holds, so that only the order of sums in float32 is free.

    Attributes:
        operator: Conv, MatMul or Gemm.
        x: Shape of the input.
        weight: Shape of the weights.
        attrs: Attributes of the operator.
        has_bias: Whether there is a bias.
        is_bfloat: Whether the tensors are in bfloat16; else float32.
        seed: Seed of all numbers.
    """

    operator: str
    x: tuple[int, ...]
    weight: tuple[int, ...]
    attrs: dict[str, Any]
    has_bias: bool
    is_bfloat: bool
    seed: int

    @property
    def channel(self) -> int:
        """Axis of the output channels of the weights."""
        return 0 if self.operator == "Conv" or self.attrs.get("transB") else 1

    def numbers(self) -> tuple[Array, Array, Array]:
        """The input, the weights, and the bias, in bfloat16."""
        random = np.random.default_rng(self.seed)
        shapes = self.x, self.weight, (self.weight[self.channel],)
        x, weight, bias = (random.standard_normal(shape).astype(BFLOAT16) for shape in shapes)
        return x, weight, bias

    @property
    def dtype(self) -> Any:
        """Element type of the tensors."""
        return BFLOAT16 if self.is_bfloat else np.float32

    def program(self) -> Function:
        """The layer, with a Relu behind it."""
        x, weight, bias = self.numbers()
        parameter = Var("x", checked_type=TensorType(x.shape, DType.of(x.astype(self.dtype))))
        args: list[Expr] = [parameter, constant(weight, self.dtype)]
        if self.has_bias:
            args.append(constant(bias, self.dtype))
        return _function(parameter, call("Relu", call(self.operator, *args, **self.attrs)))

    def check(self, found: Array) -> None:
        """Compare a result with exact sums, within the rounding of float32, and of the result's type."""
        x, weight, bias = (array.astype(np.float64) for array in self.numbers())
        sums, sizes = (self._sums(function(x), function(weight)) for function in (np.asarray, np.abs))
        if self.has_bias:
            sums = sums + bias.reshape((-1, *(1,) * (len(self.x) - 2)) if self.operator == "Conv" else (-1,))
        step = 2.0**-8 if self.is_bfloat else 0.0
        assert found.dtype == self.dtype
        error = np.abs(found.astype(np.float64) - np.maximum(sums, 0))
        # A bias may be added to rounded sums.
        assert np.all(error <= 1e-5 * (sizes + 1) + step * (sizes + np.abs(sums)))

    def _sums(self, x: Array, weight: Array) -> Array:
        if self.operator == "Conv":
            return convolved(x, weight, self.attrs)
        product: Array = x @ (weight.T if self.channel == 0 else weight)
        return product


def _function(parameter: Var, result: Expr) -> Function:
    function = IRModule({GlobalVar("main"): Function((parameter,), result)})["main"]
    assert isinstance(function, Function)
    return function


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    has_bias, is_bfloat, seed = draw(st.booleans()), draw(st.booleans()), draw(st.integers(0, 2**32 - 1))
    if draw(st.booleans()):
        taps, stride = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((1, 2)))
        pads = tuple(draw(st.integers(0, taps - 1)) for _ in range(4))
        size = draw(st.integers(taps, 9)), draw(st.integers(taps, 9))
        filters, channels, groups = draw(
            st.one_of(dense_channels(), depthwise_channels(), grouped_channels())
        )
        attrs: dict[str, Any] = {"pads": pads, "strides": (stride, stride), "group": groups}
        image = (draw(st.integers(1, 2)), channels, *size)
        return Layer(
            "Conv", image, (filters, channels // groups, taps, taps), attrs, has_bias, is_bfloat, seed
        )
    depth, columns = draw(st.sampled_from((2, 6, 32, 63, 64))), draw(st.integers(8, 40))
    if draw(st.booleans()):
        rows = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
        return Layer("MatMul", (*rows, depth), (depth, columns), {}, False, is_bfloat, seed)
    is_turned = draw(st.booleans())
    matrix = (columns, depth) if is_turned else (depth, columns)
    x = draw(st.integers(1, 9)), depth
    return Layer("Gemm", x, matrix, {"transB": int(is_turned)}, has_bias, is_bfloat, seed)


@given(layers(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(120, quick=12), deadline=None)
def test_layers_without_a_schedule(layer: Layer, name: str) -> None:
    plan = plan_region(layer.program(), SETS[name], NARROW)
    (found,) = run_plan(plan, [layer.numbers()[0].astype(layer.dtype)], SETS[name])
    layer.check(found)


@given(layers(), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=8), deadline=None)
def test_layers_as_they_are_built(layer: Layer, name: str) -> None:
    module = IRModule({GlobalVar("main"): layer.program()})
    target = Target("cpu -toolchain=native -multiply_in=bfloat16 -threads=1")
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, target))
    layer.check(np.asarray(executable(layer.numbers()[0].astype(layer.dtype))))


def _dots(plan: RegionPlan) -> int:
    return sum("dot_bf16" in str(kernel.dag) for kernel in plan.kernels)


def _image(channels: int, size: int = 8) -> Var:
    return Var("x", checked_type=TensorType((1, channels, size, size), DType.FLOAT32))


def _conv(x: Expr, filters: int, taps: int = 1, seed: int = 0) -> Expr:
    assert isinstance(x.checked_type, TensorType)
    channels = x.checked_type.static_shape[1]
    weight = np.random.default_rng(seed).standard_normal((filters, channels, taps, taps)) / channels
    return call("Conv", x, constant(weight), pads=(taps // 2,) * 4)


def _planned(x: Var, result: Expr, isa: Isa | None = None) -> RegionPlan:
    return plan_region(_function(x, result), isa or Isa.host(), NARROW)


def _residual_block() -> tuple[Var, Expr]:
    x = _image(16)
    first = call("Relu", _conv(x, 32))
    branch = call("Relu", _conv(first, 32, 3, seed=1))
    joined = call("Concat", call("Add", _conv(branch, 32, seed=2), first), branch, axis=1)
    pooled = call("GlobalAveragePool", call("Relu", _conv(joined, 24, seed=3)))
    return x, call("Gemm", call("Flatten", pooled), constant(np.linspace(-1, 1, 24 * 10).reshape(24, 10)))


def test_values_between_products_are_stored_in_half_of_the_bytes() -> None:
    x, result = _residual_block()
    machine = Isa.host().machine
    uncached = replace(machine, caches=replace(machine.caches, third=0))  # else transforms in float32 pay
    plan = _planned(x, result, replace(Isa.host(), machine=uncached))
    written = {number for kernel in plan.kernels for number in kernel.outputs} - set(plan.results)
    read = {
        plan.values[number].type for number in written if plan.values[number].type.static_shape[2:] == (8, 8)
    }
    # A pool reads the last of them, which has 24 channels.
    assert {type_.dtype for type_ in read if type_.static_shape[1] != 24} == {DType.BFLOAT16}
    assert _dots(plan) == 5


@pytest.mark.parametrize("name", list(SETS))
def test_a_network_differs_from_float32_by_the_rounding(name: str) -> None:
    x, result = _residual_block()
    isa, given_x = SETS[name], np.random.default_rng(5).standard_normal((1, 16, 8, 8)).astype(np.float32)
    (found,) = run_plan(_planned(x, result, isa), [given_x], isa)
    (exact,) = run_plan(plan_region(_function(x, result), isa), [given_x], isa)
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert 0 < error < 0.02


def test_nothing_changes_unless_the_target_says_so() -> None:
    x, result = _residual_block()
    assert _dots(plan_region(_function(x, result), Isa.host())) == 0


def test_a_result_of_the_region_stays_exact() -> None:
    """What is returned is not rounded, though a product reads it too."""
    x = _image(16)
    shared = call("Relu", _conv(x, 16))
    function = IRModule(
        {GlobalVar("main"): Function((x,), call("Concat", shared, _conv(shared, 16, seed=1), axis=1))}
    )["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, Isa.host(), NARROW)
    assert _dots(plan) == 2
    given_x = np.random.default_rng(5).standard_normal((1, 16, 8, 8)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], Isa.host())
    assert not np.array_equal(found, found.astype(BFLOAT16).astype(np.float32))


def test_transforms_in_float32_are_preferred_where_they_are_faster() -> None:
    x = _image(64, 56)
    wide = call("Relu", _conv(x, 64, 3))
    assert _dots(_planned(x, wide, named_cpu("znver4", 1))) == 0
    small = _image(256, 7)
    assert _dots(_planned(small, _conv(small, 256, 3), named_cpu("znver4", 1))) == 1


def test_convolutions_of_bfloat16_tensors_have_no_transforms_to_prefer() -> None:
    x = Var("x", checked_type=TensorType((1, 64, 56, 56), DType.BFLOAT16))
    weight = constant(np.ones((64, 64, 3, 3)) / 576, BFLOAT16.type)
    function = _function(x, call("Relu", call("Conv", x, weight, pads=(1, 1, 1, 1))))
    assert _dots(plan_region(function, named_cpu("znver4", 1))) == 1


@pytest.mark.parametrize(("dtype", "dots"), [(DType.FLOAT16, 1), (DType.FLOAT64, 0)])
def test_products_of_float16_are_narrowed_and_those_of_float64_are_not(dtype: DType, dots: int) -> None:
    x = Var("x", checked_type=TensorType((4, 32), dtype))
    plan = _planned(x, call("MatMul", x, constant(np.ones((32, 16)), dtype.numpy.type)))
    assert _dots(plan) == dots


def test_weights_that_are_computed_stay_in_float32_for_few_rows() -> None:
    x = Var("x", checked_type=TensorType((2, 16), DType.FLOAT32))
    matrix = call("Reshape", call("Concat", *[call("Relu", x)] * 8, axis=0), ints(16, 16))
    assert _dots(_planned(x, call("MatMul", x, matrix))) == 0


def test_every_named_cpu_gets_code_for_its_dots() -> None:
    x = Var("x", checked_type=TensorType((32, 64), DType.FLOAT32))
    for name in NAMED_CPUS:
        plan = _planned(x, call("MatMul", x, constant(np.ones((64, 32)))), named_cpu(name, 1))
        assert _dots(plan) == 1


def test_casts_that_a_program_contains_are_blocked_with_their_convolutions() -> None:
    x = Var("x", checked_type=TensorType((1, 16, 8, 8), DType.FLOAT32))
    narrow = call("Cast", x, to=elem_type_of(DType.BFLOAT16))
    weight = constant(np.ones((16, 16, 1, 1)) / 16, BFLOAT16.type)
    result = call("Cast", call("Relu", call("Conv", narrow, weight)), to=elem_type_of(DType.FLOAT32))
    plan = plan_region(_function(x, result), Isa.host())
    assert _dots(plan) == 1
    (found,) = run_plan(plan, [np.full((1, 16, 8, 8), 1.5, np.float32)], Isa.host())
    np.testing.assert_array_equal(found, np.full((1, 16, 8, 8), 1.5, np.float32))


def _bfloat_image(channels: int, size: int = 8) -> Var:
    return Var("x", checked_type=TensorType((1, channels, size, size), DType.BFLOAT16))


def _inverted_bottleneck() -> tuple[Var, Expr]:
    """A stem, and an inverted bottleneck with a pool behind it, all in bfloat16."""
    x, random = _bfloat_image(3), np.random.default_rng(3)
    bounds = [constant(np.array(bound), BFLOAT16.type) for bound in (0, 1.5)]

    def conv(given: Expr, filters: int, channels: int, taps: int, group: int = 1) -> Expr:
        weight = constant(random.standard_normal((filters, channels, taps, taps)), BFLOAT16.type)
        return call("Conv", given, weight, pads=(taps // 2,) * 4, group=group)

    wide = call("Clip", conv(call("Clip", conv(x, 16, 3, 3), *bounds), 32, 16, 1), *bounds)
    narrow = conv(call("Clip", conv(wide, 32, 1, 3, group=32), *bounds), 16, 32, 1)
    return x, call("GlobalAveragePool", call("AveragePool", narrow, kernel_shape=(2, 2), strides=(2, 2)))


def test_everything_between_convolutions_of_bfloat16_tensors_is_in_blocks() -> None:
    x, result = _inverted_bottleneck()
    plan = plan_region(_function(x, result), Isa.host())
    written = {number for kernel in plan.kernels for number in kernel.outputs} - set(plan.results)
    assert all(plan.values[number].lanes > 0 for number in written)


def test_activations_choose_before_sums_are_rounded() -> None:
    x, result = _inverted_bottleneck()
    plan = plan_region(_function(x, result), Isa.host())
    rounding = [str(kernel.dag) for kernel in plan.kernels if "clip" in str(kernel.dag).lower()]
    assert len(rounding) == 3
    assert all("flushed" in text for text in rounding)
    assert all(".f32" not in text for text in rounding)  # Clip of bfloat16 numbers rounds once more


@pytest.mark.parametrize("name", list(SETS))
def test_rounding_after_activations_gives_what_rounding_before_them_gives(name: str) -> None:
    x, result = _inverted_bottleneck()
    isa, given_x = SETS[name], np.random.default_rng(5).standard_normal((1, 3, 8, 8)).astype(BFLOAT16)
    function = _function(x, result)
    with patch("intarsia.native.graph.bfloat_region.with_late_roundings", lambda line: line):
        (expected,) = run_plan(plan_region(function, isa), [given_x], isa)
    (found,) = run_plan(plan_region(function, isa), [given_x], isa)
    np.testing.assert_array_equal(found, expected)


def _bfloat_conv(x: Expr, filters: int, channels: int, seed: int = 0) -> Expr:
    weight = np.random.default_rng(seed).standard_normal((filters, channels, 1, 1))
    return call("Conv", x, constant(weight, BFLOAT16.type))


@pytest.mark.parametrize("name", list(SETS))
def test_a_gate_behind_a_convolution_rounds_once(name: str) -> None:
    x, isa = _bfloat_image(16), SETS[name]
    sums = _bfloat_conv(x, 32, 16)
    gated = call("Mul", sums, call("Sigmoid", sums))
    given_x = np.random.default_rng(5).standard_normal((1, 16, 8, 8)).astype(BFLOAT16)
    plan = plan_region(_function(x, gated), isa)
    assert sum(str(kernel.dag).count("bfloat16(") for kernel in plan.kernels) == 1
    (found,) = run_plan(plan, [given_x], isa)
    weight = np.random.default_rng(0).standard_normal((32, 16, 1, 1)).astype(BFLOAT16)
    exact = convolved(given_x.astype(np.float64), weight.astype(np.float64), {"pads": (0,) * 4})
    exact = exact / (1 + np.exp(-exact))
    assert np.all(np.abs(found.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) + 1e-4)


def test_sums_that_are_read_farther_away_as_well_are_stored_in_half_of_the_bytes() -> None:
    x = _bfloat_image(16)
    first = _bfloat_conv(x, 16, 16)
    second = _bfloat_conv(call("Relu", _bfloat_conv(call("Relu", first), 16, 16, 1)), 16, 16, 2)
    plan = plan_region(_function(x, call("Add", second, first)), Isa.host())
    written = {number for kernel in plan.kernels for number in kernel.outputs}
    assert {plan.values[number].type.dtype for number in written} == {DType.BFLOAT16}


def test_grouped_convolutions_that_fit_no_words_are_computed_in_float32() -> None:
    x = _bfloat_image(12)
    weight = np.random.default_rng(0).standard_normal((12, 3, 3, 3)).astype(BFLOAT16)
    result = call("Conv", x, constant(weight, BFLOAT16.type), group=4, pads=(1, 1, 1, 1))
    plan = plan_region(_function(x, result), Isa.host())
    assert _dots(plan) == 0
    given_x = np.random.default_rng(5).standard_normal((1, 12, 8, 8)).astype(BFLOAT16)
    (found,) = run_plan(plan, [given_x], Isa.host())
    wide_x, wide_weight = (array.astype(np.float64) for array in (given_x, weight))
    exact = convolved(wide_x, wide_weight, {"pads": (1,) * 4, "group": 4})
    sizes = convolved(np.abs(wide_x), np.abs(wide_weight), {"pads": (1,) * 4, "group": 4})
    assert np.all(np.abs(found.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) + 1e-5 * sizes)


def _shuffled_block(groups: int, width: int) -> tuple[Var, Expr]:
    """A grouped convolution, a shuffle of its channels, one of each channel, and another grouped one."""
    channels = groups * width
    x = _image(channels)

    def grouped(given_x: Expr, seed: int) -> Expr:
        random = np.random.default_rng(seed)
        weight = random.standard_normal((channels, width, 1, 1)) / np.sqrt(width)
        return call("Conv", given_x, constant(weight), group=groups)

    parts = call("Reshape", call("Relu", grouped(x, 0)), ints(1, groups, width, 8, 8))
    shuffled = call("Reshape", call("Transpose", parts, perm=(0, 2, 1, 3, 4)), ints(1, channels, 8, 8))
    taps = np.random.default_rng(1).standard_normal((channels, 1, 3, 3)) / 3
    own = call("Conv", shuffled, constant(taps), group=channels, pads=(1, 1, 1, 1))
    return x, call("Add", grouped(own, 2), x)


@pytest.mark.parametrize("name", list(SETS))
@pytest.mark.parametrize(("groups", "width"), [(4, 17), (3, 10), (2, 35)])
def test_words_begin_at_any_channel_behind_a_shuffle(name: str, groups: int, width: int) -> None:
    x, result = _shuffled_block(groups, width)
    isa = SETS[name]
    plan = _planned(x, result, isa)
    assert _dots(plan) == (2 if isa.has_bf16_dot else _dots(plan))
    given_x = np.random.default_rng(5).standard_normal((1, groups * width, 8, 8)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], isa)
    (exact,) = run_plan(plan_region(_function(x, result), isa), [given_x], isa)
    assert np.linalg.norm(found - exact) <= 2.0**-7 * np.linalg.norm(exact)


def test_dense_convolutions_with_many_zeros_in_blocks_stay_in_float32() -> None:
    x = _image(19, 40)
    assert _dots(_planned(x, _conv(x, 19, 3))) == 0
    assert _dots(_planned(x, _conv(x, 19, 1))) == 1
