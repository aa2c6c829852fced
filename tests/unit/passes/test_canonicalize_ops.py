"""CanonicalizeOps: each option, what it writes and what it leaves."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, assert_same_results, checked, operator_counts

import intarsia as ia
from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    SymbolicDim,
    TensorType,
    Var,
    post_order,
)
from intarsia.op import absent, call, infer_types
from intarsia.passes import CanonicalizeOps, partition_whole
from intarsia.transform import Pass

CANONICAL = CanonicalizeOps()
RNG = np.random.default_rng(0)


def var(*shape: int | SymbolicDim, dtype: DType = DType.FLOAT32, name: str = "x") -> Var:
    return Var(name, checked_type=TensorType(shape, dtype))


def program(body: Expr, *params: Var) -> IRModule:
    return infer_types(IRModule.from_expr(Function(params, body)))


def weights(*shape: int, dtype: Any = np.float32) -> Constant:
    return Constant(RNG.normal(size=shape).astype(dtype))


def scalar(value: float, dtype: Any = np.float32) -> Constant:
    return Constant(np.asarray(value, dtype))


def is_unchanged(body: Expr, *params: Var, by: Pass = CANONICAL) -> bool:
    mod = program(body, *params)
    return by(mod) is mod


def the_call(mod: IRModule, name: str) -> Call:
    (found,) = (item for item in post_order(mod["main"]) if isinstance(item, Call) and str(item.op) == name)
    return found


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, -2.0), (3.0, 0.0)])
@pytest.mark.parametrize("are_constant", [True, False])
def test_gemm_becomes_a_product_and_a_sum(
    trans_a: int, trans_b: int, alpha: float, beta: float, are_constant: bool
) -> None:
    x = var(*((3, 2) if trans_a else (2, 3)))
    shape = (4, 3) if trans_b else (3, 4)
    y, z = var(*shape, name="y"), var(4, name="z")
    b, c = (weights(*shape), weights(4)) if are_constant else (y, z)
    body = call("Gemm", x, b, c, transA=trans_a, transB=trans_b, alpha=alpha, beta=beta)
    after = checked(CANONICAL, program(body, x, y, z))
    counts = operator_counts(after)
    assert counts["Gemm"] == 0
    assert counts["MatMul"] == 1
    assert counts["Transpose"] == trans_a + (0 if are_constant else trans_b)
    assert counts["Add"] == (1 if beta else 0)


def test_gemm_without_bias_is_a_product() -> None:
    x = var(2, 3)
    assert operator_counts(checked(CANONICAL, program(call("Gemm", x, weights(3, 4), absent()), x))) == {
        "MatMul": 1
    }


def test_gemm_of_integers_keeps_its_factors() -> None:
    x = var(2, 3, dtype=DType.INT32)
    whole = Constant(np.arange(12, dtype=np.int32).reshape(3, 4))
    assert is_unchanged(call("Gemm", x, whole, alpha=0.5), x)
    assert operator_counts(checked(CANONICAL, program(call("Gemm", x, whole), x))) == {"MatMul": 1}


def test_gemm_can_be_left() -> None:
    x = var(2, 3)
    assert is_unchanged(call("Gemm", x, weights(3, 4)), x, by=CanonicalizeOps(gemm=False))


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize(("stride", "dilation", "size"), [(1, 1, 3), (2, 1, 4), (3, 2, 2), (2, 1, 1)])
def test_a_convolution_says_what_its_window_is(mode: str, stride: int, dilation: int, size: int) -> None:
    x = var(1, 2, 9, 8)
    body = call(
        "Conv",
        x,
        weights(3, 2, size, size),
        auto_pad=mode,
        strides=(stride, stride),
        dilations=(dilation, dilation),
    )
    after = the_call(checked(CANONICAL, program(body, x)), "Conv")
    assert set(after.attrs) == {"dilations", "group", "kernel_shape", "pads", "strides"}
    assert after.attrs["kernel_shape"] == (size, size)
    assert after.checked_type == body.checked_type


@pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_a_pool_says_what_its_window_is(name: str, mode: str) -> None:
    x = var(1, 2, 9, 8)
    before = program(call(name, x, auto_pad=mode, kernel_shape=(3, 2), strides=(2, 2)), x)
    after = CANONICAL(before)
    assert "auto_pad" not in the_call(after, name).attrs
    assert "pads" in the_call(after, name).attrs
    image = RNG.normal(size=(1, 2, 9, 8)).astype(np.float32)
    # the reference evaluator pads SAME_LOWER wrongly in MaxPool, so that the engine says what is right
    expected = ia.build(partition_whole(before, ia.Target.for_toolchain("onnxruntime")))(image)
    np.testing.assert_allclose(np.asarray(ia.build(after)(image)), np.asarray(expected), rtol=1e-5)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("kernel", "is_explicit"), [((2, 2), False), ((3, 1), False), ((3, 3), True)])
def test_pads_that_the_reference_misreads_stay_automatic(
    mode: str, kernel: tuple[int, int], is_explicit: bool
) -> None:
    x = var(1, 2, 9, 8)
    body = call("MaxPool", x, auto_pad=mode, kernel_shape=kernel)
    after = the_call(checked(CANONICAL, program(body, x)), "MaxPool")
    assert ("pads" in after.attrs) == is_explicit


def test_automatic_padding_of_unknown_sizes_stays() -> None:
    x = var(1, 2, SymbolicDim("H"), 8)
    after = CANONICAL(program(call("Conv", x, weights(3, 2, 3, 3), auto_pad="SAME_UPPER"), x))
    assert the_call(after, "Conv").attrs["auto_pad"] == "SAME_UPPER"
    assert "pads" not in the_call(after, "Conv").attrs


def test_a_transposed_convolution_keeps_its_padding() -> None:
    x = var(1, 2, 5, 5)
    for attrs in ({"auto_pad": "SAME_UPPER"}, {"output_shape": (10, 10)}):
        body = call("ConvTranspose", x, weights(2, 3, 3, 3), strides=(2, 2), **attrs)
        after = the_call(CANONICAL(program(body, x)), "ConvTranspose")
        assert "pads" not in after.attrs
        assert set(attrs) <= set(after.attrs)
        assert after.checked_type == body.checked_type


def test_windows_can_be_left() -> None:
    x = var(1, 2, 5, 5)
    assert is_unchanged(call("Conv", x, weights(3, 2, 3, 3)), x, by=CanonicalizeOps(window=False))


def test_flatten_and_castlike_become_what_is_more_common() -> None:
    x = var(2, 3, 4)
    body = call("Flatten", call("CastLike", x, scalar(0, np.float16)), axis=2)
    assert operator_counts(checked(CANONICAL, program(body, x))) == {"Reshape": 1, "Cast": 1}
    assert is_unchanged(body, x, by=CanonicalizeOps(flatten=False))


def test_a_flatten_with_one_symbolic_size_is_a_reshape_and_with_two_is_none() -> None:
    one, two = var(SymbolicDim("N"), 3, 4), var(SymbolicDim("N"), 3, SymbolicDim("W"))
    after = CANONICAL(program(call("Flatten", one), one))
    assert operator_counts(after) == {"Reshape": 1}
    assert_same_results(
        program(call("Flatten", one), one), after, {"x": RNG.normal(size=(2, 3, 4)).astype(np.float32)}
    )
    assert is_unchanged(call("Flatten", two, axis=1), two)


def test_squeeze_becomes_reshape_on_request() -> None:
    x = var(2, 1, 3)
    body = call("Unsqueeze", call("Squeeze", x, Constant(np.array([1]))), Constant(np.array([0])))
    assert is_unchanged(body, x)
    assert operator_counts(checked(CanonicalizeOps(squeeze=True), program(body, x))) == {"Reshape": 2}


def test_sums_become_chains_on_request() -> None:
    x, y = var(2, 3), var(3, name="y")
    assert operator_counts(checked(CANONICAL, program(call("Sum", x, y), x, y))) == {"Add": 1}
    three, mean = call("Sum", x, y, x), call("Mean", x, y, x)
    assert is_unchanged(three, x, y)
    chains = CanonicalizeOps(sums=True)
    assert operator_counts(checked(chains, program(three, x, y))) == {"Add": 2}
    assert operator_counts(checked(chains, program(mean, x, y))) == {"Add": 2, "Div": 1}


def gelu(x: Expr, order: int = 0, root: float = sqrt(2), dtype: Any = np.float32) -> Expr:
    gate = call("Add", call("Erf", call("Div", x, scalar(root, dtype))), scalar(1, dtype))
    half = scalar(0.5, dtype)
    match order:
        case 0:
            return call("Mul", call("Mul", x, gate), half)
        case 1:
            return call("Mul", call("Mul", half, x), gate)
        case 2:
            return call("Mul", x, call("Mul", gate, half))
        case _:
            return call("Div", call("Mul", gate, x), scalar(2, dtype))


def tanh_gelu(x: Expr, *, with_power: bool) -> Expr:
    cube = call("Pow", x, scalar(3)) if with_power else call("Mul", call("Mul", x, x), x)
    inner = call("Mul", call("Add", x, call("Mul", scalar(0.044715), cube)), scalar(sqrt(2 / pi)))
    gate = call("Add", scalar(1), call("Tanh", inner))
    return call("Mul", call("Mul", x, scalar(0.5)), gate)


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_is_found_however_it_is_written(order: int, dtype: Any) -> None:
    x = var(2, 3, dtype=DType(np.dtype(dtype).name))
    after = checked(CANONICAL, program(gelu(x, order, dtype=dtype), x))
    assert operator_counts(after)["Gelu"] == 1
    assert operator_counts(after)["Mul"] == 0


@pytest.mark.parametrize("with_power", [True, False])
def test_the_tanh_approximation_is_found(with_power: bool) -> None:
    x = var(2, 3)
    after = checked(CANONICAL, program(tanh_gelu(x, with_power=with_power), x))
    assert the_call(after, "Gelu").attrs["approximate"] == "tanh"


def test_hard_swish_is_found() -> None:
    x = var(2, 3)
    gate = call("HardSigmoid", x, alpha=float(np.float32(1 / 6)), beta=0.5)
    after = checked(CANONICAL, program(call("Mul", gate, x), x))
    assert operator_counts(after) == {"HardSwish": 1}
    other = call("Mul", x, call("HardSigmoid", x))
    assert is_unchanged(other, x)


def test_what_is_nearly_an_activation_stays() -> None:
    x, y = var(2, 3), var(2, 3, name="y")
    near = gelu(x, root=1.41)
    assert is_unchanged(near, x)
    gate = call("Add", call("Erf", call("Div", x, scalar(sqrt(2)))), scalar(1))
    assert is_unchanged(call("Mul", call("Mul", y, gate), scalar(0.5)), x, y)
    assert is_unchanged(call("Mul", call("Mul", x, gate), scalar(0.25)), x)
    larger = Constant(np.full((1, 1, 1), 0.5, np.float32))
    assert is_unchanged(call("Mul", call("Mul", x, gate), larger), x)
    assert is_unchanged(gelu(x), x, by=CanonicalizeOps(activation=False))


def test_swish_is_written_on_request() -> None:
    x = var(2, 3)
    body = call("Mul", x, call("Sigmoid", x))
    assert is_unchanged(body, x)
    after = CanonicalizeOps(swish=True)(program(body, x))
    assert operator_counts(after) == {"Swish": 1}
    assert_same_results(program(body, x), after)


def test_facts_are_kept() -> None:
    x = var(2, 3)
    assert_facts_kept(CANONICAL, program(call("Gemm", gelu(x), weights(3, 4), weights(4), alpha=0.5), x))


@pytest.mark.slow
def test_long_chains_are_no_deep_recursion() -> None:
    x = var(2, 3)
    body: Expr = x
    for _ in range(5_000):
        body = call("Mul", call("Sum", body, x), x)
    assert operator_counts(CANONICAL(program(body, x)))["Add"] == 5_000
