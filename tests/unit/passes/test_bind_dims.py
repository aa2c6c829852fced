"""Programs with symbolic dimensions compute the same with numbers in their place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import ANY, Call, IRModule, SymbolicDim, TensorType, post_order
from intarsia.op.known_value import known_value
from intarsia.passes import BindDims, bind_sizes, name_dims
from intarsia.support.errors import InvalidModelError, UsageError


def flattened() -> IRModule:
    return from_onnx(
        model_of(
            "g (float[batch, rows, 4] x) => (float[n, m] y) "
            "<int64[1] minus = {-1}> { "
            "s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (s, minus) "
            "f = Reshape (x, t) y = Relu (f) }"
        )
    )


def shape_of(mod: IRModule) -> tuple[object, ...] | None:
    type_ = mod["main"].body.checked_type
    assert isinstance(type_, TensorType)
    return type_.shape


def test_shapes_and_shape_arithmetic_become_numbers() -> None:
    bound = bind_sizes(flattened(), {"batch": 2, "rows": 3})
    assert shape_of(bound) == (2, 12)
    (param,) = bound["main"].params
    assert param.checked_type == TensorType((2, 3, 4), "float32")  # type: ignore[arg-type]  # a plain name
    targets = [
        known_value(expr)
        for expr in post_order(bound["main"])
        if isinstance(expr, Call) and str(expr.op) == "Concat"
    ]
    assert [None if value is None else value.tolist() for value in targets] == [[2, -1]]


def test_other_dimensions_stay() -> None:
    bound = bind_sizes(flattened(), {"batch": 2, "depth": 7})
    (param,) = bound["main"].params
    assert isinstance(param.checked_type, TensorType)
    assert param.checked_type.shape == (2, SymbolicDim("rows"), 4)


def test_no_sizes_change_nothing() -> None:
    mod = flattened()
    assert bind_sizes(mod, {}) is mod


@given(st.integers(1, 4), st.integers(1, 5))
def test_the_program_computes_the_same(batch: int, rows: int) -> None:
    mod = flattened()
    x = np.random.default_rng(batch).standard_normal((batch, rows, 4)).astype(np.float32)
    before, after = (build(item)(x) for item in (mod, bind_sizes(mod, {"batch": batch, "rows": rows})))
    assert np.array_equal(before, after)


def test_bodies_of_loops_are_bound_too() -> None:
    mod = from_onnx(
        model_of(
            "g (float[n, 3] x) => (float[k, 3] y) <int64 two = {2}, bool go = {1}> "
            "{ y = Loop (two, go, x) <body = b (int64 i, bool c, float[p, 3] s) => (bool d, float[q, 3] t) "
            "{ d = Identity (c) t = Add (s, x) }> }"
        )
    )
    x = np.ones((2, 3), np.float32)
    bound = bind_sizes(mod, {"n": 2})
    assert np.array_equal(build(bound)(x), build(mod)(x))


def test_sizes_that_do_not_fit_are_refused() -> None:
    mod = from_onnx(model_of("g (float[n] x, float[m] z) => (float[k] y) { y = Add (x, z) }"))
    with pytest.raises(InvalidModelError, match="Add"):
        bind_sizes(mod, {"n": 2, "m": 3})


@pytest.mark.parametrize("entry", ["batch", "batch=", "batch=-1", "batch=two"])
def test_entries_have_a_name_and_a_number(entry: str) -> None:
    with pytest.raises(UsageError, match="expected a name with a number"):
        BindDims((entry,))


def test_unknown_dimensions_of_parameters_get_names() -> None:
    mod = from_onnx(model_of("g (float[?, 3] x, float[n] z) => (float[?, 3] y) { y = Relu (x) }"))
    (first, second) = name_dims(mod)["main"].params
    assert first.checked_type == TensorType((SymbolicDim("x[0]"), 3), "float32")  # type: ignore[arg-type]
    assert second is mod["main"].params[1]
    assert shape_of(name_dims(mod)) == (SymbolicDim("x[0]"), 3)


def test_named_dimensions_keep_their_names() -> None:
    mod = flattened()
    assert name_dims(mod) is mod
    assert ANY not in (shape_of(mod) or ())[:1]
