"""Operators of training, as what they are in inference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.pass_checks import assert_facts_kept, assert_same_results, checked, operator_counts

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Let,
    Op,
    SymbolicDim,
    TensorType,
    Tuple,
    Var,
    post_order,
    with_fields,
)
from intarsia.op import absent, call, infer_types, tuple_get
from intarsia.passes import FoldConstant, SimplifyInference
from intarsia.target import DeviceType, VirtualDevice

SIMPLIFY = SimplifyInference()
IMAGE = (2, 3, 4, 5)
X = Var("x", checked_type=TensorType(IMAGE, DType.FLOAT32))
TRAINING = Constant(np.array(True))


def program(body: Expr, *params: Var) -> IRModule:
    return IRModule.from_expr(Function(params or (X,), body))


def statistics(dtype: Any = np.float32, channels: int = 3, rest: Any = None) -> list[Constant]:
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1.5, channels) for _ in range(4)]
    types = (dtype, dtype, rest or dtype, rest or dtype)
    return [Constant(value.astype(kind)) for value, kind in zip(values, types, strict=True)]


def unchanged(body: Expr, *params: Var) -> bool:
    mod = infer_types(program(body, *params))
    return SIMPLIFY(mod) is mod


def test_batch_normalization_becomes_a_product_and_a_sum() -> None:
    after = checked(SIMPLIFY, program(call("BatchNormalization", X, *statistics(), epsilon=0.01)))
    folded = FoldConstant()(after)
    assert operator_counts(folded) == {"Mul": 1, "Add": 1}
    assert_same_results(after, folded)
    assert folded["main"].result_type == X.checked_type


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 1, 2, 2)])
def test_any_rank(shape: tuple[int, ...]) -> None:
    x = Var("x", checked_type=TensorType(shape, DType.FLOAT32))
    facts = statistics(channels=1 if len(shape) == 1 else 3)
    after = checked(SIMPLIFY, program(call("BatchNormalization", x, *facts), x))
    assert "BatchNormalization" not in operator_counts(after)


def test_statistics_that_are_computed() -> None:
    scale = Var("scale", checked_type=TensorType((3,), DType.FLOAT32))
    _, *rest = statistics()
    after = checked(SIMPLIFY, program(call("BatchNormalization", X, call("Exp", scale), *rest), X, scale))
    assert operator_counts(after)["Exp"] == 1
    assert "BatchNormalization" not in operator_counts(after)


def test_unknown_dimensions_are_fine_an_unknown_rank_is_not() -> None:
    sizes = (SymbolicDim("n"), 3, SymbolicDim("h"), SymbolicDim("w"))
    x = Var("x", checked_type=TensorType(sizes, DType.FLOAT32))
    after = SIMPLIFY(infer_types(program(call("BatchNormalization", x, *statistics()), x)))
    assert operator_counts(after)["BatchNormalization"] == 0
    assert after["main"].result_type == x.checked_type
    for type_ in (TensorType(None, DType.FLOAT32), None):
        unranked = Var("u", checked_type=type_)
        made = Call(Op("BatchNormalization"), (unranked, *statistics()))
        assert unchanged(made, unranked)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_element_types_are_kept(dtype: Any, is_mixed: bool) -> None:
    x = Var("x", checked_type=TensorType(IMAGE, DType.of(np.zeros(0, dtype))))
    facts = statistics(dtype, rest=np.float32 if is_mixed else None)
    before = infer_types(program(call("BatchNormalization", x, *facts, epsilon=1e-5), x))
    after = SIMPLIFY(before)
    assert after["main"].result_type == x.checked_type
    assert operator_counts(after)["BatchNormalization"] == 0
    precision = float(ml_dtypes.finfo(dtype).eps)
    assert_same_results(before, after, rtol=0, atol=8 * max(precision, 1e-7 if is_mixed else 0))
    epsilons = [
        item.data.dtype
        for item in post_order(after["main"])
        if isinstance(item, Constant) and item.data.shape == ()
    ]
    assert epsilons == [np.float64 if dtype is np.float64 else np.float32]


def test_training_stays() -> None:
    trained = call("BatchNormalization", X, *statistics(), training_mode=1, outputs=3)
    assert unchanged(tuple_get(trained, 0))
    for mode in (TRAINING, Var("t", checked_type=TensorType((), DType.BOOL))):
        params = (X, mode) if isinstance(mode, Var) else (X,)
        assert unchanged(call("Dropout", X, absent(), mode), *params)


def test_other_normalizations_stay() -> None:
    scale, bias, *_ = statistics()
    assert unchanged(call("InstanceNormalization", X, scale, bias))
    assert unchanged(call("LayerNormalization", X, Constant(np.ones(5, np.float32))))


def test_dropout_and_identity_vanish() -> None:
    ratio = Constant(np.array(0.3, np.float32))
    off = Constant(np.array(False))
    body = call("Identity", call("Dropout", call("Dropout", X), ratio, off))
    assert checked(SIMPLIFY, program(call("Relu", body)))["main"].body.args == (X,)  # type: ignore[union-attr]  # a call
    assert checked(SIMPLIFY, program(body))["main"].body is X


def test_the_mask_of_a_dropout_is_true() -> None:
    both = call("Dropout", X, outputs=2)
    after = checked(SIMPLIFY, program(Tuple((tuple_get(both, 0), tuple_get(both, 1)))))
    assert operator_counts(after) == {"Expand": 1, "Shape": 1}
    assert operator_counts(FoldConstant()(after)) == {}
    assert after["main"].result_type == program(both)["main"].result_type
    whole = checked(SIMPLIFY, program(both))
    assert operator_counts(whole)["Dropout"] == 0


def test_a_mask_of_unknown_shape() -> None:
    x = Var("x", checked_type=TensorType((SymbolicDim("n"), 3), DType.FLOAT32))
    before = program(call("Dropout", x, outputs=2), x)
    assert SIMPLIFY(before)["main"].result_type == before["main"].result_type


def test_a_mask_that_nobody_uses_is_not_made() -> None:
    both = call("Dropout", X, outputs=2)
    assert checked(SIMPLIFY, program(tuple_get(both, 0)))["main"].body is X
    bound = Var("both", checked_type=both.checked_type)
    checked(SIMPLIFY, program(Let(bound, both, tuple_get(bound, 0))))


def test_operators_of_other_domains_are_others() -> None:
    mine = Call(Op("layout_transform", "intarsia"), (X,), {"src_layout": "NCHW", "dst_layout": "NHWC"})  # type: ignore[arg-type]  # becomes Attrs
    assert unchanged(mine)


def test_spans_and_devices_are_kept() -> None:
    both = call("Dropout", call("Identity", call("BatchNormalization", X, *statistics())), outputs=2)
    assert_facts_kept(SIMPLIFY, program(Tuple((both, tuple_get(both, 0), tuple_get(both, 1)))))


def test_an_identity_that_moves_a_value_stays() -> None:
    there = VirtualDevice(DeviceType.CPU, 1)
    assert unchanged(with_fields(call("Identity", X), virtual_device=there))
