"""Programs on texts of any length in onnx's text form, and what is passed to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import onnx
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.ir import IRModule
from intarsia.runtime.kernel import Array

LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 47, 48, 49, 64)
"""Lengths at both borders of tiles and panels for all instruction sets, and primes; tables end at 64."""
SHAPES = "int64[4] heads = {0, -1, 2, 4}, int64[3] flat = {0, -1, 8}, float scale = {0.5}"
SPLIT = (
    "q0 = MatMul (x, wq) k0 = MatMul (x, wk) v0 = MatMul (x, wv) "
    "q1 = Reshape (q0, heads) k1 = Reshape (k0, heads) v1 = Reshape (v0, heads) "
    "q = Transpose <perm = [0, 2, 1, 3]> (q1) k = Transpose <perm = [0, 2, 3, 1]> (k1) "
    "v = Transpose <perm = [0, 2, 1, 3]> (v1) s0 = MatMul (q, k) s = Mul (s0, scale) "
)
"""Queries, keys and values of two heads of 4 numbers, and scaled scores s."""
JOINED = (
    "p = Softmax <axis = -1> (b) o0 = MatMul (p, v) o1 = Transpose <perm = [0, 2, 1, 3]> (o0) "
    "o2 = Reshape (o1, flat) o = MatMul (o2, wo) y = Add (o, x) "
)
"""The block's result y from biased scores b."""
TURNED: Final = SPLIT.partition("s0")[0].replace("[0, 2, 3, 1]", "[0, 2, 1, 3]")
"""Queries, keys and values, all of them (texts, heads, tokens, size)."""
BEHIND: Final = "o1" + JOINED.partition("o1")[2]
"""The block's result y from that of attention o0."""
PLAIN = "b = Identity (s) "
MASKED = "f = Cast <to = 1> (m) d = Sub (one, f) e = Mul (d, low) r = Unsqueeze (e, axes) b = Add (s, r) "
"""A mask m (1, length) of 0 and 1."""
CAUSAL = (
    "l = Shape <start = 1, end = 2> (x) c1 = Slice (tri, zero, l, three) c = Slice (c1, zero, l, two) "
    "b = Where (c, s, lowest) "
)
"""A causal mask that is cut out of a table."""
RANGES = (
    "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) a = Range (zero0, l, one0) "
    "a1 = Unsqueeze (a, one1) later = Less (a1, a) n = Not (later) f = Cast <to = 9> (m) "
    "r = Unsqueeze (f, axes) "
    "both = And (n, r) g = Where (both, nothing, lowest) b = Add (s, g) "
)
"""A causal mask by positions, together with a mask m, as newer exporters write it."""
SLOPES = (
    "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) a = Range (zero0, l, one0) f = Cast <to = 1> (a) "
    "r = Mul (f, slopes) b = Add (s, r) "
)
"""A bias that each head multiplies by positions (ALiBi)."""
GATHERED = (
    "b0 = Shape <end = 1> (m) n = Squeeze (b0) l0 = Shape <start = 1, end = 2> (m) l = Squeeze (l0) "
    "t = Range (zero0, n, one0) a = Range (zero0, l, one0) a1 = Unsqueeze (t, one1) h = Mul (a1, l0) "
    "g = Add (h, a) f0 = Unsqueeze (g, axes) m0 = Reshape (m, all) later = Gather (m0, f0) "
    "f = Cast <to = 9> (later) r = Where (f, nothing, lowest) b = Add (s, r) "
)
"""A mask m whose rows are gathered from all texts' tokens one behind another, as newer exporters write it."""
ENDS = (
    "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) a = Range (zero0, l, one0) d = Sub (a, l) "
    "f = Cast <to = 1> (d) r = Mul (f, slopes) b = Add (s, r) "
)
"""The same, counted back from the last token (MPT)."""
DISTANCES = (
    "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) a = Range (zero0, l, one0) "
    "a1 = Unsqueeze (a, one1) d = Sub (a, a1) d1 = Clip (d, minus9, nine) d2 = Add (d1, nine) "
    "g = Gather (distances, d2) t = Transpose <perm = [2, 0, 1]> (g) r = Unsqueeze (t, zero) "
    "f = Cast <to = 1> (m) n = Sub (one, f) e = Mul (n, low) h = Unsqueeze (e, axes) c = Add (r, h) "
    "b = Add (s, c) "
)
"""A bias that each head reads by the distance of two tokens, together with a mask (T5)."""
FORMS = {
    "ends": ENDS,
    "distances": DISTANCES,
    "gathered": GATHERED,
    "plain": PLAIN,
    "masked": MASKED,
    "causal": CAUSAL,
    "ranges": RANGES,
    "slopes": SLOPES,
}
_MOST: Final = 64


