"""Mixed precision: what is lowered, where casts stand, and that results stay near."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.parallel_programs import constant, image
from tests.pass_checks import assert_facts_kept, checked, operator_counts

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    Var,
    post_order,
)
from intarsia.ir.types import TupleType
from intarsia.measure.inputs import random_inputs
from intarsia.op import absent, call, infer_types, tuple_get, verify
from intarsia.op.onnx_types import elem_type_of
from intarsia.passes import ToMixedPrecision, partition_whole
from intarsia.support.errors import CompileError, UsageError

HALF = ToMixedPrecision()
TOLERANCE = {"float16": 5e-3, "bfloat16": 5e-2}
F32, F16 = elem_type_of(DType.FLOAT32), elem_type_of(DType.FLOAT16)


def of(*results: Expr) -> IRModule:
    """A program of its free variable x, and those results."""
    params = tuple(dict.fromkeys(node for node in post_order(*results) if isinstance(node, Var)))
    return IRModule.from_expr(Function(params, results[0] if len(results) == 1 else Tuple(results)))


def near(before: IRModule, made: ToMixedPrecision = HALF) -> IRModule:
    tolerance = TOLERANCE[made.dtype]
    return checked(made, before, rtol=tolerance, atol=tolerance)


def dtypes(mod: IRModule, name: str) -> list[str]:
    """Element types of the results of all calls of an operator."""
    return [
        node.checked_type.dtype.value
        for function in mod.graph_functions.values()
        for node in post_order(function)
        if isinstance(node, Call)
        and isinstance(node.op, Op)
        and node.op.name == name
        and isinstance(node.checked_type, TensorType)
    ]


def product(x: Expr, rows: int = 4, columns: int = 4, seed: int = 0) -> Expr:
    return call("MatMul", x, constant(rows, columns, seed=seed))


def number(value: float) -> Constant:
    return Constant(np.array(value, np.float32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_heavy_operators_are_lowered_and_constants_cast_at_compile_time(dtype: str) -> None:
    x = image(1, 2, 6, 6)
    conv = call("Conv", x, constant(4, 2, 3, 3), constant(4))
    y = call("Gemm", call("Flatten", call("Relu", conv)), constant(64, 3), constant(3))
    after = near(of(y), ToMixedPrecision(dtype))
    assert dtypes(after, "Conv") == dtypes(after, "Gemm") == dtypes(after, "Relu") == [dtype]
    assert operator_counts(after)["Cast"] == 2  # x in, y out
    kinds = {str(node.data.dtype) for node in post_order(after["main"]) if isinstance(node, Constant)}
    assert kinds == {dtype}


def test_a_value_is_cast_once_for_all_its_users() -> None:
    x = image(3, 4)
    y = call("Softmax", product(x))
    after = near(of(product(y, seed=1), product(y, seed=2), call("Exp", y)))
    assert operator_counts(after)["Cast"] == 1 + 1 + 1 + 2  # x, the first product, y, and both results


def test_what_follows_is_cast_back_once() -> None:
    y = product(image(3, 4))
    after = near(of(call("Softmax", y), call("Softmax", call("Relu", y)), call("Exp", y)))
    assert dtypes(after, "Softmax") == ["float32"] * 2
    assert operator_counts(after)["Cast"] == 1 + 2


def test_without_anything_heavy_nothing_changes() -> None:
    x = image(3, 4)
    before = of(call("Add", call("Relu", x), call("Softmax", x)))
    assert HALF(before) is before


def test_inputs_of_both_kinds_are_added_in_float32() -> None:
    x = image(3, 4)
    after = near(of(call("Add", product(x), call("Softmax", x))))
    assert dtypes(after, "Add") == ["float32"]
    assert dtypes(after, "MatMul") == ["float16"]


def test_moving_operators_follow_with_their_integers() -> None:
    y = call("Reshape", product(image(3, 4)), Constant(np.array([2, 6])))
    parts = call("Split", y, Constant(np.array([2, 4])), axis=1, outputs=2)
    z = call("Transpose", tuple_get(parts, 1))
    after = near(of(product(z, rows=2), tuple_get(parts, 0)))
    assert dtypes(after, "Transpose") == dtypes(after, "Reshape") == ["float16"]
    assert operator_counts(after)["Cast"] == 1 + 2


def test_a_tuple_that_is_returned_gets_its_types_back() -> None:
    y = product(image(4, 4))
    parts = call("Split", y, axis=0, outputs=2, num_outputs=2)
    before = of(parts)
    after = near(before)
    assert after["main"].result_type == before["main"].result_type


def test_shapes_are_read_without_a_cast() -> None:
    y = product(image(3, 4))
    after = near(of(call("Shape", y), call("Softmax", y)))
    assert operator_counts(after)["Cast"] == 2


def test_arguments_whose_type_is_fixed_stay() -> None:
    conv = call("Conv", image(1, 2, 4, 4), constant(2, 2, 1, 1))
    y = call("Resize", conv, absent(), Constant(np.array([1, 1, 2, 2], np.float32)))
    after = near(of(y))
    assert dtypes(after, "Resize") == ["float16"]
    scales = [
        node for node in post_order(after["main"]) if isinstance(node, Constant) and node.data.ndim == 1
    ]
    assert [str(item.data.dtype) for item in scales] == ["float32"]


@pytest.mark.parametrize(
    ("dtype", "value", "is_lowered"),
    [
        ("float16", -1e38, False),
        ("float16", 1e-12, False),
        ("float16", 1e-6, False),
        ("float16", 0.1, True),
        ("float16", -np.inf, True),
        ("float16", 0.0, True),
        ("bfloat16", -1e38, True),
        ("bfloat16", 1e-12, True),
    ],
)
def test_constants_that_do_not_fit_keep_float32(dtype: str, value: float, is_lowered: bool) -> None:
    before = of(call("Max", product(image(3, 4)), number(value)))
    after = near(before, ToMixedPrecision(dtype))
    assert dtypes(after, "Max") == [dtype if is_lowered else "float32"]


def test_weights_that_overflow_keep_float32() -> None:
    weight = Constant(np.full((4, 4), 1e5, np.float32))
    before = of(call("MatMul", image(3, 4), weight))
    assert HALF(before) is before
    assert ToMixedPrecision("bfloat16")(before) is not before


def test_keep_and_lower() -> None:
    y = call("Softmax", product(image(3, 4)))
    assert dtypes(near(of(y), ToMixedPrecision(lower=("Softmax",))), "Softmax") == ["float16"]
    before = of(y)
    assert ToMixedPrecision(keep=("MatMul",))(before) is before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float8"}, "dtype is 'float8', expected float16 or bfloat16"),
        ({"keep": ("Convolution",)}, "ONNX has no operator 'Convolution'"),
        ({"keep": ("Add",), "lower": ("Add",)}, "Add stands in both keep and lower"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ToMixedPrecision(**options)


def test_other_element_types_are_left_alone() -> None:
    x = image(3, 4, dtype=DType.FLOAT64)
    before = of(call("MatMul", x, constant(4, 4, dtype=DType.FLOAT64)))
    assert HALF(before) is before


def test_casts_of_the_model_are_not_repeated() -> None:
    y = product(image(3, 4))
    after = near(of(call("Cast", call("Relu", y), to=F16)))
    assert operator_counts(after)["Cast"] == 1
    x = image(3, 4, dtype=DType.FLOAT16)
    wide = call("Cast", x, to=F32)
    assert operator_counts(near(of(product(wide))))["Cast"] == 1


def test_interface_in_the_lower_type() -> None:
    x = image(3, 4)
    y = call("Softmax", product(x))
    before = of(y, call("Shape", y), x)
    after = ToMixedPrecision(keep_io=False)(infer_types(before))
    verify(after)
    main = after["main"]
    half = TensorType((3, 4), DType.FLOAT16)
    assert [param.checked_type for param in main.params] == [half]
    assert main.result_type == TupleType((half, TensorType((2,), DType.INT64), half))
    assert ToMixedPrecision(keep_io=False)(after) is after
    data = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    expected = ia.build(before).run_flat(data)
    found = ia.build(after).run_flat(data.astype(np.float16))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=5e-3, atol=5e-3)


def test_interface_of_a_tuple_in_the_lower_type() -> None:
    x = image(4, 4)
    parts = call("Split", call("Exp", x), axis=0, outputs=2, num_outputs=2)
    after = ToMixedPrecision("bfloat16", keep_io=False)(of(parts))
    verify(after)
    result = after["main"].result_type
    assert result == TupleType((TensorType((2, 4), DType.BFLOAT16),) * 2)
    assert ToMixedPrecision("bfloat16", keep_io=False)(after) is after
    ones = np.ones((4, 4), ml_dtypes.bfloat16)
    for item in ia.build(after).run_flat(ones):
        np.testing.assert_allclose(np.asarray(item).astype(np.float32), math.e, rtol=1e-2)


def test_a_program_that_calls_main_keeps_its_interface() -> None:
    x, y = image(3, 4), image(3, 4)
    main = Function((x,), product(x))
    name = GlobalVar("main", checked_type=main.checked_type)
    caller = Function((y,), Call(name, (y,), checked_type=main.result_type))
    before = IRModule({name: main, GlobalVar("f", checked_type=caller.checked_type): caller})
    after = ToMixedPrecision(keep_io=False)(before)
    assert after["main"].checked_type == main.checked_type


def test_branches_lets_and_functions_keep_their_types() -> None:
    x = image(3, 4)
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    first = product(x)
    inner = If(flag, product(first, seed=1), call("Softmax", first), checked_type=first.checked_type)
    v = Var("v", checked_type=inner.checked_type)
    p = image(3, 4)
    literal = Function((p,), call("Tanh", product(p, seed=2)))
    called = Call(literal, (v,), checked_type=first.checked_type)
    body = Let(v, inner, call("Add", called, product(v, seed=3)))
    after = near(IRModule.from_expr(Function((x, flag), body)))
    assert dtypes(after, "MatMul") == ["float16"] * 4
    assert dtypes(after, "Add") == ["float32"]


def test_loop_bodies_keep_their_types_and_cast_weights_outside() -> None:
    x, state = image(3, 4), image(3, 4)
    i = Var("i", checked_type=TensorType((), DType.INT64))
    go = Var("go", checked_type=TensorType((), DType.BOOL))
    w = Var("w", checked_type=TensorType((4, 4), DType.FLOAT32))
    body = Function((i, go, state), Tuple((go, call("Sigmoid", call("MatMul", state, w)))))
    loop = call("Loop", Constant(np.array(3)), Constant(np.array(True)), x, body)
    after = near(IRModule.from_expr(Function((x, w), loop)))
    assert dtypes(after, "MatMul") == ["float16"]
    assert operator_counts(after)["Cast"] == 3


def test_random_numbers_are_drawn_as_before() -> None:
    y = product(image(3, 4))
    mode = Constant(np.array(True))
    dropped = call("Dropout", y, number(0.5), mode)
    after = HALF(of(dropped, call("RandomNormalLike", y)))
    assert dtypes(after, "Dropout") == dtypes(after, "RandomNormalLike") == ["float32"]


def test_functions_for_toolchains_are_left_alone() -> None:
    x, p = image(3, 4), image(3, 4)
    literal = Function((p,), product(p), Attrs({"Primitive": 1}))
    before = IRModule.from_expr(Function((x,), Call(literal, (x,), checked_type=x.checked_type)))
    assert HALF(before) is before


def test_unknown_types_are_left_alone() -> None:
    x = Var("x")
    w = constant(4, 4)
    before = IRModule.from_expr(Function((x,), call("MatMul", x, w)))
    assert HALF(before) is before


def test_spans_and_devices_are_kept() -> None:
    x = image(4, 4)
    y = product(x)
    parts = call("Split", y, axis=0, outputs=2, num_outputs=2)
    for keep_io in (True, False):
        assert_facts_kept(ToMixedPrecision(keep_io=keep_io), of(Tuple((call("Softmax", y), parts))))


def test_a_long_chain_is_no_problem(length: int) -> None:
    value: Expr = image(2, 2)
    w = constant(2, 2)
    for _ in range(length):
        value = call("Tanh", call("MatMul", value, w))
    assert operator_counts(HALF(of(value))) == {"MatMul": length, "Tanh": length, "Cast": 2}


MODELS = ["bert_tiny", "gpt2_tiny", "squeezenet", "mnist"]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("toolchain", "dtype"), [("onnxruntime", "float16"), ("openvino", "bfloat16")])
def test_models_on_toolchains(name: str, toolchain: str, dtype: str) -> None:
    module = ia.from_onnx(build_model(name))
    made = ToMixedPrecision(dtype)
    after = made(module)
    verify(after)
    assert made(after) is after
    heavy = dtypes(after, "MatMul") + dtypes(after, "Conv") + dtypes(after, "Gemm")
    assert heavy
    assert set(heavy) == {dtype}
    inputs = random_inputs(module["main"])
    target = ia.Target.for_toolchain(toolchain)
    expected = ia.build(partition_whole(module, target)).run_flat(*inputs.values())
    found = ia.build(partition_whole(after, target)).run_flat(*inputs.values())
    for one, other in zip(found, expected, strict=True):
        wide, scale = np.asarray(other), np.abs(np.asarray(other)).max()
        np.testing.assert_allclose(np.asarray(one), wide, rtol=0, atol=0.1 * scale)


def test_what_onnxruntime_refuses_is_an_error_that_says_so() -> None:
    after = ToMixedPrecision("bfloat16")(of(product(image(3, 4))))
    with pytest.raises(CompileError, match="MatMul"):
        ia.build(partition_whole(after, ia.Target.for_toolchain("onnxruntime")))


def test_layers_by_number() -> None:
    """Layer 1 alone is lowered; its activation follows, and what reads that keeps float32."""
    first = call("Relu", call("MatMul", image(2, 4), constant(4, 4)))
    second = call("Relu", call("MatMul", first, constant(4, 4)))
    mod = of(call("MatMul", second, constant(4, 3)))
    made = ToMixedPrecision("bfloat16", layers=(1,))
    assert dtypes(near(mod, made), "MatMul") == ["float32", "bfloat16", "float32"]
    assert dtypes(made(mod), "Relu") == ["float32", "bfloat16"]
    with pytest.raises(UsageError, match=r"^layers has -1, expected numbers from 0$"):
        ToMixedPrecision(layers=(-1,))
