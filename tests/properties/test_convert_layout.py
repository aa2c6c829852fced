"""Random programs of images: any layout computes the same, is valid, and stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.layout_programs import conv, image, ints
from tests.parallel_programs import constant
from tests.pass_checks import checked
from tests.properties.random_programs import programs

from intarsia.ir import DType, Expr, Function, If, IRModule, Let, TensorType, Tuple, Var
from intarsia.op import call, tuple_get
from intarsia.passes import ConvertLayout

SIZE = 3
"""Of every axis but the first, so that all values have one shape in any order of axes."""
ORDERS = ((0, 2, 3, 1), (0, 3, 1, 2), (0, 3, 2, 1))
LAYOUTS = st.sampled_from(["NCHW", "NHWC"])


@st.composite
def image_programs(draw: st.DrawFn) -> IRModule:
    """Images made of each other by operators that have a layout, that have axes, and that have neither."""
    x = image(1, SIZE, SIZE, SIZE)
    flag = Var("flag", checked_type=TensorType((), DType.BOOL))
    values: list[Expr] = [x]
    for seed in range(draw(st.integers(2, 14))):
        kind = draw(st.sampled_from([*STEPS, "Conv", "Transpose", "Transpose"]))
        first, second = (draw(st.sampled_from(values[-4:])) for _ in range(2))
        order, axis = draw(st.sampled_from(ORDERS)), draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
        values.append(STEPS[kind](Step(first, second, flag, seed, order, axis)))
    results = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return IRModule.from_expr(Function((x, flag), Tuple((*results, values[-1]))))


@dataclass(frozen=True)
class Step:
    """What a new value is made of."""

    first: Expr
    second: Expr
    flag: Expr
    seed: int
    order: tuple[int, ...]
    axis: int


def parts_in_turn(step: Step) -> Expr:
    parts = call("Split", step.first, ints(1, 2), axis=step.axis, outputs=2)
    return call("Concat", tuple_get(parts, 1), tuple_get(parts, 0), axis=step.axis)


def branch(step: Step) -> Expr:
    return If(step.flag, call("Neg", step.first), step.second, checked_type=step.first.checked_type)


def let(step: Step) -> Expr:
    v = Var("v", checked_type=step.first.checked_type)
    return Let(v, step.first, call("Max", v, call("Transpose", step.second, perm=step.order)))


def shifted(step: Step) -> Expr:
    longer = call("Pad", step.first, ints(1, 0), constant(), ints(step.axis))
    return call("Slice", longer, ints(0), ints(-1), ints(step.axis))


def bias(step: Step) -> Expr:
    shape = (SIZE, 1, 1) if step.seed % 2 else (SIZE,)
    return call("Add", step.first, constant(*shape, seed=step.seed))


def norm(step: Step) -> Expr:
    return call("InstanceNormalization", step.first, constant(SIZE), constant(SIZE, seed=1))


STEPS: dict[str, Callable[[Step], Expr]] = {
    "Conv": lambda step: conv(call("Tanh", step.first), seed=step.seed),
    "Transpose": lambda step: call("Transpose", step.first, perm=step.order),
    "MaxPool": lambda step: call("MaxPool", step.first, kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
    "Relu": lambda step: call("Relu", step.first),
    "Add": lambda step: call("Add", step.first, step.second),
    "Softmax": lambda step: call("Softmax", step.first, axis=step.axis),
    "Mean": lambda step: call("Sub", step.first, call("ReduceMean", step.first, ints(step.axis))),
    "Scale": lambda step: call("Mul", call("GlobalAveragePool", step.first), step.second),
    "Bias": bias,
    "Split": parts_in_turn,
    "If": branch,
    "Let": let,
    "Shift": shifted,
    "Norm": norm,
}


@settings(max_examples=examples(40), deadline=None)
@given(image_programs(), LAYOUTS)
def test_images(before: IRModule, layout: str) -> None:
    after = checked(ConvertLayout(layout), before, rtol=1e-4, atol=1e-4)
    assert after["main"].checked_type == before["main"].checked_type


@settings(max_examples=examples(25), deadline=None)
@given(image_programs())
def test_there_and_back(before: IRModule) -> None:
    there = ConvertLayout("NHWC")(before)
    checked(ConvertLayout("NCHW"), there, rtol=1e-4, atol=1e-4)


@settings(max_examples=examples(15), deadline=None)
@given(programs(), LAYOUTS)
def test_programs_without_images_are_returned_as_they_are(before: IRModule, layout: str) -> None:
    assert ConvertLayout(layout)(before) is before
