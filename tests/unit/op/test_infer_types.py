"""`infer_types`: what is unknown is filled in, what a rewrite made stale is corrected, recursion ends."""

from __future__ import annotations

import numpy as np
import pytest

from intarsia.ir import (
    ANY,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Op,
    TensorType,
    Var,
    rewrite,
    with_fields,
)
from intarsia.op import call, infer_types
from intarsia.op.known_value import known_value
from intarsia.support.errors import InvalidModelError

X = Var("x", checked_type=TensorType((6,), DType.FLOAT32))


def shape(*dims: int) -> Constant:
    return Constant(np.array(dims, np.int64))


def test_unknown_types_are_filled_in() -> None:
    untyped = Call(Op("Relu"), (Call(Op("Neg"), (X,)),))
    module = infer_types(IRModule.from_expr(Function((X,), untyped)))
    assert module["main"].result_type == X.checked_type
    assert infer_types(module) is module


def test_a_changed_shape_constant_changes_the_type() -> None:
    module = IRModule.from_expr(Function((X,), call("Relu", call("Reshape", X, shape(2, 3)))))

    def swap(expr: Expr) -> Expr:
        return with_fields(expr, data=np.array([3, 2], np.int64)) if isinstance(expr, Constant) else expr

    changed = rewrite(module["main"], swap)
    assert isinstance(changed, Function)
    assert infer_types(IRModule.from_expr(changed))["main"].result_type == TensorType((3, 2), DType.FLOAT32)


def test_a_value_over_one_that_becomes_known_is_known() -> None:
    size = Call(Op("Shape"), (X,), checked_type=TensorType((1,), DType.INT64))  # nothing recorded its value
    total = call("Add", size, shape(1))
    assert known_value(total) is None
    infer_types(IRModule({GlobalVar("main"): Function((X,), total)}))
    assert known_value(total) == [7]


def test_an_annotation_that_contradicts_is_corrected() -> None:
    wrong = with_fields(call("Relu", X), checked_type=TensorType((7,), DType.FLOAT32))
    module = infer_types(IRModule.from_expr(Function((X,), wrong)))
    assert module["main"].result_type == X.checked_type


def test_the_result_of_a_recursion_covers_every_depth() -> None:
    count = Var("n", checked_type=TensorType((), DType.INT64))
    own = GlobalVar("grow")
    less = call("Sub", count, Constant(np.array(1, np.int64)))
    longer = Call(Op("Concat"), (Call(own, (X, less)), X), {"axis": 0})  # type: ignore[arg-type]  # becomes Attrs
    done = call("Equal", count, Constant(np.array(0, np.int64)))
    grow = Function((X, count), If(done, X, longer))
    main = Function((X, count), Call(own, (X, count)))
    module = infer_types(IRModule({GlobalVar("main"): main, own: grow}))
    assert module["grow"].result_type == TensorType((ANY,), DType.FLOAT32)
    assert module["main"].result_type == TensorType((ANY,), DType.FLOAT32)


def test_attributes_of_another_kind_are_judged_apart() -> None:
    call("LeakyRelu", X, alpha=1.0)
    with pytest.raises(InvalidModelError, match="alpha"):
        call("LeakyRelu", X, alpha=1)
