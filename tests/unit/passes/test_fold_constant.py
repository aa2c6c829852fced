"""What is known at compile time is computed then."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.pass_checks import (
    assert_facts_kept,
    assert_same_results,
    checked,
    operator_counts,
)

from intarsia.ir import (
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
    Span,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    with_fields,
)
from intarsia.op import call, infer_types, tuple_get
from intarsia.passes import FoldConstant
from intarsia.target import DeviceType, VirtualDevice

FOLD = FoldConstant()
X = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))


def constant(value: Any, dtype: Any = np.float32) -> Constant:
    return Constant(np.array(value, dtype))


def program(body: Expr, *params: Var) -> IRModule:
    return IRModule.from_expr(Function(params or (X,), body))


def folded(body: Expr, *params: Var) -> Expr:
    return checked(FOLD, program(body, *params))["main"].body


def unchanged(body: Expr, *params: Var, made: FoldConstant = FOLD) -> bool:
    mod = infer_types(program(body, *params))
    return made(mod) is mod


def test_a_chain_of_calls_on_constants_becomes_one_constant() -> None:
    weight = call("Transpose", call("Mul", constant([[1, 2, 3]]), constant(2)), perm=(1, 0))
    body = folded(call("MatMul", X, weight))
    assert isinstance(body, Call)
    found = body.args[1]
    assert isinstance(found, Constant)
    np.testing.assert_array_equal(found.data, np.array([[2], [4], [6]], np.float32), strict=True)
    assert not found.data.flags.writeable


def test_several_results_become_constants() -> None:
    both = call("TopK", constant([[3, 9, 5]]), constant([3], np.int64), outputs=2)
    body = folded(Tuple((call("Add", X, tuple_get(both, 0)), tuple_get(both, 1))))
    assert operator_counts(program(body)) == {"Add": 1}


def test_results_used_as_a_whole() -> None:
    both = call("TopK", constant([[3, 9, 5]]), constant([1], np.int64), outputs=2)
    body = folded(Tuple((X, both)))
    assert isinstance(body, Tuple)
    assert isinstance(body.fields[1], Tuple)


def test_shapes_of_static_tensors_are_known() -> None:
    rows = call("Gather", call("Shape", X), constant(0, np.int64))
    target = call(
        "Concat", call("Unsqueeze", rows, constant([0], np.int64)), constant([-1], np.int64), axis=0
    )
    assert operator_counts(program(folded(call("Reshape", X, target)))) == {"Reshape": 1}


def test_shapes_of_raw_calls_are_known_too() -> None:
    raw = Call(Op("Size"), (X,), checked_type=TensorType((), DType.INT64))
    found = FOLD(program(Tuple((X, raw))))["main"].body
    assert isinstance(found, Tuple)
    assert isinstance(found.fields[1], Constant)
    assert found.fields[1].data.item() == 6


def test_shapes_with_unknown_dimensions_stay() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("n"), 3), DType.FLOAT32))
    assert unchanged(call("Reshape", x, call("Shape", x)), x)
    unranked = Var("u", checked_type=TensorType(None, DType.FLOAT32))
    assert unchanged(call("Shape", unranked), unranked)
    untyped = Var("v")
    assert unchanged(call("Shape", untyped), untyped)


def test_an_if_with_a_constant_condition_is_its_branch() -> None:
    for taken in (True, False):
        for cond in (constant(taken, np.bool_), constant([taken], np.bool_)):
            body = If(cond, call("Relu", X), call("Neg", X), checked_type=X.checked_type)
            name = "Relu" if taken else "Neg"
            assert operator_counts(program(folded(body))) == {name: 1}


def test_an_if_may_become_more_precise() -> None:
    joined = If(constant(True, np.bool_), X, call("Transpose", X))
    mod = infer_types(program(call("Shape", joined)))
    assert isinstance(checked(FOLD, mod)["main"].body, Constant)


def test_a_condition_that_is_computed_from_shapes() -> None:
    is_long = call("Greater", call("Size", X), constant(5, np.int64))
    assert folded(If(is_long, X, call("Neg", X), checked_type=X.checked_type)) is X


def test_a_field_of_a_tuple() -> None:
    assert folded(TupleGetItem(Tuple((call("Relu", X), X)), 1)) is X


@pytest.mark.parametrize(
    "made",
    [
        call("RandomNormal", shape=(2, 3), seed=1.0),
        call("Bernoulli", constant(np.ones((2, 3)))),
        call("RandomUniformLike", constant(np.ones((2, 3)))),
        call("Dropout", constant(np.ones((2, 3))), constant(0.5), constant(True, np.bool_)),
    ],
    ids=lambda made: made.op.name,
)
def test_random_operators_stay(made: Call) -> None:
    assert unchanged(call("Add", X, made))


def test_the_shape_of_a_draw_is_known() -> None:
    drawn = call("RandomNormal", shape=(2, 3))
    assert operator_counts(program(folded(call("Reshape", X, call("Shape", drawn))))) == {"Reshape": 1}


def test_loops_stay_and_what_is_in_them_is_folded() -> None:
    index, again, state = (
        Var(name, checked_type=TensorType((), dtype))
        for name, dtype in (("i", DType.INT64), ("c", DType.BOOL), ("s", DType.FLOAT32))
    )
    step = call("Add", state, call("Sqrt", constant(4)))
    body = Function((index, again, state), Tuple((again, step)))
    loop = call("Loop", constant(3, np.int64), constant(True, np.bool_), constant(0), body, outputs=1)
    after = checked(FOLD, program(Tuple((X, tuple_get(loop, 0)))))
    assert operator_counts(after) == {"Loop": 1, "Add": 1}


def test_calls_of_functions_stay() -> None:
    p = Var("p", checked_type=TensorType((), DType.FLOAT32))
    double = Function((p,), call("Add", p, p))
    assert unchanged(Call(double, (constant(1),), checked_type=p.checked_type))
    name = GlobalVar("double", checked_type=double.checked_type)
    mod = program(Call(name, (constant(1),), checked_type=p.checked_type)).with_function(name, double)
    mod = infer_types(mod)
    assert FOLD(mod) is mod


def test_variables_are_not_looked_through() -> None:
    scalar = Var("s", checked_type=TensorType((), DType.FLOAT32))
    assert unchanged(Let(scalar, constant(4), call("Mul", X, call("Sqrt", scalar))))


def test_placement_and_dequantization_stay() -> None:
    weight = call("DequantizeLinear", constant([[1, 2, 3]], np.int8), constant(0.5))
    assert unchanged(call("Add", X, weight))
    assert unchanged(call("Add", X, call("device_copy", constant([[1, 2, 3]]), domain="intarsia")))


def test_layouts_of_weights_are_transformed() -> None:
    turned = call(
        "layout_transform", constant([[1], [2], [3]]), domain="intarsia", src_layout="AB", dst_layout="BA"
    )
    assert operator_counts(program(folded(call("Add", X, turned)))) == {"Add": 1}


def test_large_results_stay_unless_what_they_are_made_of_is_as_large() -> None:
    small = FoldConstant(max_bytes=64)
    expanded = call("Expand", constant(1), constant([5, 2, 3], np.int64))
    assert unchanged(call("Add", X, expanded), made=small)
    turned = call("Transpose", constant(np.ones((3, 20))), perm=(1, 0))
    assert not unchanged(Tuple((X, turned)), made=small)
    assert not unchanged(call("Add", X, expanded), made=FoldConstant(max_bytes=120))


def test_a_large_result_of_unknown_size_stays() -> None:
    where = call("NonZero", constant(np.ones(100, np.float32)))
    assert where.checked_type != TensorType((1, 100), DType.INT64)
    assert unchanged(Tuple((X, where)), made=FoldConstant(max_bytes=400))
    assert not unchanged(Tuple((X, where)), made=FoldConstant(max_bytes=800))


def test_slow_operators_are_evaluated_while_small() -> None:
    def pooled(side: int) -> Call:
        return call("MaxPool", constant(np.ones((1, 1, side, side))), kernel_shape=(2, 2))

    assert not unchanged(Tuple((X, pooled(8))))
    assert unchanged(Tuple((X, pooled(300))))


def test_what_the_reference_cannot_do_stays() -> None:
    outside = call("Gather", constant([1, 2]), constant([7], np.int64))
    assert unchanged(Tuple((X, outside)))
    parts = call("SplitToSequence", constant([1, 2]))
    assert unchanged(Tuple((X, call("SequenceAt", parts, constant(0, np.int64)))))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.uint8])
def test_element_types_are_kept(dtype: Any) -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((2,), dtype)))
    total = call("Add", constant([1, 2], dtype), constant([3, 4], dtype))
    after = FOLD(infer_types(program(call("Add", x, total), x)))
    assert operator_counts(after) == {"Add": 1}
    assert after["main"].result_type == x.checked_type


def test_absent_arguments_do_not_matter() -> None:
    clipped = call("Clip", constant([[1, 2, 9]]), Tuple(()), constant(5))
    assert operator_counts(program(folded(call("Add", X, clipped)))) == {"Add": 1}


def test_spans_and_devices_are_kept() -> None:
    weight = call("Mul", constant([[1, 2, 3]]), constant(2))
    both = call("TopK", call("Neg", constant([[3, 9, 5]])), constant([3], np.int64), outputs=2)
    fields = Tuple((call("Add", weight, tuple_get(both, 0)), call("Shape", X), tuple_get(both, 1)))
    assert_facts_kept(FOLD, program(fields))


def test_a_value_does_not_move_to_another_device() -> None:
    here, there = VirtualDevice(DeviceType.CPU, 0), VirtualDevice(DeviceType.CPU, 1)
    near = with_fields(call("Relu", X), virtual_device=here)
    item = TupleGetItem(Tuple((near,)), 0, virtual_device=there)
    assert unchanged(item)
    made = with_fields(call("Sqrt", constant(4)), virtual_device=there, span=Span("m", "n"))
    body = FOLD(program(call("Mul", X, made)))["main"].body
    assert isinstance(body, Call)
    assert (body.args[1].virtual_device, body.args[1].span) == (there, made.span)


def test_a_shared_expression_is_evaluated_once() -> None:
    shared = call("Exp", constant([[1, 2, 3]]))
    body = folded(Tuple((call("Add", X, shared), call("Mul", X, shared))))
    assert isinstance(body, Tuple)
    first, second = (field.args[1] for field in body.fields if isinstance(field, Call))
    assert first is second


def test_functions_of_toolchains_are_left_alone() -> None:
    marked = Function((X,), call("Add", X, call("Sqrt", constant(4))))
    marked = with_fields(marked, attrs=marked.attrs.updated(Compiler="reference"))
    mod = IRModule.from_expr(marked)
    assert FOLD(mod) is mod


def test_the_program_computes_the_same() -> None:
    scale = call("Sqrt", call("Add", constant([1, 2, 3]), constant(1e-5)))
    before = program(call("Mul", call("Reshape", X, call("Shape", X)), scale))
    after = FOLD(before)
    assert_same_results(before, after)
    assert operator_counts(after) == {"Mul": 1, "Reshape": 1}
