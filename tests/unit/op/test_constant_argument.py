"""Arguments that have to be constants, against ONNX's schemas."""

import numpy as np
import pytest
from onnx.backend.test.case.node import collect_testcases

from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, Constant, Expr, Op, TensorType, Var, post_order
from intarsia.op import absent, call, infer_call_type
from intarsia.op.constant_argument import has_open_shape
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import OPERATORS
from intarsia.op.opset import schema_of

DATA = {
    ("Attention", 6): "lengths of rows, not of the result",
    ("NonMaxSuppression", 2): "decides how many are found, not the type",
    ("ReverseSequence", 1): "lengths of rows, not of the result",
    ("ScatterND", 1): "indices",
    ("GatherND", 1): "indices",
    ("TensorScatter", 2): "where to write",
}
"""Arguments of whole numbers that are data."""

UNREAD = {
    ("CumProd", 1): "an axis, which compilers need",
    ("CumSum", 1): "an axis, which compilers need",
    ("DFT", 1): "a length, which no case gives",
    ("MaxUnpool", 2): "a shape, which onnx does not read",
    ("OneHot", 1): "a depth, which is a float in all cases: its value is not given to onnx",
    ("Resize", 1): "a region, which compilers need",
    ("Trilu", 1): "a diagonal, which compilers need",
}
"""Listed arguments whose value onnx does not read for the type in its node cases."""


def integer_arguments() -> set[tuple[str, int]]:
    return {
        (name, position)
        for name in OPERATORS
        for position, formal in enumerate(schema_of(name, "").inputs)
        if formal.type_str == "tensor(int64)"
    }


def test_every_argument_of_64_bit_integers_is_listed_or_data() -> None:
    listed = {(name, position) for name, facts in OPERATORS.items() for position in facts.constant_arguments}
    assert integer_arguments() - listed == DATA.keys()
    assert listed.isdisjoint(DATA)


def test_listed_arguments_exist() -> None:
    counts = {name: len(schema_of(name).inputs) for name in OPERATORS}
    wrong = [
        name for name, facts in OPERATORS.items() if max(facts.constant_arguments, default=-1) >= counts[name]
    ]
    assert wrong == []


def test_a_shape_is_open_unless_it_is_a_constant() -> None:
    x = Var("x", checked_type=TensorType.of(np.zeros((2, 3), np.float32)))
    shape = Var("s", checked_type=TensorType.of(np.zeros(1, np.int64)))
    assert has_open_shape(call("Reshape", x, shape))
    assert has_open_shape(call("Reshape", x, call("Shape", call("Flatten", x))))
    assert not has_open_shape(call("Reshape", x, Constant(np.array([6]))))
    assert not has_open_shape(call("Slice", x, *(Constant(np.array([1])),) * 2, absent(), absent()))
    assert has_open_shape(call("Slice", x, *(Constant(np.array([1])),) * 2, absent(), shape))
    assert not has_open_shape(call("Add", x, x))


@pytest.mark.slow
def test_arguments_whose_values_decide_types_in_onnx_node_cases_are_listed() -> None:
    """An argument is taken away its value, and all others keep theirs: the type says less, or it is data."""
    decisive = {
        (call_.op.name, position)
        for call_ in node_case_calls()
        if isinstance(call_.op, Op)
        for position, arg in enumerate(call_.args)
        if isinstance(arg, Constant)
        and infer_call_type(call_.op, without_value(call_.args, position), call_.attrs)
        != infer_call_type(call_.op, call_.args, call_.attrs)
    }
    listed = {(name, p) for name, facts in OPERATORS.items() for p in facts.constant_arguments}
    assert decisive - listed == set()
    assert listed - decisive == UNREAD.keys()


def node_case_calls() -> list[Call]:
    """Calls of ONNX's node cases on their inputs, of cases with one node that take tensors."""
    calls = []
    for case in collect_testcases():
        (node,) = case.model.graph.node if len(case.model.graph.node) == 1 else (None,)
        if node is None or node.domain or not node.input or node.op_type not in OPERATORS:
            continue
        if OPERATORS[node.op_type].has(OperatorTrait.HAS_BODY):
            continue
        values = dict(zip((name for name in node.input if name), case.data_sets[0][0], strict=False))
        if not all(isinstance(value, (np.ndarray, np.generic)) for value in values.values()):
            continue
        module = from_onnx(case.model)
        for expr in post_order(module["main"]):
            if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == node.op_type:
                args = [
                    Constant(np.asarray(values[arg.name]))
                    if isinstance(arg, Var) and arg.name in values
                    else arg
                    for arg in expr.args
                ]
                calls.append(Call(expr.op, tuple(args), expr.attrs))
    return calls


def without_value(args: tuple[Expr, ...], position: int) -> tuple[Expr, ...]:
    variable = Var("v", checked_type=args[position].checked_type)
    return (*args[:position], variable, *args[position + 1 :])
