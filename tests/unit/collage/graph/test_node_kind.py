"""Fusion kinds and labels of expressions."""

from __future__ import annotations

import numpy as np
from tests.each_case import each_case

from intarsia.collage.graph.node_kind import node_kind, node_label
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
)
from intarsia.op import OpPatternKind, absent, call

VECTOR = TensorType((4,), DType.FLOAT32)
X = Var("x", checked_type=VECTOR)
SHAPE = Var("shape", checked_type=TensorType((1,), DType.INT64))
FLAG = Constant(np.array(True))
SCALAR, WEIGHT = Constant(np.array(1, np.float32)), Constant(np.ones(4, np.float32))
HALVES = call("Split", X, num_outputs=2, outputs=2)


def literal(**attrs: str | int) -> Call:
    return Call(Function((X,), call("Relu", X), Attrs(attrs)), (X,), checked_type=VECTOR)


@each_case(
    ("expr", "kind", "label"),
    [
        (call("Relu", X), OpPatternKind.ELEMWISE, "Relu"),
        (call("Add", X, WEIGHT), OpPatternKind.BROADCAST, "Add"),
        (call("Softmax", X), OpPatternKind.OPAQUE, "Softmax"),
        (call("Reshape", X, Constant(np.array([2, 2]))), OpPatternKind.INJECTIVE, "Reshape"),
        (call("Reshape", X, SHAPE), OpPatternKind.OPAQUE, "Reshape"),
        (call("Dropout", X), OpPatternKind.ELEMWISE, "Dropout"),
        (call("Dropout", X, absent(), FLAG), OpPatternKind.OPAQUE, "Dropout"),
        (call("RandomNormalLike", X), OpPatternKind.OPAQUE, "RandomNormalLike"),
        (call("on_device", X, domain="intarsia"), OpPatternKind.OPAQUE, "intarsia::on_device"),
        (SCALAR, OpPatternKind.ELEMWISE, "scalar"),
        (WEIGHT, OpPatternKind.ELEMWISE, "const"),
        (Tuple((X, WEIGHT)), OpPatternKind.INJECTIVE, "tuple"),
        (Tuple((X, HALVES)), OpPatternKind.OPAQUE, "tuple"),
        (absent(), OpPatternKind.INJECTIVE, ""),
        (TupleGetItem(HALVES, 0), OpPatternKind.INJECTIVE, "field"),
        (TupleGetItem(Tuple((HALVES,)), 0), OpPatternKind.OPAQUE, "field"),
        (literal(Composite="acme.relu"), OpPatternKind.OPAQUE, "acme.relu"),
        (literal(Compiler="acme"), OpPatternKind.OPAQUE, "acme"),
        (literal(TOpPattern=0), OpPatternKind.ELEMWISE, "fn"),
        (Call(GlobalVar("f"), (X,)), OpPatternKind.OPAQUE, "f"),
        (Call(Var("f"), (X,)), OpPatternKind.OPAQUE, "call"),
        (If(FLAG, X, X), OpPatternKind.OPAQUE, "if"),
        (Let(X, WEIGHT, X), OpPatternKind.OPAQUE, "let"),
        (X, OpPatternKind.OPAQUE, ""),
        (Op("Relu"), OpPatternKind.OPAQUE, ""),
    ],
)
def test_kind_and_label(expr: Expr, kind: OpPatternKind, label: str) -> None:
    assert node_kind(expr) is kind
    assert node_label(expr) == label