TOKEN_WISE: Final = {
    "layer": "h = MatMul (x, wq) y = Relu (h) ",
    "rows": "h = Reshape (x, rows8) g = MatMul (h, wk) r = Shape (x) y = Reshape (g, r) ",
    "norm": "y = LayerNormalization <axis = -1> (x, ones8) ",
    "residual": "h = MatMul (x, wv) t = Tanh (h) y = Add (x, t) ",
    "softmax": "y = Softmax <axis = 2> (x) ",
    "positions": "l = Shape <start = 1, end = 2> (x) h = Slice (places, zero, l, one1) y = Add (x, h) ",
    "token types": "l = Shape <end = 1> (m) c = Concat <axis = 0> (l, sixty4) r = Expand (zeros64, c) "
    "g = GatherElements <axis = 1> (r, m) d = Gather (wk, g) y = Add (x, d) ",
    "halves": "h, g = Split <axis = 2, num_outputs = 2> (x) y = Concat <axis = 2> (g, h) ",
    "masked rows": "h = Cast <to = 1> (m) g = Unsqueeze (h, two) y = Mul (x, g) ",
}
"""Steps that compute each token by itself, from x to y."""
POOLED: Final = {
    "centered": "h = ReduceMean (x, one1) y = Sub (x, h) ",
    "scaled by the largest": "h = Abs (x) g = ReduceMax <keepdims = 0> (h, one1) r = MatMul (g, wq) "
    "d = Unsqueeze (r, one1) y = Mul (x, d) ",
    "beside the first": "h = Slice (x, zero, one1, one1) g = Shape (x) r = Expand (h, g) y = Mul (x, r) ",
}
"""Steps from x to y in which each token reads what all tokens of its text have in common."""
_ZEROS: Final = "r = Shape <end = 1> (x) d = Concat <axis = 0> (r, one1, eight) f = ConstantOfShape (d) "
_CHANNELS_FIRST: Final = "t = Transpose <perm = [0, 2, 1]> (x) "
_CHANNELS_LAST: Final = " y = Transpose <perm = [0, 2, 1]> (c) "
NEIGHBOURS: Final = {
    "convolution": _CHANNELS_FIRST + "c = Conv <pads = [1, 1]> (t, taps3, ones8)" + _CHANNELS_LAST,
    "even convolution": _CHANNELS_FIRST + 'c = Conv <auto_pad = "SAME_LOWER"> (t, taps4)' + _CHANNELS_LAST,
    "dilated convolution": _CHANNELS_FIRST
    + "c = Conv <pads = [6, 0], dilations = [3]> (t, taps3)"
    + _CHANNELS_LAST,
    "convolution of channels": _CHANNELS_FIRST
    + "c = Conv <pads = [2, 2], group = 8> (t, taps5, ones8)"
    + _CHANNELS_LAST,
    "convolution of what is padded": _CHANNELS_FIRST
    + "h = Pad (t, before3) c = Conv <pads = [0, 1], dilations = [2]> (h, taps3)"
    + _CHANNELS_LAST,
    "convolution in groups": _CHANNELS_FIRST
    + "c = Conv <pads = [1, 1], group = 2> (t, taps_of_half, ones8)"
    + _CHANNELS_LAST,
    "convolution that is cut": _CHANNELS_FIRST
    + "h = Conv <pads = [2, 2]> (t, taps3) l = Shape <start = 1, end = 2> (x) c = Slice (h, zero, l, two)"
    + _CHANNELS_LAST,
    "rows by token": "t = Transpose <perm = [1, 0, 2]> (x) h = Reshape (t, rows8) d = Gemm (h, wq, ones8) "
    "r = Shape (t) e = Tanh (d) g = Reshape (e, r) y = Transpose <perm = [1, 0, 2]> (g) ",
    "moved by a pad": "h = Pad (x, later1) y = Add (x, h) ",
    "moved back by a pad": "h = Pad (x, earlier2, , one1) y = Add (x, h) ",
    "moved by a cut": "h = Pad (x, later3) l = Shape <start = 1, end = 2> (x) g = Slice (h, zero, l, one1) "
    "y = Sub (x, g) ",
    "behind zeros": _ZEROS + "h = Slice (x, zero, last, one1) y = Concat <axis = 1> (f, h) ",
    "before zeros": _ZEROS + "h = Slice (x, one1, end, one1) g = Concat <axis = 1> (h, f) y = Mul (x, g) ",
}
"""Steps from x to y in which tokens read their neighbours."""
COUNTED: Final = {
    "weights": "h = MatMul (x, wq) g = Softmax <axis = 1> (h) y = Mul (x, g) ",
    "logarithms": "y = LogSoftmax <axis = 1> (x) ",
    "sum by weights": "h = MatMul (x, wq) g = Slice (h, zero, two, two) r = Softmax <axis = 1> (g) "
    "t = Transpose <perm = [0, 2, 1]> (r) d = MatMul (t, x) e = ReduceSum (d, one1) y = Add (x, e) ",
    "by the length": "l = Shape <start = 1, end = 2> (x) f = Cast <to = 1> (l) y = Div (x, f) ",
    "by the root of the length": "l0 = Shape <start = 1, end = 2> (x) l = Squeeze (l0) n = Add (l, one0) "
    "f = Cast <to = 1> (n) d = Sqrt (f) y = Div (x, d) ",
    "by an even length": "l = Shape <start = 1, end = 2> (x) n = Mod (l, two) f = Cast <to = 1> (n) "
    "y = Add (x, f) ",
}
"""Steps from x to y in which each token reads what depends on all tokens, or on their number."""
OPERATORS: Final = {
    "operator": "o0 = Attention (q, k, v) ",
    "operator with a mask": "f = Cast <to = 9> (m) n = Not (f) r = Unsqueeze (n, axes) "
    "o0 = Attention (q, k, v, r) ",
    # The reference takes a causal mask of one query for that of all, so this mask has all.
    "causal operator with a mask": "f = Cast <to = 9> (m) n = Not (f) e = Unsqueeze (n, axes) "
    "l0 = Shape <start = 1, end = 2> (x) l = Concat <axis = 0> (one1, one1, l0, one1) r = Expand (e, l) "
    "o0 = Attention <is_causal = 1> (q, k, v, r) ",
    "operator with a bias": "f = Cast <to = 1> (m) e = Mul (f, low) r = Unsqueeze (e, axes) "
    "o0 = Attention (q, k, v, r) ",
    "causal operator": "o0 = Attention <is_causal = 1, scale = 0.25> (q, k, v) ",
    "without nan": "kt = Transpose <perm = [0, 1, 3, 2]> (k) s0 = MatMul (q, kt) f = Cast <to = 9> (m) "
    "n = Not (f) r = Unsqueeze (n, axes) b = Where (r, s0, infinite) p0 = Softmax <axis = -1> (b) "
    "d = IsNaN (p0) p = Where (d, nothing, p0) o0 = MatMul (p, v) ",
}
"""Attention as one operator, or with zeros in place of NaN, from queries, keys and values of two heads.

Masks are turned: they hide the first token, so that there are queries without a visible key."""
HEADS: Final = {
    "": "y = Identity (x) ",
    "mean": "y = ReduceMean <keepdims = 0> (x, one1) ",
    "masked mean": "f = Cast <to = 1> (m) h = Unsqueeze (f, two) g = Mul (x, h) "
    "r = ReduceSum <keepdims = 0> (g, one1) c = ReduceSum <keepdims = 0> (h, one1) "
    "d = Max (c, one) y = Div (r, d) ",
    "count": "h = ReduceSum <keepdims = 0> (m, one1) g = Cast <to = 1> (h) d = Unsqueeze (g, one1) "
    "f = ReduceMin <keepdims = 0> (x, one1) y = Mul (f, d) ",
    "largest": "h = ReduceMax (x, tokens_and_columns) y = Identity (h) ",
    "first": "h = Gather <axis = 1> (x, zero0) g = Gemm (h, wo) y = Tanh (g) ",
    "last": "h = Gather <axis = 1> (x, last) y = MatMul (h, wv) ",
    "first cut": "h = Slice (x, zero, one1, one1) g = Squeeze (h, one1) y = Relu (g) ",
    "last cut": "h = Slice (x, last, end, one1) y = Relu (h) ",
    "pool of channels": "t = Transpose <perm = [0, 2, 1]> (x) h = GlobalAveragePool (t) y = Flatten (h) ",
}
"""Ends of programs, from x to y: what becomes of all tokens of a text."""
_LOCAL: Final = frozenset(
    re.findall(
        r"\w+",
        "c0 kk vv kt p0 t0 t1 pq d1 d2 b0 f0 q0 k0 v0 q1 k1 v1 q k v s0 s f d e r b l c1 c l0 a a1 later "
        "n both g d near m0 p o0 o1 o2 o y h t",
    )
)


