"""Programs on new tokens of texts behind keys and values of the past, and what is passed to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from tests.onnx_models import model_of
from tests.token_programs import BEHIND, CONSTANTS, SHAPES, TOKEN_WISE, TURNED, numbered

from intarsia.ir import IRModule
from intarsia.runtime.kernel import Array

_COUNTS: Final = (
    "l0 = Shape <start = 1, end = 2> (x) p0 = Shape <start = 2, end = 3> (PK) t0 = Add (p0, l0) "
    "l = Squeeze (t0) a = Range (zero0, l, one0) pq = Squeeze (p0) c0 = Range (pq, l, one0) "
    "a1 = Unsqueeze (c0, one1) "
)
"""Positions of all keys a, and of the queries a1."""
_JOIN: Final = "kk = Concat <axis = 2> (PK, k) vv = Concat <axis = 2> (PV, v) "
_SCORES: Final = "kt = Transpose <perm = [0, 1, 3, 2]> (kk) s0 = MatMul (q, kt) s = Mul (s0, scale) "
_VISIBLE: Final = (
    "later = LessOrEqual (a, a1) f = Cast <to = 9> (m) e = Unsqueeze (f, axes) n = And (later, e) "
)
BIASES: Final = {
    "plain": "b = Identity (s) ",
    "masked": "f = Cast <to = 1> (m) d = Sub (one, f) e = Mul (d, low) r = Unsqueeze (e, axes) "
    "b = Add (s, r) ",
    "causal and masked": f"{_VISIBLE} g = Where (n, nothing, lowest) b = Add (s, g) ",
    "causal": "later = LessOrEqual (a, a1) b = Where (later, s, lowest) ",
    "slopes from the first key": "f = Cast <to = 1> (a) r = Mul (f, slopes) b = Add (s, r) ",
    "slopes from the last key": "d = Sub (a, l) f = Cast <to = 1> (d) r = Mul (f, slopes) b = Add (s, r) ",
    "slopes of counts": "c1 = CumSum (m, one0) c = Mul (c1, m) f = Cast <to = 1> (c) e = Unsqueeze (f, axes) "
    "r = Mul (e, slopes) b = Add (s, r) ",
    "distances": "d = Sub (a, a1) d1 = Clip (d, minus9, nine) d2 = Add (d1, nine) g = Gather (distances, d2) "
    "t = Transpose <perm = [2, 0, 1]> (g) r = Unsqueeze (t, zero) b = Add (s, r) ",
    "causal distances": "d = Sub (a, a1) d1 = Clip (d, minus9, nine) d2 = Add (d1, nine) "
    "g = Gather (distances, d2) t = Transpose <perm = [2, 0, 1]> (g) r = Unsqueeze (t, zero) c = Add (s, r) "
    f"{_VISIBLE} h = Where (n, nothing, lowest) b = Add (c, h) ",
}
"""Scores b of all keys from scaled products s, with a mask m of all keys."""
_OPERATORS: Final = {
    "operator of the past": f"{_VISIBLE} o0, kk, vv = Attention (q, k, v, n, PK, PV) ",
    "operator after joining": f"{_JOIN} {_VISIBLE} o0 = Attention (q, kk, vv, n) ",
}
ATTENTION: Final = (*BIASES, *_OPERATORS)
"""Names of blocks of attention with a past."""
STEPS: Final = (
    *(name for name in TOKEN_WISE if name not in ("positions", "masked rows", "token types")),
    "positions of the mask",
)
"""Names of other steps."""
_POSITIONS: Final = (
    "p0 = Shape <start = 2, end = 3> (PK) c1 = CumSum (m, one0) c = Sub (c1, one1) "
    "t1 = Shape <start = 1, end = 2> (c) g = Slice (c, p0, t1, one1) h = Gather (rows, g) y = Add (x, h) "
)
LENGTHS: Final = (1, 2, 3, 7, 8, 9, 16, 17)
PASTS: Final = (0, 1, 2, 7, 15, 23, 31, 46, 47)


def past_model(steps: Sequence[str], seed: int = 0, texts: str = "1") -> Any:
    """Return a model of named steps, each block of attention with a past of its own.

    Its parameters are x (texts, length, 8), m (texts, total), pkN and pvN (texts, 2, past, 4); its results
    y, and nkN and nvN (texts, 2, total, 4).

    Args:
        steps: Names in `ATTENTION` or `STEPS`, one of attention at least.
        seed: Seed of the weights.
        texts: Number of texts, or the name of the dimension.
    """
    rng = np.random.default_rng(seed)
    weights = {name: rng.standard_normal((8, 8)).astype(np.float32) / 2 for name in ("wq", "wk", "wv", "wo")}
    text, before, blocks = "", "x", 0
    for number, step in enumerate(steps):
        names = {"PK": f"pk{blocks}", "PV": f"pv{blocks}"}
        if step in ATTENTION:
            body = _attention(step)
            text += _replaced(numbered(body, number, before), names)
            text += f"nk{blocks} = Identity (kk_{number}) nv{blocks} = Identity (vv_{number}) "
            blocks += 1
        else:
            body = _POSITIONS if step == "positions of the mask" else TOKEN_WISE[step]
            text += _replaced(numbered(body, number, before), {"PK": "pk0"})
        before = f"y_{number}"
    states = [f"{kind}{block}" for block in range(blocks) for kind in ("k", "v")]
    params = ", ".join(f"float[{texts}, 2, past, 4] p{name}" for name in states)
    results = ", ".join(f"float[{texts}, 2, total, 4] n{name}" for name in states)
    graph = (
        f"g (float[{texts}, length, 8] x, int64[{texts}, total] m, {params}) "
        f"=> (float[{texts}, length, 8] y, {results}) <{SHAPES}> {{ {text} y = Identity ({before}) }}"
    )
    rows = np.random.default_rng(4).standard_normal((64, 8)).astype(np.float32)
    arrays: dict[str, Any] = {**weights, **CONSTANTS, "rows": rows}
    return model_of(graph, opset=23, **arrays)


def _attention(step: str) -> str:
    if step in BIASES:
        weighed = "p = Softmax <axis = -1> (b) o0 = MatMul (p, vv) "
        return f"{TURNED} {_COUNTS} {_JOIN} {_SCORES} {BIASES[step]} {weighed} {BEHIND}"
    return f"{TURNED} {_COUNTS} {_OPERATORS[step]} {BEHIND}"


def _replaced(text: str, names: dict[str, str]) -> str:
    for before, after in names.items():
        text = text.replace(before, after)
    return text


def past_inputs(mod: IRModule, sizes: tuple[int, int, int], seed: int = 0) -> dict[str, Array]:
    """Return random arguments for numbers of texts, of new tokens, and of past ones."""
    texts, length, past = sizes
    rng = np.random.default_rng((seed, *sizes))
    arrays: dict[str, Array] = {}
    for param in mod["main"].params:
        shape = (texts, length, 8) if param.name == "x" else (texts, 2, past, 4)
        arrays[param.name] = rng.standard_normal(shape).astype(np.float32)
    arrays["m"] = rng.integers(0, 2, (texts, past + length))
    return arrays
