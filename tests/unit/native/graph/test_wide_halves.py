"""Convolutions and products of float16, and what joins them, are computed in float32 and rounded last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import x86_sets
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.quantised_layers import convolved
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import DType, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.native.graph import RegionPlan, plan_region
from intarsia.op import call
from intarsia.op.onnx_types import elem_type_of

Array = npt.NDArray[Any]

SETS = x86_sets()
CHANNELS, SIZE = 20, 9
SHAPE = (1, CHANNELS, SIZE, SIZE)
HALF = 2.0**-11
"""Largest relative error of a rounding."""


def _weight(*shape: int, seed: int = 0) -> Array:
    drawn = np.random.default_rng(seed).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    result: Array = drawn.astype(np.float16)
    return result


def _halves(array: Array) -> Expr:
    return constant(array, np.float16)


def _cast(x: Expr, dtype: DType) -> Expr:
    return call("Cast", x, to=elem_type_of(dtype))


def _planned(
    result: Expr, shape: tuple[int, ...] = SHAPE, dtype: DType = DType.FLOAT16, *, x: Var, isa: str = "host"
) -> RegionPlan:
    assert x.checked_type == TensorType(shape, dtype)
    function = IRModule({GlobalVar("main"): Function((x,), result)})["main"]
    assert isinstance(function, Function)
    return plan_region(function, SETS[isa])


def _image() -> tuple[Var, Array]:
    given = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float16)
    return Var("x", checked_type=TensorType(SHAPE, DType.FLOAT16)), given


def _roundings(plan: RegionPlan) -> int:
    return sum(str(kernel.dag).count("float16(") for kernel in plan.kernels)


def _check(found: Array, exact: Array, roundings: int = 1) -> None:
    assert found.dtype == np.float16
    error = np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact)
    assert error <= roundings * HALF + 1e-6


@pytest.mark.parametrize("isa", SETS)
def test_a_residual_unit_is_rounded_once(isa: str) -> None:
    x, image = _image()
    weights = [
        _weight(CHANNELS, CHANNELS, 3, 3),
        _weight(CHANNELS, 1, 3, 3),
        _weight(CHANNELS, CHANNELS, 1, 1),
    ]
    pads = (1,) * 4
    first = call("Relu", call("Conv", x, _halves(weights[0]), pads=pads))
    middle = call("Conv", first, _halves(weights[1]), pads=pads, group=CHANNELS)
    plan = _planned(call("Add", call("Conv", middle, _halves(weights[2])), first), x=x, isa=isa)
    assert _roundings(plan) == 1
    (found,) = run_plan(plan, [image], SETS[isa])
    exact = image.astype(np.float64)
    one = np.maximum(convolved(exact, weights[0].astype(np.float64), {"pads": pads}), 0)
    two = convolved(one, weights[1].astype(np.float64), {"pads": pads, "group": CHANNELS})
    _check(found, convolved(two, weights[2].astype(np.float64), {"pads": (0,) * 4}) + one)


def test_what_convolutions_hand_on_is_blocked() -> None:
    x, _ = _image()
    first = call("Conv", x, _halves(_weight(32, CHANNELS, 3, 3)))
    plan = _planned(call("Conv", call("Relu", first), _halves(_weight(32, 32, 3, 3))), x=x)
    assert any(plan.values[number].lanes for number in plan.arena)


def test_a_value_that_is_a_result_as_well_is_rounded_for_that_only() -> None:
    x, image = _image()
    weights = [_weight(CHANNELS, CHANNELS, 1, 1, seed=seed) for seed in (0, 1)]
    first = call("Conv", x, _halves(weights[0]))
    view = call("Reshape", first, ints(CHANNELS, SIZE * SIZE))
    last = call("Conv", first, _halves(weights[1]))
    plan = _planned(Tuple((view, last, first)), x=x)
    found = run_plan(plan, [image], SETS["host"])
    one = convolved(image.astype(np.float64), weights[0].astype(np.float64), {"pads": (0,) * 4})
    two = convolved(one, weights[1].astype(np.float64), {"pads": (0,) * 4})
    for result, exact in zip(found, (one.reshape(CHANNELS, -1), two, one), strict=True):
        _check(result, exact)


def test_a_cast_to_float32_reads_sums_without_rounding() -> None:
    x, image = _image()
    weight = _weight(CHANNELS, CHANNELS, 1, 1)
    wide = _cast(call("Conv", x, _halves(weight)), DType.FLOAT32)
    doubled = call("Mul", call("Reshape", wide, ints(CHANNELS, -1)), constant(2.0))
    again = _cast(call("Conv", x, _halves(weight)), DType.FLOAT32)
    plan = _planned(Tuple((doubled, wide, wide, again)), x=x)
    assert _roundings(plan) == 0
    found = run_plan(plan, [image], SETS["host"])
    exact = convolved(image.astype(np.float64), weight.astype(np.float64), {"pads": (0,) * 4})
    np.testing.assert_allclose(found[0], 2 * exact.reshape(CHANNELS, -1), rtol=1e-4, atol=1e-5)
    for result in found[1:]:
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-5)


def test_a_cast_of_the_program_rounds() -> None:
    """A program in float32 that rounds for one convolution means it."""
    x = Var("x", checked_type=TensorType(SHAPE, DType.FLOAT32))
    image = np.full(SHAPE, 1 + 2.0**-12, np.float32)
    weight = np.eye(CHANNELS, dtype=np.float16).reshape(CHANNELS, CHANNELS, 1, 1)
    result = _cast(call("Conv", _cast(x, DType.FLOAT16), _halves(weight)), DType.FLOAT32)
    plan = _planned(result, dtype=DType.FLOAT32, x=x)
    (found,) = run_plan(plan, [image], SETS["host"])
    np.testing.assert_array_equal(found, 1)


def test_an_operator_that_decides_reads_rounded_numbers() -> None:
    x = Var("x", checked_type=TensorType((1, 16, 2, 2), DType.FLOAT16))
    image = np.full((1, 16, 2, 2), 1023.5, np.float16)
    weight = np.eye(16, dtype=np.float16).reshape(16, 16, 1, 1)
    bias = np.full(16, 0.4, np.float16)  # 1023.9 is 1024 in float16
    sums = call("Conv", x, _halves(weight), _halves(bias))
    plan = _planned(call("Floor", sums), (1, 16, 2, 2), x=x)
    (found,) = run_plan(plan, [image], SETS["host"])
    np.testing.assert_array_equal(found, 1024)


@pytest.mark.parametrize(("rows", "cache", "is_wide"), [(2, 1, False), (9, 1, True), (2, 64, True)])
def test_products_of_few_rows_read_half_of_the_bytes(rows: int, cache: int, is_wide: bool) -> None:
    """But for weights that the last-level cache holds."""
    x = Var("x", checked_type=TensorType((rows, 64), DType.FLOAT16))
    weight, isa = _weight(64, 48), SETS["host"]
    caches = replace(isa.caches, third=cache * 1024)
    small = replace(isa, machine=replace(isa.machine, caches=caches))
    function = IRModule({GlobalVar("main"): Function((x,), call("MatMul", x, _halves(weight)))})["main"]
    assert isinstance(function, Function)
    plan = plan_region(function, small)
    types = {array.dtype for kernel in plan.kernels for array in kernel.constants.values()}
    is_narrow = not is_wide and small.vector_bytes > 16
    assert types == {np.dtype(np.float16 if is_narrow else np.float32)}
    given = np.random.default_rng(1).standard_normal((rows, 64)).astype(np.float16)
    (found,) = run_plan(plan, [given], SETS["host"])
    _check(found, given.astype(np.float64) @ weight.astype(np.float64))


def test_a_table_stays_as_small_as_it_is() -> None:
    x = Var("x", checked_type=TensorType((24,), DType.INT64))
    table, weight = _weight(512, 64), _weight(64, 48, seed=1)
    plan = _planned(
        call("MatMul", call("Gather", _halves(table), x), _halves(weight)), (24,), DType.INT64, x=x
    )
    constants = [array for kernel in plan.kernels for array in kernel.constants.values()]
    assert {array.dtype for array in constants if array.size == table.size} == {np.dtype(np.float16)}
    given = np.arange(24) * 20
    (found,) = run_plan(plan, [given], SETS["host"])
    _check(found, table[given].astype(np.float64) @ weight.astype(np.float64))


def test_programs_without_convolutions_and_products_stay() -> None:
    x, _ = _image()
    plan = _planned(call("Relu", call("Neg", x)), x=x)
    assert not any(value.type.dtype is DType.FLOAT32 for value in plan.values)


def _pooled(x: Expr) -> Expr:
    return call("MaxPool", x, kernel_shape=(3, 3), pads=(1,) * 4)


def _normalised(x: Expr) -> Expr:
    scale, bias = (_halves(np.full(CHANNELS, value, np.float16)) for value in (1.5, 0.25))
    return call("InstanceNormalization", x, scale, bias, epsilon=0.01)


def _reshaped(x: Expr) -> Expr:
    rows = call("Reshape", x, ints(CHANNELS, SIZE * SIZE))
    turned = call("Transpose", rows, perm=(1, 0))
    product = call("MatMul", turned, _halves(_weight(CHANNELS, CHANNELS, seed=3)))
    return call("Reshape", call("Transpose", product, perm=(1, 0)), ints(*SHAPE))


def _split(x: Expr) -> Expr:
    halves = [call("Slice", x, ints(begin), ints(begin + 10), ints(1)) for begin in (10, 0)]
    return call("Concat", *halves, axis=1)


def _squeezed(x: Expr) -> Expr:
    return call("Mul", x, call("Sigmoid", call("GlobalAveragePool", x)))


def _floats_between(x: Expr) -> Expr:
    return _cast(call("Softmax", _cast(x, DType.FLOAT32), axis=1), DType.FLOAT16)


LAYERS: tuple[Callable[[Expr], Expr], ...] = (
    lambda x: call("Conv", x, _halves(_weight(CHANNELS, CHANNELS, 3, 3)), pads=(1,) * 4),
    lambda x: call("Conv", x, _halves(_weight(CHANNELS, 1, 3, 3)), pads=(1,) * 4, group=CHANNELS),
    lambda x: call("ConvTranspose", x, _halves(_weight(CHANNELS, CHANNELS, 3, 3)), pads=(1,) * 4),
    lambda x: call("Conv", x, _halves(_weight(CHANNELS, 5, 1, 1)), group=4),
    lambda x: call("AveragePool", x, kernel_shape=(3, 3), pads=(1,) * 4),
    lambda x: call("Relu", x),
    lambda x: call("Floor", call("Mul", x, _halves(np.zeros((), np.float16)))),
    lambda x: call("Mul", x, _halves(np.array(1.5, np.float16))),
    _pooled,
    _normalised,
    _reshaped,
    _split,
    _squeezed,
    _floats_between,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    choices=st.lists(st.integers(0, len(LAYERS) - 1), min_size=1, max_size=6),
    joins=st.lists(st.integers(0, 5), max_size=2),
    kept=st.integers(0, 5),
    isa=st.sampled_from(list(SETS)),
)
def test_networks_compute_what_the_reference_does(
    choices: list[int], joins: list[int], kept: int, isa: str
) -> None:
    x, image = _image()
    values: list[Expr] = [x]
    for choice in choices:
        values.append(LAYERS[choice](values[-1]))
    result = values[-1]
    for join in joins:
        result = call("Add", result, values[join % len(values)])
    module = IRModule({GlobalVar("main"): Function((x,), Tuple((result, values[kept % len(values)])))})
    function = module["main"]
    assert isinstance(function, Function)
    found = run_plan(plan_region(function, SETS[isa]), [image], SETS[isa])
    expected = build(module).run_flat(image)
    for result_, right in zip(found, map(np.asarray, expected), strict=True):
        assert result_.dtype == right.dtype == np.float16
        scale = np.abs(right.astype(np.float64)).max() + 1e-3
        assert np.abs(result_.astype(np.float64) - right).max() <= 0.02 * scale
