"""Equal expressions are evaluated once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, checked, operator_counts

import intarsia as ia
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
    Var,
    post_order,
    with_fields,
)
from intarsia.ir.scope import place
from intarsia.op import call, infer_types, tuple_get
from intarsia.passes import EliminateCommonSubexpr
from intarsia.target import DeviceType, VirtualDevice

MERGE = EliminateCommonSubexpr()
VECTOR = TensorType((4,), DType.FLOAT32)
X = Var("x", checked_type=VECTOR)
Y = Var("y", checked_type=VECTOR)
FLAG = Var("c", checked_type=TensorType((), DType.BOOL))


def program(body: Expr, *params: Var) -> IRModule:
    return IRModule.from_expr(Function(params or (X, Y, FLAG), body))


def counts(body: Expr) -> dict[str, int]:
    return dict(operator_counts(checked(MERGE, program(body))))


def unchanged(body: Expr, *params: Var) -> bool:
    mod = infer_types(program(body, *params))
    return MERGE(mod) is mod


def relu(value: Expr) -> Call:
    return call("Relu", value)


def test_equal_trees_become_one() -> None:
    def tree() -> Call:
        return call("Add", relu(X), call("Exp", Y))

    assert counts(Tuple((tree(), call("Neg", tree())))) == {"Relu": 1, "Exp": 1, "Add": 1, "Neg": 1}


def test_different_programs_stay() -> None:
    soft = [call("Softmax", X, axis=axis) for axis in (0, -1)]
    assert unchanged(Tuple((relu(X), relu(Y), call("Sub", X, Y), call("Sub", Y, X), *soft)))


@pytest.mark.parametrize("name", ["Add", "Mul"])
def test_the_order_of_arguments_makes_no_difference_where_it_does_not(name: str) -> None:
    assert counts(Tuple((call(name, X, Y), call(name, Y, X)))) == {name: 1}


def test_attributes_that_hold_tensors_are_compared_by_value() -> None:
    def filled(value: int) -> Call:
        shape = Constant(np.array([4], np.int64))
        return call("ConstantOfShape", shape, value=Constant(np.array([value], np.float32)))

    assert counts(Tuple((filled(1), filled(1), filled(2)))) == {"ConstantOfShape": 2}


def test_constants_of_equal_bytes_are_one() -> None:
    values = (0.0, -0.0, 0.0)
    body = Tuple(tuple(call("Add", X, Constant(np.full(4, value, np.float32))) for value in values))
    after = checked(MERGE, program(body))
    constants = [item for item in post_order(after["main"]) if isinstance(item, Constant)]
    assert len(constants) == 2
    assert operator_counts(after) == {"Add": 2}


def test_equal_bytes_of_other_types_are_different() -> None:
    zeros = [Constant(np.zeros(4, dtype)) for dtype in (np.float32, np.int32)]
    assert unchanged(Tuple((*zeros, Constant(np.zeros((2, 2), np.float32)))))


def test_two_branches_do_not_share() -> None:
    body = If(FLAG, call("Neg", relu(X)), call("Exp", relu(X)), checked_type=VECTOR)
    assert unchanged(body)


def test_a_branch_uses_what_is_outside_of_it() -> None:
    body = If(FLAG, call("Neg", relu(X)), call("Exp", relu(X)), checked_type=VECTOR)
    for outer in (Tuple((body, relu(X))), Tuple((relu(X), body))):
        assert counts(outer) == {"Neg": 1, "Exp": 1, "Relu": 1}


def test_the_condition_is_outside_of_the_branches() -> None:
    positive = call("Greater", call("ReduceSum", X, keepdims=0), Constant(np.array(0, np.float32)))
    inside = call("Add", X, call("ReduceSum", X, keepdims=0))
    assert counts(If(positive, inside, Y, checked_type=VECTOR))["ReduceSum"] == 1


def test_nested_scopes_use_the_outermost() -> None:
    inner = If(FLAG, relu(X), Y, checked_type=VECTOR)
    middle = If(FLAG, call("Add", inner, relu(X)), call("Neg", Y), checked_type=VECTOR)
    assert counts(middle) == {"Relu": 1, "Add": 1, "Neg": 1}
    assert counts(Tuple((middle, relu(X)))) == {"Relu": 1, "Add": 1, "Neg": 1}


def test_equal_ifs_become_one() -> None:
    def choice() -> If:
        return If(FLAG, relu(X), call("Neg", X), checked_type=VECTOR)

    after = checked(MERGE, program(call("Add", choice(), choice())))
    assert sum(isinstance(item, If) for item in post_order(after["main"])) == 1


def test_nothing_is_evaluated_that_was_not() -> None:
    """A merged value stays in the scope that its first use had."""
    inside = If(FLAG, call("Add", relu(X), relu(X)), Y, checked_type=VECTOR)
    after = checked(MERGE, program(Tuple((inside, call("Neg", Y)))))
    placed = place(after["main"])
    outer = placed.inner[after["main"], 3]
    assert {str(item.op) for item in placed.members[outer] if isinstance(item, Call)} == {"Neg"}


def test_the_body_of_a_let_uses_what_is_around_it() -> None:
    v = Var("v", checked_type=VECTOR)
    assert counts(Let(v, relu(X), call("Add", v, relu(X)))) == {"Relu": 1, "Add": 1}


def test_what_depends_on_variables_of_two_scopes_is_different() -> None:
    v, w = (Var(name, checked_type=VECTOR) for name in "vw")
    both = Tuple((Let(v, relu(X), call("Exp", v)), Let(w, relu(Y), call("Exp", w))))
    assert unchanged(both)


def test_a_closure_uses_what_is_outside() -> None:
    p = Var("p", checked_type=VECTOR)
    closure = Function((p,), call("Add", p, relu(X)))
    calls = [Call(closure, (value,), checked_type=VECTOR) for value in (X, Y)]
    assert counts(Tuple((*calls, relu(X)))) == {"Add": 1, "Relu": 1}


def test_equal_calls_of_a_function_become_one() -> None:
    p = Var("p", checked_type=VECTOR)
    closure = Function((p,), call("Exp", p))
    first, second = (Call(closure, (X,), checked_type=VECTOR) for _ in range(2))
    after = checked(MERGE, program(call("Add", first, second)))
    assert sum(isinstance(item, Call) for item in post_order(after["main"])) == 3
    name = GlobalVar("f", checked_type=closure.checked_type)
    first, second = (Call(GlobalVar("f"), (X,), checked_type=VECTOR) for _ in range(2))
    after = checked(MERGE, program(call("Add", first, second)).with_function(name, closure))
    assert len({id(item) for item in post_order(after["main"]) if isinstance(item, Call)}) == 2


@pytest.mark.parametrize("marker", ["Compiler", "Primitive"])
def test_a_closed_function_uses_nothing_outside(marker: str) -> None:
    p = Var("p", checked_type=VECTOR)
    weight = Constant(np.ones(4, np.float32))
    twice = call("Add", call("Exp", weight), call("Exp", weight))
    region = Function((p,), call("Add", p, twice))
    attrs = region.attrs.updated(**{marker: "reference", "target": "cpu -toolchain=reference"})
    region = with_fields(region, attrs=attrs if marker == "Compiler" else region.attrs.updated(Primitive=1))
    body = Tuple((call("Exp", weight), Call(region, (X,), checked_type=VECTOR)))
    assert counts(body)["Exp"] == 2


def test_draws_are_never_merged_and_what_they_feed_is_not() -> None:
    draws = [call("RandomNormal", shape=(4,)) for _ in range(2)]
    assert unchanged(Tuple((*draws, *map(relu, draws))))
    shared = draws[0]
    after = MERGE(infer_types(program(Tuple((relu(shared), relu(shared))))))
    assert operator_counts(after) == {"RandomNormal": 1, "Relu": 1}


def test_calls_of_functions_that_draw_are_never_merged() -> None:
    p = Var("p", checked_type=VECTOR)
    drawing = Function((p,), call("Add", p, call("RandomNormal", shape=(4,))))
    assert unchanged(Tuple(tuple(Call(drawing, (X,), checked_type=VECTOR) for _ in range(2))))
    mod = program(Tuple(tuple(Call(GlobalVar("f"), (X,), checked_type=VECTOR) for _ in range(2))))
    mod = infer_types(mod.with_function("f", drawing))
    assert MERGE(mod) is mod


def test_types_and_devices_must_agree() -> None:
    here, there = VirtualDevice(DeviceType.CPU, 0), VirtualDevice(DeviceType.CPU, 1)
    near, far = (with_fields(relu(X), virtual_device=device) for device in (here, there))
    assert unchanged(Tuple((near, far)))
    loose = with_fields(relu(X), checked_type=TensorType((SymbolicDim("n"),), DType.FLOAT32))
    assert unchanged(Tuple((relu(X), loose)))


def test_the_span_of_the_first_is_kept() -> None:
    first, second = (with_fields(relu(X), span=Span("model.onnx", name)) for name in ("one", "two"))
    after = MERGE(infer_types(program(Tuple((first, second)))))["main"].body
    assert isinstance(after, Tuple)
    assert [item.span for item in after.fields] == [first.span, first.span]


def test_spans_and_devices_are_kept() -> None:
    both = [call("TopK", X, Constant(np.array([2])), outputs=2) for _ in range(2)]
    fields = (call("Exp", tuple_get(both[0], 0)), tuple_get(both[1], 0), tuple_get(both[1], 1))
    assert_facts_kept(MERGE, program(Tuple((*fields, If(FLAG, relu(X), Y, checked_type=VECTOR)))))


def test_shapes_stay_known() -> None:
    two, again = (Constant(np.array([2, 2])) for _ in range(2))
    body = Tuple((call("Reshape", X, two), call("Reshape", Y, again)))
    after = checked(MERGE, program(body))
    assert after["main"].result_type == program(body)["main"].result_type


def test_bodies_of_loops() -> None:
    i, c = (
        Var("i", checked_type=TensorType((), DType.INT64)),
        Var("a", checked_type=TensorType((), DType.BOOL)),
    )
    s = Var("s", checked_type=VECTOR)
    step = call("Add", call("Add", relu(s), call("Exp", relu(s))), relu(Y))
    body = Function((i, c, s), Tuple((c, step)))
    loop = call("Loop", Constant(np.array(3)), Constant(np.array(True)), X, body, outputs=1)
    assert counts(Tuple((tuple_get(loop, 0), relu(Y))))["Relu"] == 2


def test_deep_nesting_is_linear(length: int) -> None:
    """A chain of lets, each of which repeats what is outermost."""
    body: Expr = relu(X)
    for position in range(length):
        v = Var(f"v{position}", checked_type=VECTOR)
        body = Let(v, relu(X), call("Add", v, body))
    after = MERGE(infer_types(program(body)))
    assert operator_counts(after)["Relu"] == 1


def test_strings() -> None:
    words = [Constant(np.array(["a", "b"], dtype=object)) for _ in range(2)]
    after = MERGE(infer_types(program(Tuple(tuple(call("StringConcat", word, word) for word in words)))))
    assert operator_counts(after) == {"StringConcat": 1}
    assert ia.build(after).run_flat(np.zeros(4, np.float32), np.zeros(4, np.float32), np.array(True))


def test_names_of_operators_need_not_be_one_object() -> None:
    assert unchanged(
        Tuple((Call(Op("Relu"), (X,), checked_type=VECTOR), Call(Op("Relu"), (Y,), checked_type=VECTOR)))
    )