def token_model(steps: Sequence[str], seed: int = 0, head: str = "", texts: str = "1") -> Any:
    """Return a model of named steps: x (texts, length, 8) and m (texts, length) to y.

    Args:
        steps: Names in `TOKEN_WISE`, `POOLED`, `NEIGHBOURS`, `COUNTED`, `FORMS` or `OPERATORS`.
        seed: Seed of the weights.
        head: Name in `HEADS`.
        texts: Number of texts, or the name of the dimension.
    """
    rng = np.random.default_rng(seed)
    weights: dict[str, Array] = {
        name: rng.standard_normal((8, 8)).astype(np.float32) / 2 for name in ("wq", "wk", "wv", "wo")
    }
    text, before = "", "x"
    bodies = {**TOKEN_WISE, **POOLED, **NEIGHBOURS, **COUNTED}
    bodies |= {step: f"{TURNED} {body} {BEHIND}" for step, body in OPERATORS.items()}
    parts = [bodies.get(step) or f"{SPLIT} {FORMS[step]} {JOINED}" for step in steps]
    for number, body in enumerate([*parts, HEADS[head]]):
        text += numbered(body, number, before)
        before = f"y_{number}"
    graph = (
        f"g (float[{texts}, length, 8] x, int64[{texts}, length] m) "
        f"=> (float[{texts}, length, 8] y) <{SHAPES}> "
        f"{{ {text} y = Identity ({before}) }}"
    )
    arrays: dict[str, Any] = {**weights, **CONSTANTS}
    model = model_of(graph, opset=23 if set(steps) & set(OPERATORS) else 18, **arrays)
    if head:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def numbered(body: str, number: int, before: str) -> str:
    """Return the nodes of a step, whose names end with its number, and which read the result `before`."""
    return re.sub(r"\b[a-z][a-z0-9]*\b", partial(_renamed, number, before), body)


