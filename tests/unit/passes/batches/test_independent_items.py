"""Programs that compute items by themselves are recognised, and no other ones."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.each_case import each_case
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.inputs import random_inputs
from intarsia.op import call
from intarsia.passes import bind_sizes
from intarsia.passes.batches import independence_obstacle
from intarsia.passes.batches.item_axes import ITEMS

IMAGE = "float[n, 3, 8, 8] x"
ROWS = "float[n, 6] x"
CUBE = "float[n, 4, 6] x"

INDEPENDENT = {
    "elementwise": (ROWS, "y = Relu (x)"),
    "constant row": (ROWS, "y = Add (x, c)", "float[6] c = {1, 2, 3, 4, 5, 6}"),
    "two inputs": (f"{ROWS}, float[n, 6] z", "y = Mul (x, z)"),
    "stretched": (f"{CUBE}, float[n, 1, 6] z", "y = Max (x, z)"),
    "where": (ROWS, "b = Greater (x, c) y = Where (b, x, c)", "float[1] c = {0}"),
    "softmax": (ROWS, "y = Softmax (x)"),
    "normalization": (CUBE, "y = LayerNormalization <axis = 1> (x, s)", "float[6] s = {1, 2, 3, 4, 5, 6}"),
    "mean of columns": (CUBE, "y = ReduceSum <keepdims = 0> (x, a)", "int64[1] a = {1}"),
    "mean of both": (CUBE, "y = ReduceSum <keepdims = 1> (x, a)", "int64[2] a = {-1, 1}"),
    "largest": (CUBE, "y = ArgMax <axis = -1, keepdims = 0> (x)"),
    "sums so far": (ROWS, "y = CumSum (x, a)", "int64 a = {1}"),
    "rows of a product": (
        ROWS,
        "y = MatMul (x, w)",
        "float[6, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}",
    ),
    "gemm": (
        ROWS,
        "y = Gemm <transB = 1> (x, w, b)",
        "float[2, 6] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[2] b = {1, 2}",
    ),
    "matrices of items": (CUBE, "t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (x, t)"),
    "pooling": (IMAGE, "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)"),
    "global pooling": (IMAGE, "p = GlobalAveragePool (x) y = Flatten (p)"),
    "space": (IMAGE, "y = SpaceToDepth <blocksize = 2> (x)"),
    "padding": (ROWS, "y = Pad (x, p)", "int64[4] p = {0, 1, 0, 2}"),
    "padding of an axis": (CUBE, "y = Pad (x, p)", "int64[6] p = {0, 1, 0, 0, 2, 0}"),
    "slice": (CUBE, "y = Slice (x, b, e, a)", "int64[1] b = {1}, int64[1] e = {3}, int64[1] a = {1}"),
    "split": (ROWS, "a, b = Split <axis = 1, num_outputs = 2> (x) y = Sub (a, b)"),
    "concatenation": (ROWS, "r = Relu (x) y = Concat <axis = 1> (x, r)"),
    "gather columns": (ROWS, "y = Gather <axis = 1> (x, i)", "int64[2] i = {3, 0}"),
    "embedding": (
        "int64[n, 5] x",
        "y = Gather (t, x)",
        "float[8, 2] t = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}",
    ),
    "reshape behind": (CUBE, "y = Reshape (x, s)", "int64[2] s = {-1, 24}"),
    "flattened rows": (CUBE, "y = Reshape (x, s)", "int64[2] s = {-1, 6}"),
    "heads first and back": (
        CUBE,
        "t = Transpose <perm = [1, 0, 2]> (x) m = Softmax (t) y = Transpose <perm = [1, 0, 2]> (m)",
    ),
    "parts in front": (
        "float[n, 2, 6] x",
        "t = Transpose <perm = [1, 0, 2]> (x) a, b = Split <axis = 0, num_outputs = 2> (t) "
        "c = Squeeze (a, z) d = Squeeze (b, z) y = Mul (c, d)",
        "int64[1] z = {0}",
    ),
    "shape arithmetic": (
        CUBE,
        "s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (s, m) y = Reshape (x, t)",
        "int64[1] m = {-1}",
    ),
    "expanded token": (
        CUBE,
        "s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (s, r) e = Expand (c, t) "
        "y = Concat <axis = 1> (e, x)",
        "int64[2] r = {1, 6}, float[1, 1, 6] c = {1, 2, 3, 4, 5, 6}",
    ),
    "unsqueezed": (ROWS, "u = Unsqueeze (x, a) y = Squeeze (u, a)", "int64[1] a = {1}"),
    "one hot": ("int64[n] x", "y = OneHot (x, d, v)", "int64 d = {4}, float[2] v = {0, 1}"),
    "masked": (CUBE, "y = Trilu (x)"),
    "picked columns": (CUBE, "y = ai.onnx.ml.ArrayFeatureExtractor (x, i)", "int64[2] i = {3, 0}"),
    "picked classes": (
        "int64[n] x",
        "y0 = ai.onnx.ml.ArrayFeatureExtractor (t, x) y = Squeeze (y0, z)",
        "float[1, 8] t = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] z = {0}",
    ),
    "categories": ("int64[n, 5] x", "y = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 2, 1]> (x)"),
    "matrices side by side": (
        f"{ROWS}, float[n, 2] z",
        "y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [2, 6]> (z, x)",
    ),
    "recurrent": (
        "float[n, 3, 1] x",
        "t = Transpose <perm = [1, 0, 2]> (x) a, h = RNN <hidden_size = 1> (t, w, r) "
        "s = Squeeze (h, z) y = Relu (s)",
        "float[1, 1, 1] w = {0.5}, float[1, 1, 1] r = {0.25}, int64[1] z = {0}",
    ),
}
"""Parameters, nodes and weights of programs that compute items by themselves."""

MIXING = {
    "softmax of items": (ROWS, "y = Softmax <axis = 0> (x)"),
    "sum of items": (ROWS, "y = ReduceSum <keepdims = 1> (x, a)", "int64[1] a = {0}"),
    "mean of everything": (ROWS, "m = ReduceMean <keepdims = 1> (x) y = Sub (x, m)"),
    "items of another order": (ROWS, "t = Transpose (x) y = Relu (t)"),
    "square of items": (ROWS, "t = Transpose (x) p = MatMul (x, t) y = MatMul (p, x)"),
    "items behind each other": (ROWS, "r = Relu (x) y = Concat <axis = 0> (x, r)"),
    "first item": (ROWS, "y = Slice (x, b, e)", "int64[1] b = {0}, int64[1] e = {1}"),
    "picked items": ("float[n] x", "y = ai.onnx.ml.ArrayFeatureExtractor (x, i)", "int64[1] i = {0}"),
    "other item": (ROWS, "y = Gather <axis = 0> (x, i)", "int64[1] i = {0}"),
    "sums over items": (ROWS, "y = CumSum (x, a)", "int64 a = {0}"),
    "padded items": (ROWS, "y = Pad (x, p)", "int64[4] p = {1, 0, 0, 0}"),
    "number of items": (
        ROWS,
        "s = Shape <start = 0, end = 1> (x) f = Cast <to = 1> (s) y = Div (x, f)",
    ),
    "merged with heads": (
        CUBE,
        "t = Transpose <perm = [1, 0, 2]> (x) y = Reshape (t, s)",
        "int64[2] s = {-1, 6}",
    ),
    "same for all": (ROWS, "r = Relu (x) y = Identity (c)", "float[6] c = {1, 2, 3, 4, 5, 6}"),
    "nothing known": (ROWS, "y = Unique (x)"),
    "indices of a pool": (IMAGE, "p, y = MaxPool <kernel_shape = [2, 2]> (x)"),
    "scale of all": (ROWS, "q, s, z = DynamicQuantizeLinear (x) y = Identity (q)"),
    "decided for all": (
        f"{ROWS}, bool k",
        "y = If (k) <then_branch = a () => (float[n, 6] u) { u = Relu (x) }, "
        "else_branch = b () => (float[n, 6] v) { v = Neg (x) }>",
    ),
    "random": (ROWS, "r = RandomNormalLike (x) y = Add (x, r)"),
}
"""Programs in which an item depends on others, or on how many there are."""


def program(parameters: str, nodes: str, weights: str = "") -> IRModule:
    graph = f"g ({parameters}) => (y) <{weights}> {{ {nodes} }}"
    return from_onnx(model_of(graph, imports='"ai.onnx.ml": 3'))


def obstacle(mod: IRModule) -> str | None:
    names = frozenset(
        param.name
        for param in mod["main"].params
        if isinstance(param.checked_type, TensorType) and param.checked_type.shape
    )
    return independence_obstacle(bind_sizes(mod, {"n": ITEMS})["main"], dict.fromkeys(names, 0))


@each_case("name", sorted(INDEPENDENT))
def test_items_are_computed_by_themselves(name: str) -> None:
    mod = program(*INDEPENDENT[name])
    assert obstacle(mod) is None
    inputs = random_inputs(bind_sizes(mod, {"n": 3})["main"], 1)
    together = build(mod).run_flat(**inputs)
    apart = [
        build(mod).run_flat(**{key: array[item : item + 1] for key, array in inputs.items()})
        for item in range(3)
    ]
    for position, result in enumerate(together):
        parts = [np.asarray(item[position]) for item in apart]
        np.testing.assert_allclose(np.asarray(result), np.concatenate(parts), rtol=1e-6)


@each_case("name", sorted(MIXING))
def test_items_that_depend_on_others_are_not(name: str) -> None:
    assert obstacle(program(*MIXING[name])) is not None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sum of items", "operator 'ReduceSum' mixes items"),
        ("number of items", "operator 'Div' computes with the number of items"),
        ("decided for all", "a If decides for all items"),
        ("random", "operator 'RandomNormalLike' draws random numbers"),
        ("nothing known", "operator 'Unique' mixes items"),
        ("items of another order", "a result, operator 'Relu', does not have the items in its first axis"),
    ],
)
def test_the_reason_is_named(name: str, reason: str) -> None:
    text = obstacle(program(*MIXING[name]))
    assert text is not None
    assert re.sub(r" at node '\w*'", "", text) == reason


@pytest.mark.parametrize(("axis", "is_free"), [(0, False), (1, True), (-2, False), (-1, True)])
def test_padded_axes_by_name(axis: int, is_free: bool) -> None:
    x = Var("x", checked_type=TensorType((ITEMS, 6), DType.FLOAT32))
    pads, axes = (Constant(np.array(item, np.int64)) for item in ([1, 2], [axis]))
    zero = Constant(np.array(0, np.float32))
    padded = Function((x,), call("Pad", x, pads, zero, axes))
    assert (independence_obstacle(padded, {"x": 0}) is None) == is_free
