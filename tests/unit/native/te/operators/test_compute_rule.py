"""The registry of compute rules, what rules are given, and the stages that they declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.te_evaluator import operations
from tests.unit.native.te.operators.checked_call import check, make_call

from intarsia.ir import ANY, Call, DType, Function, Op, SymbolicDim, TensorType, Var
from intarsia.native import te
from intarsia.native.te.operators import (
    ComputeCall,
    NotCoveredError,
    compute,
    compute_call_of,
    compute_rule,
    compute_rules,
    reason_not_covered,
)
from intarsia.op import absent
from intarsia.op import call as op_call
from intarsia.support.errors import UsageError


def tensor(name: str, *shape: Any, dtype: DType = DType.FLOAT32) -> Var:
    return Var(name, checked_type=TensorType(tuple(shape), dtype))


def stages(tensors: Sequence[te.Tensor]) -> list[str]:
    """Names of the operations, with what they reduce over."""
    return [
        f"{op.name}({', '.join(axis.name for axis in op.reduce_axes)})" if op.reduce_axes else op.name
        for op in operations(tensors)
        if isinstance(op, te.ComputeOp)
    ]


def declared(call: Call, name: str = "y") -> tuple[te.Tensor, ...]:
    return compute(compute_call_of(call, name))


def test_an_operator_has_one_rule() -> None:
    def other(call: ComputeCall) -> Sequence[te.Tensor]:
        return [call.input(0)]

    with pytest.raises(UsageError, match="compute rule 'Conv' is already registered"):
        compute_rule("Conv")(other)


def test_a_call_has_the_schemas_defaults_and_what_is_known() -> None:
    x = tensor("x", 1, 4, 8, 8)
    call = compute_call_of(op_call("LRN", x, size=3), "n")
    assert (call.integer("size"), call.real("beta"), call.real("bias")) == (3, 0.75, 1.0)
    assert call.real("alpha") == float(np.float32(1e-4)), "ONNX stores a float32"
    assert call.inputs[0] is not None
    assert call.inputs[0].buffer.name == "n.x0"
    assert call.constants == (None,)


def test_constants_are_marked_and_known() -> None:
    weight = np.ones((2, 3, 1, 1), np.float32)
    conv = op_call("Conv", tensor("x", 1, 3, 4, 4), make_call("Identity", weight).args[0])
    call = compute_call_of(conv, "c")
    assert [dict(each.op.attrs) for each in call.inputs if each is not None] == [{}, {"constant": 1}]
    assert call.constants[0] is None
    np.testing.assert_array_equal(call.constants[1], weight)
    (result,) = compute(call)
    assert isinstance(result.op, te.ComputeOp)
    assert result.op.attrs["layout_free_placeholders"] == ("c.x1",)


def test_arguments_left_out() -> None:
    call = compute_call_of(op_call("Clip", tensor("x", 2), absent(), tensor("high")))
    assert [call.has_input(position) for position in range(4)] == [True, False, True, False]
    with pytest.raises(NotCoveredError, match="operator 'Clip' has no native kernel for argument 1 left out"):
        call.input(1)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            op_call("ReduceSum", tensor("x", 2, 3), tensor("axes", 1, dtype=DType.INT64), keepdims=1),
            "operator 'ReduceSum' has no native kernel for Tensor[?, float32]",
        ),
        (
            op_call("Relu", tensor("x", SymbolicDim("n"), 3)),
            "operator 'Relu' has no native kernel for Tensor[(n, 3), float32]",
        ),
        (op_call("Relu", tensor("x", ANY)), "operator 'Relu' has no native kernel for Tensor[(?,), float32]"),
        (
            op_call("Mod", tensor("x", 2), tensor("y", 2), fmod=1),
            "operator 'Mod' has no native kernel for floats, whose remainder takes long division",
        ),
        (
            op_call("RandomNormal", shape=(2, 3)),
            "operator 'RandomNormal' has no native kernel",
        ),
        (
            op_call("Conv", tensor("x", 1, 1, 2, 2, 2, 2), tensor("w", 1, 1, 1, 1, 1, 1)),
            "operator 'Conv' has no native kernel for 4 spatial dimensions",
        ),
        (
            op_call("Cast", tensor("x", 2), to=17),
            "operator 'Cast' has no native kernel for float8_e4m3fn",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_a_call_is_not_covered(call: Call, reason: str) -> None:
    assert reason_not_covered(call) == reason
    assert reason_not_covered(call) == reason, "also when it is asked again"


def test_a_call_of_a_function_is_not_covered() -> None:
    x = tensor("x", 2)
    reason = reason_not_covered(Call(Function((x,), x), (x,)))
    assert reason == "a call of a function has no compute rule: only operators have"


def test_covered_calls() -> None:
    assert reason_not_covered(op_call("Relu", tensor("x", 2, 3))) is None
    assert reason_not_covered(op_call("Relu", tensor("x", 0))) is None
    assert (
        reason_not_covered(Call(Op("Relu"), (Var("x"),)))
        == "operator 'Relu' has no native kernel for an unknown type"
    )


def test_a_rule_that_breaks_its_promise_is_found() -> None:
    call = compute_call_of(op_call("Relu", tensor("x", 2)))

    def wrong(call: ComputeCall) -> Sequence[te.Tensor]:
        return [te.compute((3,), lambda i: i, call.name)]

    with compute_rules().holding("Relu", wrong), pytest.raises(AssertionError, match="rule of Relu"):
        compute(call)


CONV = op_call("Conv", tensor("x", 1, 4, 6, 6), tensor("w", 8, 4, 3, 3), tensor("b", 8), pads=(1, 1, 1, 1))
STAGES = [
    (CONV, ["y.pad", "y.conv(rc, rh, rw)", "y"]),
    (op_call("Conv", tensor("x", 1, 4, 6, 6), tensor("w", 8, 4, 1, 1)), ["y(rc, rh, rw)"]),
    (op_call("Conv", tensor("x", 1, 4, 6), tensor("w", 4, 1, 3), group=4), ["y(rw)"]),
    (op_call("MatMul", tensor("x", 3, 4), tensor("w", 4, 5)), ["y(rk)"]),
    (op_call("Gemm", tensor("x", 3, 4), tensor("w", 4, 5), tensor("b", 5)), ["y.product(rk)", "y"]),
    (op_call("Softmax", tensor("x", 3, 4)), ["y.max(r1)", "y.exp", "y.sum(r1)", "y.share", "y"]),
    (op_call("MaxPool", tensor("x", 1, 1, 4, 4), kernel_shape=(2, 2)), ["y(rh, rw)"]),
    (op_call("ReduceMean", tensor("x", 3, 4)), ["y.reduced(r0, r1)", "y"]),
    (op_call("Relu", tensor("x", 3, dtype=DType.FLOAT16)), ["y.wide0", "y.f32", "y"]),
    (op_call("IsNaN", tensor("x", 3, dtype=DType.FLOAT16)), ["y.wide0", "y"]),
]


@pytest.mark.parametrize(("call", "expected"), STAGES)
def test_stages(call: Call, expected: list[str]) -> None:
    assert stages(declared(call)) == expected


def test_narrow_floats_are_rounded_once() -> None:
    x = np.array([2048, 1, 1, 1], np.float16)
    expected = np.array(np.float16(2051), np.float16)  # added one by one in float16, each 1 is lost
    check(make_call("ReduceSum", x, keepdims=0), [expected])
    (result,) = declared(op_call("ReduceSum", tensor("x", 4, dtype=DType.BFLOAT16), keepdims=0))
    assert result.dtype is DType.BFLOAT16
    assert [op.dtypes for op in operations([result]) if isinstance(op, te.ComputeOp)][1] == (DType.FLOAT32,)


def test_a_huge_call_costs_no_more_than_a_small_one() -> None:
    call = op_call("Conv", tensor("x", 1, 4096, 512, 512), tensor("w", 4096, 4096, 3, 3))
    assert reason_not_covered(call) is None, "nothing of that size is computed"
