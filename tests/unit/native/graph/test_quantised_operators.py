"""Operators on quantised numbers, and products of dynamically quantised ones, sum words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant
from tests.unit.native.graph.quantised_layers import BYTES, Layer, convolutions, products
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import DType, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call, tuple_get

SETS = x86_sets()


def _function(params: tuple[Var, ...], result: Any) -> Function:
    function = IRModule({GlobalVar("main"): Function(params, result)})["main"]
    assert isinstance(function, Function)
    return function


def _reads_words(plan: RegionPlan) -> bool:
    return any(name in str(kernel.dag) for kernel in plan.kernels for name in ("dot_u8s8", "dot_s16"))


def _as_operator(layer: Layer) -> Function:
    """Return a layer as one operator; the result has the scale 1/4 and the zero point 3."""
    x, weight, scale, bias = layer.numbers()
    parameter = Var("x", checked_type=TensorType.of(x))
    middle = np.full(scale.shape, 128 if layer.weight_dtype is np.uint8 else 0)
    weights = constant(weight, layer.weight_dtype), constant(scale), constant(middle, layer.weight_dtype)
    args = parameter, constant(2.0**-5), constant(layer.zero, layer.dtype), *weights
    result = constant(2.0**-2), constant(3, layer.dtype)
    of_bias = (constant(bias, np.int32),) if layer.bias == "int32" else ()
    name = {"Conv": "QLinearConv", "MatMul": "QLinearMatMul"}[layer.operator]
    return _function((parameter,), call(name, *args, *result, *of_bias, **layer.attrs))


@given(st.one_of(convolutions(), products()), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(60, quick=8), deadline=None)
def test_operators_on_quantised_numbers(layer: Layer, name: str) -> None:
    if layer.operator == "Gemm" or layer.bias == "float32":
        return
    plan = plan_region(_as_operator(layer), SETS[name])
    (found,) = run_plan(plan, [layer.numbers()[0]], SETS[name])
    value = replace(layer, is_requantised=False).expected()
    limits, quotient = np.iinfo(layer.dtype), value / np.float32(2.0**-2)
    exact = np.clip(np.rint(quotient) + 3, limits.min, limits.max)
    # Of two nearest numbers ONNX names none: it says nothing of the order of rounding and the zero point.
    is_tie = quotient % 1 == 0.5
    np.testing.assert_array_equal(found[~is_tie], exact[~is_tie])
    assert np.abs(found[is_tie] - exact[is_tie]).max(initial=0) <= 1


def test_a_quantised_convolution_sums_words() -> None:
    attrs = {"pads": (1, 1, 1, 1)}
    layer = Layer("Conv", (1, 32, 4, 4), (32, 32, 3, 3), attrs, np.uint8, np.int8, 7, True, "int32", True, 1)
    assert _reads_words(plan_region(_as_operator(layer), Isa.host()))


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=2),
    st.sampled_from((4, 20, 64, 66)),
    st.integers(1, 40),
    st.tuples(BYTES, BYTES),
    st.booleans(),
    st.sampled_from(sorted(SETS)),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=examples(60, quick=8), deadline=None)
def test_products_of_integers(
    rows: list[int],
    depth: int,
    columns: int,
    dtypes: tuple[Any, Any],
    has_zero: bool,
    name: str,
    seed: int,
) -> None:
    """MatMulInteger with a zero point that is known when it runs; the sums are exact."""
    random, limits = np.random.default_rng(seed), np.iinfo(dtypes[0])
    x = random.integers(limits.min, limits.max, (*rows, depth), dtypes[0], endpoint=True)
    signed = random.integers(-128, 128, (depth, columns))
    middle = 128 if dtypes[1] is np.uint8 else 0
    zero = np.asarray(random.integers(limits.min, limits.max, (), dtypes[0], endpoint=True))
    params = Var("x", checked_type=TensorType.of(x)), Var("z", checked_type=TensorType.of(zero))
    weight, of_weight = constant(signed + middle, dtypes[1]), constant(middle, dtypes[1])
    args = (params[0], weight, params[1], of_weight) if has_zero else (params[0], weight)
    plan = plan_region(_function(params, call("MatMulInteger", *args)), SETS[name])
    (found,) = run_plan(plan, [x, zero], SETS[name])
    centred = x.astype(np.int64) - (int(zero) if has_zero else 0)
    np.testing.assert_array_equal(found, centred @ (signed if has_zero else signed + middle))


def test_dynamic_quantisation_sums_words() -> None:
    x = Var("x", checked_type=TensorType((5, 64), DType.FLOAT32))
    parts = call("DynamicQuantizeLinear", x, outputs=3)
    bytes_, scale, zero = (tuple_get(parts, position) for position in range(3))
    signed = np.random.default_rng(8).integers(-128, 128, (64, 24))
    summed = call("MatMulInteger", bytes_, constant(signed, np.int8), zero)
    scaled = call("Mul", call("Cast", summed, to=1), call("Mul", scale, constant(0.02)))
    plan = plan_region(_function((x,), scaled), Isa.host())
    assert _reads_words(plan)
    given_x = np.random.default_rng(9).standard_normal((5, 64)).astype(np.float32)
    (found,) = run_plan(plan, [given_x], Isa.host())
    half_step = np.ptp(given_x) / 255 / 2 * 1.01
    bound = half_step * np.abs(signed).sum(0) * 0.02
    assert np.all(np.abs(found - given_x @ signed * 0.02) <= bound)