def _renamed(number: int, before: str, word: re.Match[str]) -> str:
    name = word[0]
    return before if name == "x" else f"{name}_{number}" if name in _LOCAL else name


CONSTANTS: Final[dict[str, Array]] = {
    "taps3": np.random.default_rng(4).standard_normal((8, 8, 3)).astype(np.float32) / 4,
    "taps4": np.random.default_rng(5).standard_normal((8, 8, 4)).astype(np.float32) / 4,
    "taps_of_half": np.random.default_rng(7).standard_normal((8, 4, 3)).astype(np.float32) / 2,
    "taps5": np.random.default_rng(6).standard_normal((8, 1, 5)).astype(np.float32),
    "before3": np.array([0, 0, 3, 0, 0, 0], np.int64),
    "later1": np.array([0, 1, 0, 0, -1, 0], np.int64),
    "later3": np.array([0, 3, 0, 0, 0, 0], np.int64),
    "earlier2": np.array([-2, 2], np.int64),
    "eight": np.array([8], np.int64),
    "tri": np.tri(_MOST, dtype=np.bool_)[None, None],
    "slopes": np.array([0.5, -0.25], np.float32).reshape(1, 2, 1, 1),
    "places": np.random.default_rng(2).standard_normal((1, _MOST, 8)).astype(np.float32),
    "distances": np.random.default_rng(3).standard_normal((19, 2)).astype(np.float32),
    "nine": np.array(9, np.int64),
    "minus9": np.array(-9, np.int64),
    "ones8": np.ones(8, np.float32),
    "all": np.array([-1], np.int64),
    "rows8": np.array([-1, 8], np.int64),
    "one": np.array(1, np.float32),
    "low": np.array(-10000, np.float32),
    "lowest": np.array(np.finfo(np.float32).min, np.float32),
    "nothing": np.array(0, np.float32),
    "sixty4": np.array([64], np.int64),
    "zeros64": np.zeros((1, 64), np.int64),
    "infinite": np.array(-np.inf, np.float32),
    "axes": np.array([1, 2], np.int64),
    "zero": np.array([0], np.int64),
    "two": np.array([2], np.int64),
    "three": np.array([3], np.int64),
    "one1": np.array([1], np.int64),
    "last": np.array([-1], np.int64),
    "end": np.array([np.iinfo(np.int64).max], np.int64),
    "tokens_and_columns": np.array([1, -1], np.int64),
    "zero0": np.array(0, np.int64),
    "one0": np.array(1, np.int64),
}


