"""Rows of several texts that lie token by token."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import Call, Function, GlobalVar, IRModule, SymbolicDim, post_order
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.passes.tokens.row_order import with_rows_by_text
from intarsia.passes.tokens.token_twins import TokenTwins

TURNED = "t = Transpose <perm = [1, 0, 2]> (x) h = Reshape (t, rows) r = Shape (t) "
KEPT = {
    "product": "d = MatMul (h, w) y = Reshape (d, r)",
    "layer": "d = Gemm (h, w, b) e = Relu (d) a = Add (e, b) y = Reshape (a, r)",
    "two layers": "d = Gemm (h, w) e = Mul (d, h) f = MatMul (e, w) y = Reshape (f, r)",
    "queries": "l = Shape <end = 1> (x) n = Concat <axis = 0> (four, l, eight) q = Expand (b, n) "
    "h1 = Reshape (q, rows) d = Add (h1, b) k = Reshape (d, n) s = ReduceSum <keepdims = 0> (k, zero) "
    "v = MatMul (h, w) o = Reshape (v, r) y = Add (o, s)",
}
OTHERS = {
    "sum of rows": "s = ReduceSum (h, zero) d = Add (h, s) y = Reshape (d, r)",
    "rows of a result": "y = MatMul (h, w)",
    "weights of rows": "g = Transpose (h) d = MatMul (g, h) y = MatMul (h, d)",
    "rows of another width": "y = Reshape (h, other)",
}


def program(steps: str) -> Function:
    model = model_of(
        f"g (float[texts, length, 8] x) => (float y) {{ {TURNED} {steps} }}",
        opset=18,
        rows=np.array([-1, 8], np.int64),
        other=np.array([-1, 4], np.int64),
        w=np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32),
        b=np.random.default_rng(1).standard_normal(8).astype(np.float32),
        zero=np.array([0], np.int64),
        four=np.array([4], np.int64),
        eight=np.array([8], np.int64),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    function = from_onnx(model)["main"]
    assert isinstance(function, Function)
    return function


def twins_of(function: Function) -> TokenTwins:
    return TokenTwins(function, "length", 64, "texts")


@pytest.mark.parametrize("name", KEPT)
def test_rows_are_put_text_by_text(name: str) -> None:
    before = program(KEPT[name])
    after = with_rows_by_text(twins_of(before))
    assert after is not before
    merged = next(node for node in post_order(after) if operator_name(node) == "Reshape")
    assert isinstance(merged, Call)
    assert operator_name(merged.args[0]) == "Transpose"
    for texts, length in ((1, 1), (3, 1), (2, 5), (1, 7)):
        x = np.random.default_rng(length).standard_normal((texts, length, 8)).astype(np.float32)
        sizes = {SymbolicDim("texts"): texts, SymbolicDim("length"): length}
        modules = [IRModule({GlobalVar("main"): bind_function(item, sizes)}) for item in (before, after)]
        right, result = (np.asarray(build(module).run_flat(x=x)[0]) for module in modules)
        np.testing.assert_allclose(result, right, rtol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_rows_that_are_read_otherwise_stay(name: str) -> None:
    function = program(OTHERS[name])
    assert with_rows_by_text(twins_of(function)) is function


def test_one_text_needs_no_order() -> None:
    function = bind_function(program(KEPT["layer"]), {SymbolicDim("texts"): 1})
    assert with_rows_by_text(TokenTwins(function, "length", 64)) is function
