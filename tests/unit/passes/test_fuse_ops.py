"""Which operators become one function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.ir_programs import chain
from tests.pass_checks import assert_facts_kept, assert_same_results, checked

import intarsia as ia
from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    Var,
    post_order,
    structural_equal,
    with_fields,
)
from intarsia.op import call, infer_types, tuple_get, verify
from intarsia.passes import DefuseOps, FuseOps, ToANormalForm, ToGraphNormalForm, partition_whole
from intarsia.passes.fuse_ops import MAX_DEPTH
from intarsia.support.errors import UsageError
from intarsia.target import DeviceType, Target, VirtualDevice
from intarsia.transform import PassContext

FUSE = FuseOps()
IMAGE = TensorType.of(np.zeros((1, 4, 6, 6), np.float32))
FLAG = TensorType.of(np.zeros((), np.bool_))
X = Var("x", checked_type=IMAGE)
Y = Var("y", checked_type=IMAGE)
C = Var("c", checked_type=FLAG)
WEIGHT = Constant(np.random.default_rng(0).normal(size=(4, 4, 1, 1)).astype(np.float32))
BIAS = Constant(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1))


def whole_numbers(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


def conv(value: Expr) -> Call:
    return call("Conv", value, WEIGHT)


def relu(value: Expr) -> Call:
    return call("Relu", value)


def fused(body: Expr, made: FuseOps = FUSE) -> list[str]:
    """The groups that come of a program of x, y and c, sorted, each as its operators in order."""
    before = infer_types(IRModule.from_expr(Function((X, Y, C), body)))
    after = checked(made, before)
    assert structural_equal(DefuseOps()(after), before)
    assert_facts_kept_if_changed(made, before)
    return sorted(" ".join(operators(group.body)) for group in groups(after))


def assert_facts_kept_if_changed(made: FuseOps, before: IRModule) -> None:
    if made(before) is not before:
        assert_facts_kept(made, before)


def groups(mod: IRModule) -> list[Function]:
    return [
        node
        for function in mod.graph_functions.values()
        for node in post_order(function)
        if isinstance(node, Function) and "Primitive" in node.attrs
    ]


def operators(expr: Expr) -> Iterator[str]:
    for node in post_order(expr):
        if isinstance(node, Call) and isinstance(node.op, Op):
            yield node.op.name


def test_a_convolution_takes_what_follows_element_by_element() -> None:
    assert fused(relu(call("Add", conv(X), BIAS))) == ["Conv Add Relu"]


def test_a_convolution_takes_the_other_operand_too_if_that_is_elementwise() -> None:
    assert fused(call("Add", conv(X), call("Neg", Y))) == ["Conv Neg Add"]


def test_two_convolutions_are_never_in_one_group() -> None:
    assert fused(relu(conv(relu(conv(X))))) == ["Conv Relu", "Conv Relu"]
    assert fused(call("Add", conv(X), conv(Y))) == ["Conv Add"]


def test_nothing_is_fused_before_a_convolution() -> None:
    assert fused(conv(relu(X))) == []


def test_a_diamond_is_one_group() -> None:
    top = relu(X)
    assert fused(call("Add", call("Exp", top), call("Neg", top))) == ["Relu Exp Neg Add"]


def test_a_diamond_around_something_opaque_is_none() -> None:
    top = relu(X)
    assert fused(call("Add", call("Softmax", top), call("Neg", top))) == ["Neg Add"]


def test_a_value_that_is_needed_outside_ends_its_group() -> None:
    middle = relu(call("Neg", X))
    assert fused(Tuple((call("Exp", call("Abs", middle)), middle))) == ["Abs Exp", "Neg Relu"]


def test_a_reduction_takes_what_comes_before_and_ends_the_group() -> None:
    assert fused(relu(call("ReduceMax", call("Mul", X, Y), whole_numbers(3)))) == ["Mul ReduceMax"]


def test_injective_operators_join_elementwise_ones() -> None:
    turned = call("Transpose", relu(X), perm=(0, 1, 3, 2))
    assert fused(call("Neg", call("Reshape", turned, whole_numbers(2, -1)))) == ["Relu Transpose Reshape Neg"]


def test_constants_stay_inside() -> None:
    mod = FUSE(IRModule.from_expr(Function((X,), relu(call("Add", conv(X), BIAS)))))
    (group,) = groups(mod)
    assert len(group.params) == 1
    assert {node for node in post_order(group) if isinstance(node, Constant)} == {WEIGHT, BIAS}


def test_a_computed_shape_is_not_passed_as_a_variable() -> None:
    shape = call("Concat", call("Shape", Y, start=0, end=2), whole_numbers(36), axis=0)
    assert fused(relu(call("Reshape", call("Neg", X), shape))) == []


def test_values_known_at_compile_time_stay_known() -> None:
    size = call("Mul", call("Add", call("Shape", X), whole_numbers(0)), whole_numbers(1))
    assert fused(call("Reshape", X, size)) == []


def test_draws_of_random_numbers_are_not_fused() -> None:
    training = call("Dropout", call("Neg", X), Constant(np.array(0.5, np.float32)), Constant(np.array(True)))
    mod = infer_types(IRModule.from_expr(Function((X,), relu(training))))
    assert FUSE(mod) is mod
    assert fused(relu(call("Dropout", call("Neg", X)))) == ["Neg Dropout Relu"]


def test_fields_of_several_results() -> None:
    parts = call("Split", relu(X), axis=1, outputs=2, num_outputs=2)
    assert fused(call("Add", tuple_get(parts, 0), tuple_get(parts, 1))) == ["Relu Split Add"]
    assert fused(Tuple((relu(tuple_get(parts, 0)), tuple_get(parts, 1)))) == ["Relu Split"]


def test_fields_of_what_is_not_fused_are_taken_outside() -> None:
    top = call("TopK", X, whole_numbers(2), outputs=2)
    body = call("Neg", relu(tuple_get(top, 0)))
    assert fused(body) == ["Relu Neg"]
    (group,) = groups(FUSE(IRModule.from_expr(Function((X,), body))))
    assert isinstance(group.params[0].checked_type, TensorType)


def test_a_tuple_that_is_taken_apart_is_fused() -> None:
    pair = Tuple((relu(X), call("Neg", Y)))
    assert fused(call("Add", tuple_get(pair, 0), tuple_get(pair, 1))) == ["Relu Neg Add"]


def test_scopes_are_fused_each_on_their_own() -> None:
    shared = relu(X)
    branches = If(C, relu(call("Neg", shared)), call("Exp", call("Abs", Y)), checked_type=IMAGE)
    assert fused(call("Neg", call("Add", branches, shared))) == ["Abs Exp", "Add Neg", "Neg Relu"]


def test_the_body_of_a_loop_is_fused_inside() -> None:
    step, go, state = (
        Var(name, checked_type=type_) for name, type_ in (("i", INT), ("go", FLAG), ("s", IMAGE))
    )
    around = call("Exp", X)
    body = Function((step, go, state), Tuple((go, call("Neg", call("Add", relu(state), around)))))
    loop = call("Loop", Constant(np.array(3)), C, Y, body)
    assert fused(tuple_get(loop, 0)) == ["Relu Add Neg"]


INT = TensorType.of(np.zeros((), np.int64))


def test_lets_separate_until_they_are_removed() -> None:
    before = infer_types(IRModule.from_expr(Function((X,), relu(call("Neg", X)))))
    named = ToANormalForm()(before)
    assert FUSE(named) is named
    assert len(groups(FUSE(ToGraphNormalForm()(named)))) == 1


def test_the_inside_of_closures_is_fused() -> None:
    z = Var("z", checked_type=IMAGE)
    closure = Function((z,), relu(call("Add", z, Y)))
    assert fused(Call(closure, (X,), checked_type=IMAGE)) == ["Add Relu"]


@pytest.mark.parametrize("mark", ["Primitive", "Compiler", "Composite"])
def test_settled_functions_are_left_alone(mark: str) -> None:
    z = Var("z", checked_type=IMAGE)
    function = Function((z,), relu(call("Neg", z)), {mark: "reference"})  # type: ignore[arg-type]  # any mapping
    in_place = IRModule.from_expr(Function((X,), Call(function, (X,), checked_type=IMAGE)))
    assert FUSE(in_place) is in_place
    on_its_own = IRModule.from_expr(function)
    assert FUSE(on_its_own) is on_its_own


def test_the_size_of_groups_is_bounded() -> None:
    body = chain(7, X)
    assert fused(body, FuseOps(max_depth=3)) == ["Relu Relu Relu", "Relu Relu Relu"]
    assert fused(body, FuseOps(max_depth=1)) == []


def test_the_bound_comes_from_the_context_unless_it_is_given() -> None:
    mod = IRModule.from_expr(Function((X,), chain(4, X)))
    with PassContext(config={MAX_DEPTH.key: 2}):
        assert len(groups(FUSE(mod))) == 2
        assert len(groups(FuseOps(max_depth=4)(mod))) == 1


def test_a_bound_below_one_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        FuseOps(max_depth=0)(IRModule.from_expr(Function((X,), X)))
    assert caught.value.problem == "FuseOps has max_depth=0, expected 1 or more"


def test_what_is_on_two_devices_is_not_fused() -> None:
    there = with_fields(relu(X), virtual_device=VirtualDevice(DeviceType.CPU, 1))
    mod = IRModule.from_expr(Function((X,), call("Neg", there)))
    assert FUSE(mod) is mod


@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino"])
def test_toolchains_compile_groups_with_shapes_inside(toolchain: str) -> None:
    sliced = call("Slice", relu(X), whole_numbers(0), whole_numbers(4), whole_numbers(2))
    padded = call("Pad", call("Unsqueeze", sliced, whole_numbers(0)), whole_numbers(*[0] * 9, 1))
    tiled = call("Tile", padded, whole_numbers(1, 1, 1, 2, 1))
    body = call("ReduceSum", call("Abs", call("Neg", tiled)), whole_numbers(3, 4))
    before = infer_types(IRModule.from_expr(Function((X,), body)))
    after = FUSE(before)
    assert sorted(" ".join(operators(group.body)) for group in groups(after)) == [
        "Neg Abs ReduceSum",
        "Relu Slice Unsqueeze Pad Tile",
    ]
    whole = partition_whole(after, Target(f"cpu -toolchain={toolchain}"))
    assert_same_results(before, whole)


@pytest.mark.slow
def test_a_long_ladder_stays_in_bounds() -> None:
    value: Expr = X
    rungs = []
    for _ in range(2_000):
        value = relu(value)
        rungs.append(value)
    for rung in reversed(rungs):
        value = call("Add", value, rung)
    mod = IRModule.from_expr(Function((X,), value))
    after = FUSE(mod)
    verify(after)
    assert max(sum(1 for _ in operators(group.body)) for group in groups(after)) <= 256
    assert structural_equal(DefuseOps()(after), mod)


def test_long_chains(length: int) -> None:
    mod = IRModule.from_expr(Function((X,), chain(length, X)))
    after = FUSE(mod)
    assert [sum(1 for _ in operators(group.body)) for group in groups(after)] == [length % 256] + [256] * (
        length // 256
    )
    assert structural_equal(DefuseOps()(after), mod)


def test_long_chains_of_lets(length: int) -> None:
    value: Expr = X
    names = [Var(f"v{number}", checked_type=IMAGE) for number in range(length)]
    values = [relu(call("Neg", name)) for name in (X, *names[:-1])]
    value = names[-1]
    for name, bound in zip(reversed(names), reversed(values), strict=True):
        value = Let(name, bound, value)
    after = FUSE(IRModule.from_expr(Function((X,), value)))
    assert len(groups(after)) == length


def test_a_built_program_runs_its_groups() -> None:
    mod = IRModule.from_expr(Function((X,), relu(call("Add", conv(X), BIAS))))
    value = np.random.default_rng(1).normal(size=(1, 4, 6, 6)).astype(np.float32)
    np.testing.assert_allclose(ia.build(FUSE(mod))(value), ia.build(mod)(value))


def test_small_known_values_stay_known_after_fusing_what_they_are_the_shape_of() -> None:
    image = call("Relu", call("Neg", X))
    rows = call("Gather", call("Shape", image), Constant(np.array(2)), axis=0)
    index = call("Range", Constant(np.array(0)), rows, Constant(np.array(1)))
    column = call("Cast", call("Reshape", index, whole_numbers(6, 1)), to=1)
    body = call("Softmax", call("Add", image, column))
    checked(FUSE, IRModule.from_expr(Function((X,), body)))