def perceptron() -> Any:
    """Return a model of two layers on each token, with embeddings of positions."""
    rng = np.random.default_rng(1)
    text = (
        "g (float[1, length, 5] x) => (float[1, length, 7] y, float[length, 6] h) "
        "{ l = Shape <start = 1, end = 2> (x) e0 = Slice (places, zero, l, one) x1 = Add (x, e0) "
        "h0 = MatMul (x1, w) h1 = Relu (h0) h = Reshape (h1, rows) y = MatMul (h1, u) }"
    )
    return model_of(
        text,
        opset=18,
        places=rng.standard_normal((1, _MOST, 5)).astype(np.float32),
        w=rng.standard_normal((5, 6)).astype(np.float32),
        u=rng.standard_normal((6, 7)).astype(np.float32),
        zero=np.array([0], np.int64),
        one=np.array([1], np.int64),
        rows=np.array([-1, 6], np.int64),
    )


PROGRAMS: dict[str, Callable[[], Any]] = {
    "perceptron": perceptron,
    **{form: partial(token_model, (form,)) for form in FORMS},
}


def program(name: str) -> IRModule:
    """Return a program by its name in `PROGRAMS`."""
    return from_onnx(PROGRAMS[name]())


def token_inputs(
    model: onnx.ModelProto | IRModule, length: int, seed: int = 0, texts: int = 1
) -> dict[str, Array]:
    """Return random arguments for texts of a length; masks let the first token be seen."""
    rng = np.random.default_rng((seed, length))
    names = (
        [param.name for param in model["main"].params]
        if isinstance(model, IRModule)
        else [item.name for item in model.graph.input]
    )
    arrays: dict[str, Array] = {"x": rng.standard_normal((texts, length, 8)).astype(np.float32)}
    if "m" not in names:
        return {"x": arrays["x"][..., :5].copy()}
    arrays["m"] = rng.integers(0, 2, (texts, length))
    arrays["m"][:, 0] = 1
    return arrays
