"""Parallel convolutions become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.model_gates import model_gate
from tests.parallel_programs import constant, convolutions, image, program
from tests.pass_checks import (
    assert_facts_kept,
    assert_same_results,
    checked,
    operator_counts,
)

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    SymbolicDim,
    TensorType,
    Var,
    with_fields,
)
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op import call, tuple_get, verify
from intarsia.passes import CombineParallelConv2D, partition_whole
from intarsia.support.errors import UsageError
from intarsia.target import DeviceType, VirtualDevice

COMBINE = CombineParallelConv2D()


def convs(mod: IRModule) -> int:
    return operator_counts(mod)["Conv"]


def test_three_convolutions_become_one_and_a_split() -> None:
    x = image()
    after = checked(COMBINE, program(x, *convolutions(x)))
    assert operator_counts(after) == {"Conv": 1, "Split": 1}


def test_two_are_not_worth_it_unless_asked_for() -> None:
    x = image()
    before = program(x, *convolutions(x, (1, 2)))
    assert COMBINE(before) is before
    assert convs(checked(CombineParallelConv2D(min_num_branches=2), before)) == 1


def test_fewer_than_two_branches_make_no_sense() -> None:
    with pytest.raises(UsageError, match="min_num_branches is 1, expected 2 or more"):
        CombineParallelConv2D(min_num_branches=1)


@pytest.mark.parametrize(
    "attrs",
    [
        {"strides": (2, 2)},
        {"pads": (1, 0, 2, 1)},
        {"dilations": (2, 1)},
        {"auto_pad": "SAME_UPPER", "strides": (2, 1)},
        {"kernel_shape": (3, 3)},
    ],
    ids=str,
)
def test_geometry_is_kept(attrs: dict[str, Any]) -> None:
    x = image()
    assert convs(checked(COMBINE, program(x, *convolutions(x, **attrs)))) == 1


def test_written_out_defaults_are_the_defaults() -> None:
    x = image()
    first = convolutions(x, (1, 2))
    second = convolutions(x, (3,), pads=(0, 0, 0, 0), strides=(1, 1), group=1)
    assert convs(checked(COMBINE, program(x, *first, *second))) == 1


@pytest.mark.parametrize("kernel", [(3,), (2, 2, 2)])
def test_any_number_of_spatial_axes(kernel: tuple[int, ...]) -> None:
    x = image(1, 2, *(5 for _ in kernel))
    assert convs(checked(COMBINE, program(x, *convolutions(x, kernel=kernel)))) == 1


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT64])
def test_other_element_types(dtype: DType) -> None:
    x = image(dtype=dtype)
    results = [
        call("Conv", x, constant(count, 2, 1, 1, seed=i, dtype=dtype), constant(count, dtype=dtype))
        for i, count in enumerate((1, 2, 3))
    ]
    assert convs(checked(COMBINE, program(x, *results), atol=2e-3 if dtype is DType.FLOAT16 else 1e-9)) == 1


def test_a_missing_bias_is_zero() -> None:
    x = image()
    before = program(x, *convolutions(x, (1, 2)), *convolutions(x, (3,), biases=False))
    assert operator_counts(checked(COMBINE, before)) == {"Conv": 1, "Split": 1}


def test_symbolic_dimensions() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("N"), 2, SymbolicDim("H"), 6), DType.FLOAT32))
    before = program(x, *convolutions(x))
    after = COMBINE(before)
    verify(after)
    assert convs(after) == 1
    assert after["main"].result_type == before["main"].result_type
    assert_same_results(before, after, {"x": np.ones((2, 2, 5, 6), np.float32)})


def different_kernels(x: Expr) -> list[Expr]:
    return [*convolutions(x, (1, 2), kernel=(3, 3)), *convolutions(x, (3,), kernel=(1, 1))]


def different_strides(x: Expr) -> list[Expr]:
    return [*convolutions(x, (1, 2)), *convolutions(x, (3,), strides=(2, 2))]


def grouped(x: Expr) -> list[Expr]:
    return [call("Conv", x, constant(2, 1, 3, 3, seed=i), group=2) for i in range(3)]


def computed_weights(x: Expr) -> list[Expr]:
    return [call("Conv", x, call("Neg", constant(2, 2, 3, 3, seed=i))) for i in range(3)]


def different_inputs(x: Expr) -> list[Expr]:
    return [conv for y in ("Relu", "Neg", "Abs") for conv in convolutions(call(y, x), (1,))]


def other_operators(x: Expr) -> list[Expr]:
    return [call("ConvTranspose", x, constant(2, 1, 3, 3, seed=i)) for i in range(3)]


@pytest.mark.parametrize(
    "write",
    [different_kernels, different_strides, grouped, computed_weights, different_inputs, other_operators],
)
def test_what_is_not_alike_is_left_alone(write: Callable[[Expr], list[Expr]]) -> None:
    x = image()
    before = program(x, *write(x))
    assert COMBINE(before) is before


def vary(count: int, i: int) -> Constant:
    return constant(count, 1, 1, seed=i)


def relu(conv: Expr, _count: int, _i: int) -> Expr:
    return call("Relu", conv)


def add_bias(conv: Expr, count: int, i: int) -> Expr:
    return call("Add", conv, vary(count, i))


def subtract_from(conv: Expr, count: int, i: int) -> Expr:
    return call("Sub", constant(1, count, 1, 1, seed=i), conv)


def scale_by_numbers(conv: Expr, _count: int, i: int) -> Expr:
    return call("Mul", conv, Constant(np.array(i + 1, np.float32)))


def batch_norm(conv: Expr, count: int, i: int) -> Expr:
    return call("BatchNormalization", conv, *(constant(count, seed=10 * i + j) for j in range(4)))


def clip(conv: Expr, _count: int, _i: int) -> Expr:
    return call("Clip", conv, Constant(np.array(1, np.float32)), Constant(np.array(3, np.float32)))


def leaky(conv: Expr, _count: int, _i: int) -> Expr:
    return call("LeakyRelu", conv, alpha=0.3)


def prelu(conv: Expr, count: int, i: int) -> Expr:
    return call("PRelu", call("Neg", conv), vary(count, i))


def chain(conv: Expr, count: int, i: int) -> Expr:
    return relu(add_bias(batch_norm(conv, count, i), count, i), count, i)


Follow = Callable[[Expr, int, int], Expr]


def with_following(follow: Follow) -> IRModule:
    x = image()
    outputs = (1, 2, 3)
    results = convolutions(x, outputs)
    return program(x, *(follow(conv, outputs[i], i) for i, conv in enumerate(results)))


FOLLOWING = [relu, add_bias, subtract_from, scale_by_numbers, batch_norm, clip, leaky, prelu, chain]


@pytest.mark.parametrize("follow", FOLLOWING)
def test_what_follows_is_combined_too(follow: Follow) -> None:
    before = with_following(follow)
    expected = {name: count // 3 for name, count in operator_counts(before).items()}
    assert operator_counts(checked(COMBINE, before)) == {**expected, "Split": 1}


def different_activations(conv: Expr, _count: int, i: int) -> Expr:
    return call(("Relu", "Tanh", "Relu")[i], conv)


def different_limits(conv: Expr, _count: int, i: int) -> Expr:
    return call("Clip", conv, Constant(np.array(i, np.float32)))


def different_attributes(conv: Expr, _count: int, i: int) -> Expr:
    return call("LeakyRelu", conv, alpha=0.1 * i)


def other_side(conv: Expr, count: int, i: int) -> Expr:
    operands = (conv, vary(count, i))
    return call("Sub", *(operands if i else operands[::-1]))


def per_pixel(conv: Expr, _count: int, i: int) -> Expr:
    return call("Add", conv, constant(4, 4, seed=i))


def more_axes(conv: Expr, _count: int, i: int) -> Expr:
    return call("Add", conv, constant(1, 1, 1, 1, 1, seed=i))


def on_itself(conv: Expr, _count: int, _i: int) -> Expr:
    return call("Mul", conv, conv)


def casts_alike(conv: Expr, _count: int, i: int) -> Expr:
    return call("CastLike", conv, Constant(np.zeros(2 + i, np.float16)))


def expanding(conv: Expr, count: int, _i: int) -> Expr:
    return call("Expand", conv, Constant(np.array([2, count, 4, 4])))


def quantizing(conv: Expr, count: int, i: int) -> Expr:
    zero_point = Constant(np.zeros(count, np.int8))
    return call("QuantizeLinear", conv, constant(count, seed=i), zero_point, axis=1)


SPLIT_BEFORE = [
    *(different_activations, different_limits, different_attributes, other_side, per_pixel, more_axes),
    *(on_itself, casts_alike, expanding, quantizing),
]


@pytest.mark.parametrize("follow", SPLIT_BEFORE)
def test_what_differs_comes_after_the_split(follow: Follow) -> None:
    before = with_following(follow)
    counts = operator_counts(before)
    assert operator_counts(checked(COMBINE, before)) == {**counts, "Conv": 1, "Split": 1}


def test_training_mode_batch_norm_comes_after_the_split() -> None:
    x = image()
    results = []
    for i, conv in enumerate(convolutions(x, (2, 2, 2))):
        parameters = [constant(2, seed=10 * i + j) for j in range(4)]
        results.append(call("BatchNormalization", conv, *parameters, outputs=3, training_mode=1))
    after = checked(COMBINE, program(x, *(tuple_get(result, 0) for result in results)))
    assert operator_counts(after) == {"Conv": 1, "Split": 1, "BatchNormalization": 3}


def test_a_result_with_two_uses_is_split_first() -> None:
    x = image()
    first, second, third = convolutions(x, (2, 2, 2))
    before = program(x, call("Relu", first), call("Relu", second), call("Relu", third), first)
    assert operator_counts(checked(COMBINE, before)) == {"Conv": 1, "Split": 1, "Relu": 3}


def test_branches_that_depend_on_each_other_make_no_cycle() -> None:
    x = image()
    first, second, third = convolutions(x, (2, 2, 2))
    second = call("Add", second, call("Relu", first))
    third = call("Add", third, second)
    before = program(x, call("Add", first, third))
    assert operator_counts(checked(COMBINE, before)) == {"Conv": 1, "Split": 1, "Relu": 1, "Add": 3}


def test_groups_on_top_of_each_other() -> None:
    x = image()
    lower = convolutions(x, (2, 2, 2), pads=(1, 1, 1, 1))
    middle = call("Concat", *lower, axis=1)
    upper = [call("Conv", middle, constant(2, 6, 1, 1, seed=i)) for i in range(4)]
    assert operator_counts(checked(COMBINE, program(x, *upper))) == {"Conv": 2, "Split": 2, "Concat": 1}


def test_convolutions_of_two_scopes_stay_apart() -> None:
    x = image()
    condition = Var("c", checked_type=TensorType((), DType.BOOL))
    left, right = convolutions(x, (2, 2))
    third = convolutions(x, (2,))[0]
    inner = If(condition, left, right, checked_type=left.checked_type)
    before = IRModule.from_expr(Function((x, condition), call("Add", inner, third)))
    assert COMBINE(before) is before


def test_inside_a_branch() -> None:
    x = image()
    condition = Var("c", checked_type=TensorType((), DType.BOOL))
    first, second, third = convolutions(x, (2, 2, 2))
    total = call("Add", call("Add", first, second), third)
    other = call("Neg", first)  # a use in the other branch: evaluated outside of both
    inner = If(condition, total, other, checked_type=total.checked_type)
    before = IRModule.from_expr(Function((x, condition), inner))
    assert COMBINE(before) is before
    alone = If(condition, total, call("Neg", constant(1, 2, 4, 4)), checked_type=total.checked_type)
    after = checked(COMBINE, IRModule.from_expr(Function((x, condition), alone)))
    assert convs(after) == 1
    assert isinstance(after["main"].body, If)


def test_let_bodies_are_scopes() -> None:
    x = image()
    first, second, third = convolutions(x, (2, 2, 2))
    v = Var("v", checked_type=first.checked_type)
    body = call("Add", call("Add", v, second), third)
    before = IRModule.from_expr(Function((x,), Let(v, first, body)))
    assert COMBINE(before) is before
    assert convs(checked(CombineParallelConv2D(2), before)) == 2


def test_a_loop_body() -> None:
    x = image(1, 2, 4, 4)
    i = Var("i", checked_type=TensorType((), DType.INT64))
    go = Var("go", checked_type=TensorType((), DType.BOOL))
    state = image(1, 2, 4, 4)
    total: Expr = state
    for conv in convolutions(state, (2, 2, 2), pads=(1, 1, 1, 1)):
        total = call("Tanh", call("Add", total, conv))
    body = Function((i, go, state), call_tuple(go, total))
    loop = call("Loop", Constant(np.array(2)), Constant(np.array(True)), x, body)
    assert convs(checked(COMBINE, IRModule.from_expr(Function((x,), loop)))) == 1


def call_tuple(*fields: Expr) -> Expr:
    from intarsia.ir import Tuple

    return Tuple(fields)


def test_functions_compiled_on_their_own_are_left_alone() -> None:
    x, y = image(), image()
    total: Expr = call("Relu", y)
    first, second, third = convolutions(y, (2, 2, 2))
    total = call("Add", call("Add", first, second), third)
    literal = Function((y,), total)
    open_program = IRModule.from_expr(Function((x,), Call(literal, (x,), checked_type=total.checked_type)))
    assert convs(checked(COMBINE, open_program)) == 1
    closed = with_fields(literal, attrs=ia.ir.Attrs({"Primitive": 1}))
    before = IRModule.from_expr(Function((x,), Call(closed, (x,), checked_type=total.checked_type)))
    assert COMBINE(before) is before


def test_spans_and_devices_are_kept() -> None:
    assert_facts_kept(COMBINE, with_following(chain))


def test_devices_keep_branches_apart() -> None:
    x = image()
    first, second, third = convolutions(x)
    moved = with_fields(third, virtual_device=VirtualDevice(DeviceType.CPU, 1))
    before = program(x, first, second, moved)
    assert COMBINE(before) is before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [("inception_v1", 40), pytest.param("inception_v2", 60, marks=pytest.mark.slow)],
)
def test_inception(name: str, most: int) -> None:
    module = ia.from_onnx(build_model(name))
    after = CombineParallelConv2D(2)(module)
    verify(after)
    assert convs(after) <= most < convs(module)
    assert CombineParallelConv2D(2)(after) is after
    inputs = random_inputs(module["main"])
    gate = model_gate(name, module, inputs)
    built = ia.build(partition_whole(after, ia.Target.for_toolchain("onnxruntime")))
    report = gate.check(run_arrays(built, inputs))
    assert report.passed, report.message


@pytest.mark.slow
def test_a_long_chain_is_no_problem() -> None:
    x = image(1, 2, 2, 2)
    value: Expr = x
    weights = [constant(2, 2, 1, 1, seed=i) for i in range(3)]
    for _ in range(2000):
        first, second, third = (call("Conv", value, weight) for weight in weights)
        value = call("Relu", call("Add", call("Add", first, second), third))
    before = IRModule.from_expr(Function((x,), value))
    assert convs(COMBINE(before)) == 2000
