"""Layouts: transposes cancel, operators work channels first or last, and results stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.layout_programs import (
    conv,
    conv_last,
    image,
    ints,
    outer_operators,
    program,
    to_first,
    to_last,
)
from tests.model_gates import model_gate
from tests.parallel_programs import constant
from tests.pass_checks import assert_facts_kept, assert_same_results, checked, operator_counts

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import (
    Attrs,
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
    Tuple,
    Var,
    structural_equal,
    with_fields,
)
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op import absent, call, tuple_get, verify
from intarsia.passes import ConvertLayout, partition_whole
from intarsia.support.errors import UsageError
from intarsia.target import DeviceType, VirtualDevice

FIRST, LAST = ConvertLayout("NCHW"), ConvertLayout("NHWC")


def transposes(mod: IRModule) -> int:
    return outer_operators(mod).count("Transpose")


def test_a_model_from_a_channels_last_framework_loses_its_transposes() -> None:
    value: Expr = image(1, 5, 4, 3)
    for seed in range(4):
        value = call("Relu", call("Add", conv_last(value, seed), constant(3, seed=seed)))
    after = checked(FIRST, program(value))
    assert outer_operators(after) == ["Transpose", *["Conv", "Add", "Relu"] * 4, "Transpose"]


def test_onnx_layout_is_nothing_to_do() -> None:
    before = program(call("Relu", conv(image())))
    assert FIRST(before) is before


def test_convolutions_channels_last_with_nothing_between() -> None:
    x = image()
    value = call("Relu", call("Add", conv(x, seed=1), constant(3, 1, 1)))
    value = call("MaxPool", conv(value, seed=2), kernel_shape=(2, 2))
    value = call("Add", value, call("GlobalAveragePool", value))
    after = checked(LAST, program(value))
    names = outer_operators(after)
    assert names[0] == names[-1] == "Transpose"
    assert names.count("Transpose") == 2
    assert {"layout.Conv", "layout.MaxPool", "layout.GlobalAveragePool"} <= set(names)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_images_of_any_rank(rank: int) -> None:
    x = image(1, 3, *(4,) * (rank - 2))
    weight = constant(2, 3, *(2,) * (rank - 2))
    after = checked(LAST, program(call("Relu", call("Conv", x, weight, constant(2)))))
    assert outer_operators(after) == ["Transpose", "layout.Conv", "Relu", "Transpose"]


def test_there_and_back() -> None:
    before = program(call("Relu", conv(call("Relu", conv(image())), seed=1)))
    assert structural_equal(FIRST(LAST(before)), before)


def test_weights_that_are_computed_are_passed() -> None:
    x, w = image(), Var("w", checked_type=TensorType((3, 3, 1, 1), DType.FLOAT32))
    before = program(call("Conv", x, call("Neg", w)))
    after = checked(LAST, before)
    assert "layout.Conv" in outer_operators(after)
    assert structural_equal(FIRST(after), before)


def average(x: Expr) -> Expr:
    return call("AveragePool", x, kernel_shape=(2, 2))


def batch_norm(x: Expr) -> Expr:
    return call("BatchNormalization", x, *(constant(3, seed=i) for i in range(4)))


def instance_norm(x: Expr) -> Expr:
    return call("InstanceNormalization", x, constant(3), constant(3, seed=1))


def response_norm(x: Expr) -> Expr:
    return call("LRN", x, size=3)


def transposed_conv(x: Expr) -> Expr:
    return call("ConvTranspose", x, constant(3, 2, 2, 2))


def to_depth(x: Expr) -> Expr:
    return call("SpaceToDepth", call("Pad", x, ints(0, 0, 0, 0, 0, 0, 1, 0)), blocksize=2)


@pytest.mark.parametrize(
    "write", [average, batch_norm, instance_norm, response_norm, transposed_conv, to_depth]
)
def test_every_kind_of_operator_with_a_layout(write: Callable[[Expr], Expr]) -> None:
    before = program(write(image()))
    after = checked(LAST, before)
    assert any(name.startswith("layout.") for name in outer_operators(after))
    assert structural_equal(FIRST(after), before)


def test_only_some_operators() -> None:
    value = call("MaxPool", conv(image()), kernel_shape=(2, 2))
    names = outer_operators(checked(ConvertLayout("NHWC", ("Conv",)), program(value)))
    assert "layout.Conv" in names
    assert "MaxPool" in names


def test_indices_of_a_pooling_stay_as_they_are() -> None:
    both = call("MaxPool", image(), outputs=2, kernel_shape=(2, 2))
    before = program(tuple_get(both, 0), tuple_get(both, 1))
    assert LAST(before) is before


def unary(x: Expr) -> Expr:
    return call("Clip", call("Sigmoid", x), Constant(np.array(0.6, np.float32)))


def per_channel(x: Expr) -> Expr:
    return call("Mul", call("Sub", constant(4, 1), x), constant(3))


def where(x: Expr) -> Expr:
    return call("Where", call("Greater", x, constant(5, 1, 1)), x, constant(1, 1, 1, 1))


def softmax(x: Expr) -> Expr:
    return call("Softmax", x)


def concatenation(x: Expr) -> Expr:
    return call("Concat", x, call("Relu", x), constant(1, 5, 4, 2), axis=3)


def splitting(x: Expr) -> Expr:
    parts = call("Split", x, ints(1, 2), axis=-1, outputs=2)
    return call("Concat", tuple_get(parts, 1), tuple_get(parts, 0), axis=-1)


def mean_of_pixels(x: Expr) -> Expr:
    return call("ReduceMean", x, ints(1, -2), keepdims=0)


def mean_of_channels(x: Expr) -> Expr:
    return call("ReduceMean", x, ints(3))


def sum_over_width(x: Expr) -> Expr:
    return call("ReduceSum", x, ints(2), keepdims=0)


def total(x: Expr) -> Expr:
    return call("ReduceMax", x, keepdims=0)


def squeezed(x: Expr) -> Expr:
    return call("Squeeze", call("ReduceMax", x, ints(1)), ints(1))


def padding(x: Expr) -> Expr:
    return call("Pad", x, ints(0, 1, 2, 0, 0, 3, 0, 1))


def padding_of_axes(x: Expr) -> Expr:
    return call("Pad", x, ints(1, 2, 0, 1), absent(), ints(1, -1))


def slicing(x: Expr) -> Expr:
    return call("Slice", x, ints(0, 1), ints(3, 4), ints(3, 1), ints(2, 1))


def slicing_of_the_first_axes(x: Expr) -> Expr:
    return call("Slice", x, ints(0, 1), ints(1, 4))


def resizing(x: Expr) -> Expr:
    return call("Resize", x, absent(), Constant(np.array([1, 2, 3, 1], np.float32)))


def resizing_to_sizes(x: Expr) -> Expr:
    return call("Resize", x, absent(), absent(), ints(1, 7, 9, 3), mode="linear")


def largest(x: Expr) -> Expr:
    return call("Add", call("Cast", call("ArgMax", x, axis=-1), to=1), constant())


def places(x: Expr) -> Expr:
    return call("ArgMin", x, axis=1, keepdims=0)


def best_two(x: Expr) -> Expr:
    return tuple_get(call("TopK", x, ints(2), outputs=2), 0)


def sums(x: Expr) -> Expr:
    return call("CumSum", x, Constant(np.array(-1)))


def quantized(x: Expr) -> Expr:
    scale, zero = constant(3), Constant(np.zeros(3, np.int8))
    return call("DequantizeLinear", call("QuantizeLinear", x, scale, zero, axis=-1), scale, zero, axis=3)


RULES = [
    *(unary, per_channel, where, softmax, concatenation, splitting, mean_of_pixels, mean_of_channels),
    *(sum_over_width, total, squeezed, padding, padding_of_axes, slicing, slicing_of_the_first_axes),
    *(resizing, resizing_to_sizes, largest, places, best_two, sums, quantized),
]


@pytest.mark.parametrize("write", RULES)
def test_a_transpose_moves_behind(write: Callable[[Expr], Expr]) -> None:
    """Between two transposes to and fro, around an operator on the image channels last."""
    x = image()
    y = write(to_last(x))
    rank = len(y.checked_type.shape or ()) if isinstance(y.checked_type, TensorType) else 0
    before = program(to_first(y) if rank == 4 else y)
    after = checked(FIRST, before)
    if rank == 4:
        assert transposes(after) == 0
    else:
        assert transposes(after) <= 1
        assert after is not before


def reshaping(x: Expr) -> Expr:
    return call("Reshape", x, ints(1, -1))


def matrix_product(x: Expr) -> Expr:
    return call("MatMul", x, constant(3, 2))


def gathering(x: Expr) -> Expr:
    return call("Gather", x, ints(1), axis=3)


def more_axes(x: Expr) -> Expr:
    return call("Add", x, constant(2, 1, 1, 1, 1))


def padding_at_run_time(x: Expr) -> Expr:
    return call("Pad", x, call("Neg", ints(*(0,) * 8)))


def with_a_region(x: Expr) -> Expr:
    scales = Constant(np.array([1, 2, 3, 1], np.float32))
    region = Constant(np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32))
    return call("Resize", x, region, scales, coordinate_transformation_mode="tf_crop_and_resize")


@pytest.mark.parametrize(
    "write", [reshaping, matrix_product, gathering, more_axes, padding_at_run_time, with_a_region]
)
def test_what_needs_the_value_as_it_was_stays(write: Callable[[Expr], Expr]) -> None:
    before = program(write(to_last(image())))
    assert FIRST(before) is before


def test_shapes_are_read_before_the_transpose() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("N"), 3, 5, 4), DType.FLOAT32))
    y = to_last(x)
    before = program(call("Shape", y), to_first(call("Relu", y)))
    after = FIRST(before)
    verify(after)
    assert transposes(after) == 0
    assert_same_results(before, after, {"x": np.ones((2, 3, 5, 4), np.float32)})


def test_transposes_that_meet_become_one() -> None:
    turned = call("Transpose", call("Transpose", image(2, 3, 4), perm=(1, 2, 0)), perm=(1, 2, 0))
    after = checked(FIRST, program(turned))
    assert outer_operators(after) == ["Transpose"]
    assert outer_operators(checked(FIRST, program(call("Transpose", call("Transpose", image()))))) == []


def test_layout_transforms_are_transposes() -> None:
    x = image()
    last = call("layout_transform", x, domain="intarsia", src_layout="NCHW", dst_layout="NHWC")
    first = call(
        "layout_transform", call("Relu", last), domain="intarsia", src_layout="NHWC", dst_layout="NCHW"
    )
    assert outer_operators(checked(FIRST, program(first))) == ["Relu"]


def test_moving_is_not_worth_more_transposes() -> None:
    y = to_last(image())
    before = program(call("Relu", y), call("Neg", y))
    assert FIRST(before) is before


def test_a_residual_sum_channels_last() -> None:
    value = conv(image())
    for seed in range(3):
        value = call("Relu", call("Add", conv(value, seed=seed), value))
    assert transposes(checked(LAST, program(value))) == 2


def test_a_sum_with_the_input_takes_its_transpose() -> None:
    x = image()
    after = checked(LAST, program(call("Relu", call("Add", conv(x), x))))
    assert transposes(after) == 2


def test_a_tuple_that_is_used_whole_is_transposed_field_by_field() -> None:
    value = conv(image())
    parts = call("Split", value, axis=2, outputs=2, num_outputs=2)
    before = program(parts)
    after = checked(LAST, before)
    assert after["main"].result_type == before["main"].result_type


def test_scopes() -> None:
    x = image()
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    y = conv(x)
    inner = If(flag, call("Relu", y), conv(call("Neg", y), seed=1), checked_type=y.checked_type)
    v = Var("v", checked_type=y.checked_type)
    p = image()
    literal = Function((p,), call("Tanh", conv(p, seed=2)))
    body = Let(v, inner, call("Add", Call(literal, (v,), checked_type=y.checked_type), conv(v, seed=3)))
    before = IRModule.from_expr(Function((x, flag), body))
    for made in (LAST, ConvertLayout("NHWC", ("MaxPool",))):
        checked(made, before)


def test_a_loop() -> None:
    x, state = image(), image()
    i = Var("i", checked_type=TensorType((), DType.INT64))
    go = Var("go", checked_type=TensorType((), DType.BOOL))
    body = Function((i, go, state), Tuple((go, call("Tanh", conv(conv(state), seed=1)))))
    loop = call("Loop", Constant(np.array(2)), Constant(np.array(True)), x, body)
    before = IRModule.from_expr(Function((x,), loop))
    assert 'layout="NHWC"' in str(checked(LAST, before))


def test_random_operators_draw_in_their_layout() -> None:
    y = to_last(image())
    dropped = call("Dropout", y, Constant(np.array(0.5, np.float32)), Constant(np.array(True)))
    before = program(to_first(dropped))
    assert FIRST(before) is before


def test_a_device_of_its_own_keeps_a_transpose() -> None:
    moved = with_fields(to_last(image()), virtual_device=VirtualDevice(DeviceType.CPU, 1))
    before = program(to_first(call("Relu", moved)))
    assert FIRST(before) is before


def test_functions_for_toolchains_are_left_alone() -> None:
    x, p = image(), image()
    literal = Function((p,), conv(p), Attrs({"Primitive": 1}))
    before = program(Call(literal, (x,), checked_type=x.checked_type))
    assert LAST(before) is before


def test_unknown_types_are_left_alone() -> None:
    x = Var("x")
    before = program(call("Relu", call("Transpose", call("Conv", x, constant(3, 3, 1, 1)))))
    assert LAST(before) is before
    assert FIRST(before) is before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("NCHW8c",), "layout is 'NCHW8c', expected NCHW or NHWC"),
        (("NHWC", ("MatMul",)), "operator 'MatMul' has no layout"),
    ],
)
def test_options_that_make_no_sense(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ConvertLayout(*options)  # type: ignore[arg-type]  # the second is a tuple of names


def test_spans_and_devices_are_kept() -> None:
    parts = call("Split", conv(image()), axis=2, outputs=2, num_outputs=2)
    assert_facts_kept(LAST, program(Tuple((call("Softmax", tuple_get(parts, 0), axis=1), parts))))
    assert_facts_kept(FIRST, program(conv_last(call("Relu", conv_last(image(1, 5, 4, 3))))))


@pytest.mark.slow
def test_a_long_chain_is_no_problem() -> None:
    value: Expr = image(1, 2, 2, 3)
    for seed in range(1000):
        value = call("Relu", conv_last(value, seed % 2))
    after = FIRST(program(value))
    assert operator_counts(after) == {"Conv": 1000, "Relu": 1000, "Transpose": 2}
    assert outer_operators(LAST(after)).count("Transpose") == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", pytest.param("resnet50", marks=pytest.mark.slow)])
@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino"])
def test_models_channels_last(name: str, toolchain: str) -> None:
    module = ia.from_onnx(build_model(name))
    after = LAST(module)
    verify(after)
    assert LAST(after) is after
    assert transposes(after) <= 3
    inputs = random_inputs(module["main"])
    gate = model_gate(name, module, inputs)
    built = ia.build(partition_whole(after, ia.Target.for_toolchain(toolchain)))
    report = gate.check(run_arrays(built, inputs))
    assert report.passed, report.message
