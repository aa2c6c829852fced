"""Quantised convolutions and products are computed with integers, and give what they are declared to be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.emulated_cpus import CPUS
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.quantised_layers import Layer, convolutions, depthwise, products
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.families import schedule_family
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]

SETS = x86_sets()


@given(st.one_of(convolutions(), depthwise(), products()), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(120, quick=12), deadline=None)
def test_layers_without_a_schedule(layer: Layer, name: str) -> None:
    """Kernels are as declared, on every instruction set."""
    plan = plan_region(layer.program(), SETS[name])
    (found,) = run_plan(plan, [layer.numbers()[0]], SETS[name])
    np.testing.assert_array_equal(found, layer.expected())


@given(st.one_of(convolutions(), depthwise(), products()), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=8), deadline=None)
def test_layers_as_they_are_built(layer: Layer, name: str) -> None:
    """Kernels are scheduled, and words are read from the caller's bytes."""
    module = IRModule({GlobalVar("main"): layer.program()})
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(module, Target.for_toolchain("native", threads=1)))
    np.testing.assert_array_equal(executable(layer.numbers()[0]), layer.expected())


def _plan(layer: Layer) -> RegionPlan:
    return plan_region(layer.program(), Isa.host())


def _reads_words(plan: RegionPlan) -> bool:
    return any(name in str(kernel.dag) for kernel in plan.kernels for name in ("dot_u8s8", "dot_s16"))


@pytest.mark.parametrize(
    ("operator", "x", "weight", "attrs"),
    [
        ("Conv", (1, 32, 4, 4), (32, 32, 3, 3), {"pads": (1, 1, 1, 1)}),
        ("Conv", (1, 3, 8, 8), (32, 3, 3, 3), {}),
        ("Conv", (1, 32, 8, 8), (32, 16, 3, 3), {"group": 2}),
        ("Conv", (1, 4, 8, 8), (16, 2, 3, 3), {"group": 2}),
        ("Conv", (1, 64, 28, 28), (64, 8, 3, 3), {"group": 8}),
        ("MatMul", (6, 64), (64, 48), {}),
        ("MatMul", (6, 61), (61, 48), {}),
        ("Gemm", (6, 64), (48, 64), {"transB": 1}),
    ],
)
def test_sums_are_of_words(
    operator: str, x: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    layer = Layer(operator, x, weight, attrs, np.uint8, np.int8, 7, True, "", True, 1)
    assert _reads_words(_plan(layer))


@pytest.mark.parametrize(("taps", "is_by_words"), [((3, 3), True), ((7, 1), True), ((1, 3), False)])
def test_depthwise_sums_are_of_words_where_that_is_faster(taps: tuple[int, int], is_by_words: bool) -> None:
    """With an instruction, for windows of several rows."""
    layer = Layer(
        "Conv", (1, 64, 9, 9), (64, 1, *taps), {"group": 64}, np.uint8, np.int8, 7, True, "", True, 1
    )
    for isa in SETS.values():
        assert _reads_words(plan_region(layer.program(), isa)) == (is_by_words and isa.has_int8_dot)


@pytest.mark.parametrize("size", [(56, 56), (7, 7), (1, 40), (9, 1)])
def test_sums_of_rows_fit_into_the_registers_of_every_cpu(size: tuple[int, int]) -> None:
    attrs = {"group": 64, "pads": (1, 1, 1, 1)}
    layer = Layer("Conv", (1, 64, *size), (64, 1, 3, 3), attrs, np.uint8, np.int8, 7, True, "", True, 1)
    short = replace(CPUS["haswell"], features=(*CPUS["haswell"].features, "avxvnni"))
    for isa in (isa for isa in (short, *CPUS.values()) if isa.has_int8_dot):
        (dag,) = (
            kernel.dag
            for kernel in plan_region(layer.program(), isa).kernels
            if "dot_u8s8" in str(kernel.dag)
        )
        family = schedule_family(dag, isa, 1)
        assert family is not None
        assert family.fits(family.default)


def test_extreme_bytes_do_not_saturate() -> None:
    """The largest unsigned bytes times the least signed ones, whose pairs leave 16 bits."""
    x = Var("x", checked_type=TensorType((4, 64), DType.UINT8))
    weight = constant(np.full((64, 24), -128), np.int8)
    left = call("DequantizeLinear", x, constant(1.0), constant(0, np.uint8))
    right = call("DequantizeLinear", weight, constant(1.0), constant(0, np.int8))
    module = IRModule({GlobalVar("main"): Function((x,), call("MatMul", left, right))})
    for isa in SETS.values():
        with patch.object(Isa, "host", classmethod(lambda _, isa=isa: isa)):
            executable = build(partition_whole(module, Target.for_toolchain("native", threads=1)))
        found = executable(np.full((4, 64), 255, np.uint8))
        np.testing.assert_array_equal(found, np.full((4, 24), -128.0 * 255 * 64, np.float32))


def test_other_zero_points_of_weights_stay_in_float32() -> None:
    x = Var("x", checked_type=TensorType((4, 64), DType.UINT8))
    weight = constant(np.arange(64 * 8).reshape(64, 8) % 251, np.uint8)
    left = call("DequantizeLinear", x, constant(0.5), constant(3, np.uint8))
    right = call("DequantizeLinear", weight, constant(0.25), constant(100, np.uint8))
    function = IRModule({GlobalVar("main"): Function((x,), call("MatMul", left, right))})["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, Isa.host())
    assert not _reads_words(plan)
    given_x = np.arange(256, dtype=np.uint8).reshape(4, 64)
    (found,) = run_plan(plan, [given_x], Isa.host())
    exact = (given_x.astype(np.float32) - 3) * 0.5 @ ((weight.data.astype(np.float32) - 100) * 0.25)
    np.testing.assert_array_equal(found, exact)


def test_every_reader_dequantises_bytes_itself() -> None:
    """Between the kernels of a residual block are bytes only."""
    x = Var("x", checked_type=TensorType((1, 16, 6, 6), DType.UINT8))
    zero, scale = constant(0, np.uint8), constant(0.25)
    weight = call(
        "DequantizeLinear", constant(np.ones((16, 16, 1, 1)), np.int8), constant(0.5), constant(0, np.int8)
    )
    first = call("DequantizeLinear", x, scale, zero)
    bytes_ = call("QuantizeLinear", call("Relu", call("Conv", first, weight)), scale, zero)
    shared = call("DequantizeLinear", bytes_, scale, zero)
    total = call("QuantizeLinear", call("Add", call("Conv", shared, weight), shared), scale, zero)
    assert _written_types(_planned(x, total)) == {DType.UINT8}


def _planned(x: Var, result: Expr) -> RegionPlan:
    function = IRModule({GlobalVar("main"): Function((x,), result)})["main"]
    assert isinstance(function, Function)
    return plan_region(function, Isa.host())


def _written_types(plan: RegionPlan) -> set[DType]:
    return {plan.values[number].type.dtype for kernel in plan.kernels for number in kernel.outputs}


def test_pools_and_transpositions_move_bytes() -> None:
    """MaxPool and Transpose between bytes of one scale read and write bytes, and nothing is rounded."""
    x = Var("x", checked_type=TensorType((1, 16, 6, 6), DType.UINT8))
    zero, scale = constant(9, np.uint8), constant(0.3)
    pooled = call("MaxPool", call("DequantizeLinear", x, scale, zero), kernel_shape=(2, 2), strides=(2, 2))
    turned = call("Transpose", pooled, perm=(0, 2, 3, 1))
    plan = _planned(x, call("Neg", call("Reshape", turned, constant((9, 16), np.int64))))
    moved = {DType.UINT8, DType.FLOAT32}
    assert _written_types(plan) == moved
    given_x = np.random.default_rng(3).integers(0, 256, (1, 16, 6, 6), np.uint8)
    (found,) = run_plan(plan, [given_x], Isa.host())
    most = given_x.reshape(16, 3, 2, 3, 2).max((2, 4)).transpose(1, 2, 0).reshape(9, 16)
    exact = -((most.astype(np.float32) - 9) * np.float32(0.3))
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_quantising_what_was_dequantised_restores_the_bytes() -> None:
    x = Var("x", checked_type=TensorType((4, 64), DType.UINT8))
    zero, scale = constant(9, np.uint8), constant(0.3)
    again = call("QuantizeLinear", call("DequantizeLinear", x, scale, zero), scale, zero)
    weight = call("DequantizeLinear", constant(np.ones((64, 16)), np.int8), constant(0.5))
    plan = _planned(x, call("MatMul", call("DequantizeLinear", again, scale, zero), weight))
    assert len(plan.kernels) == 1


def test_transposed_weights_stay_bytes() -> None:
    x = Var("x", checked_type=TensorType((4, 8), DType.UINT8))
    random = np.random.default_rng(5)
    bytes_, scales = random.integers(-128, 128, (24, 8)), 2.0 ** random.integers(-6, -2, 24)
    weight = call(
        "DequantizeLinear",
        constant(bytes_, np.int8),
        constant(scales),
        constant(np.zeros(24), np.int8),
        axis=0,
    )
    left = call("DequantizeLinear", x, constant(0.5), constant(3, np.uint8))
    plan = _planned(x, call("MatMul", left, call("Transpose", weight, perm=(1, 0))))
    assert _reads_words(plan)
    given_x = random.integers(0, 256, (4, 8), np.uint8)
    (found,) = run_plan(plan, [given_x], Isa.host())
    sums = (given_x.astype(np.int64) - 3) @ bytes_.T
    np.testing.assert_array_equal(found, sums.astype(np.float32) * (0.5 * scales).astype(np.float32))


def test_a_dequantised_result_is_written_and_its_readers_use_the_bytes() -> None:
    x = Var("x", checked_type=TensorType((4, 8), DType.UINT8))
    value = call("DequantizeLinear", x, constant(0.5), constant(3, np.uint8))
    weight = call("DequantizeLinear", constant(np.ones((8, 16)), np.int8), constant(0.25))
    plan = _planned(x, Tuple((value, call("MatMul", value, weight))))
    assert _reads_words(plan)
    given_x = np.arange(32, dtype=np.uint8).reshape(4, 8)
    first, second = run_plan(plan, [given_x], Isa.host())
    np.testing.assert_array_equal(first, (given_x.astype(np.float32) - 3) * 0.5)
    np.testing.assert_array_equal(second, np.repeat(first.sum(1, keepdims=True) * 0.25, 16, 1))


def test_requantising_by_reciprocals_is_within_a_step() -> None:
    """Scales that are no powers of two are multiplied by, which may differ from the quotient by one step."""
    x = Var("x", checked_type=TensorType((16, 64), DType.UINT8))
    random = np.random.default_rng(7)
    bytes_ = random.integers(-128, 128, (64, 48))
    weight = call("DequantizeLinear", constant(bytes_, np.int8), constant(0.0137), constant(0, np.int8))
    value = call("MatMul", call("DequantizeLinear", x, constant(0.031), constant(7, np.uint8)), weight)
    plan = _planned(x, call("QuantizeLinear", value, constant(0.71), constant(100, np.uint8)))
    given_x = random.integers(0, 256, (16, 64), np.uint8)
    (found,) = run_plan(plan, [given_x], Isa.host())
    sums = (given_x.astype(np.int64) - 7) @ bytes_ * (0.0137 * 0.031 / 0.71)
    exact = np.clip(np.rint(sums) + 100, 0, 255)
    assert np.abs(found - exact).max() <= 1
    assert np.mean(found != exact) < 0.01


@pytest.mark.parametrize(("size", "taps"), [(14, 1), (7, 3)])
def test_bytes_are_widened_once_where_no_instruction_sums_them(size: int, taps: int) -> None:
    """Of many channels and few pixels also in 3 x 3 windows, whose transforms load more weights."""
    attrs, shape = {"pads": (taps // 2,) * 4}, (512, 512, taps, taps)
    layer = Layer("Conv", (1, 512, size, size), shape, attrs, np.uint8, np.int8, 5, True, "", True, 1)
    for cpu, name in (("haswell", "dot_s16"), ("znver4", "dot_u8s8")):
        kernels = [str(kernel.dag) for kernel in plan_region(layer.program(), CPUS[cpu]).kernels]
        assert any(name in kernel for kernel in kernels)


def test_products_of_widened_bytes_have_a_register_beside_their_sums() -> None:
    """Sums, weights, an input element, and a product before another instruction adds it, fit."""
    isa, attrs = CPUS["haswell"], {"pads": (0,) * 4}
    layer = Layer("Conv", (1, 1024, 7, 7), (1024, 1024, 1, 1), attrs, np.uint8, np.int8, 5, True, "", True, 1)
    dags = [kernel.dag for kernel in plan_region(layer.program(), isa).kernels]
    (dag,) = (dag for dag in dags if "dot_s16" in str(dag))
    family = schedule_family(dag, isa, 1)
    assert family is not None
    rows, pixels, blocks, *_ = family.default
    assert rows * pixels * blocks + blocks + 2 <= isa.vector_registers


def test_transforms_in_float32_win_where_no_instruction_sums_bytes() -> None:
    """Of a 3 x 3 convolution on AVX2; a pointwise one has no transforms."""
    isa = CPUS["haswell"]
    for taps, is_integer in ((3, False), (1, True)):
        attrs = {"pads": (taps // 2,) * 4}
        weight = 128, 128, taps, taps
        layer = Layer("Conv", (1, 128, 28, 28), weight, attrs, np.uint8, np.int8, 0, True, "", True, 1)
        assert _reads_words(plan_region(layer.program(), isa)) == is_integer
        assert _reads_words(plan_region(layer.program(), CPUS["znver4"]))
