"""A layer of a decoder that attends to the tokens of other texts, whose number is another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from tests.onnx_models import model_of

from intarsia.runtime.kernel import Array

WIDTH: Final = 12
HEADS: Final = (1, 2, 3)
MASKS: Final = {
    "none": "s = Identity (s0) ",
    "added": "f = Cast <to = 1> (m) n = Sub (one, f) r = Mul (n, low) ex = Unsqueeze (r, axes) "
    "s = Add (s0, ex) ",
    "replaced": "f = Cast <to = 9> (m) ex = Unsqueeze (f, axes) s = Where (ex, s0, lowest) ",
    "expanded": "f = Cast <to = 9> (m) ex = Unsqueeze (f, axes) z = Shape (s0) "
    "b = Slice (z, zero, one1, zero) "
    "c = Slice (z, two, four, zero) l = Concat <axis = 0> (b, one1, c) w = Expand (ex, l) "
    "g = Where (w, nothing, low) s = Add (s0, g) ",
    "gathered": "f = Cast <to = 9> (m) b = Shape <start = 0, end = 1> (m) c = Shape <start = 1, end = 2> (m) "
    "b0 = Squeeze (b) c0 = Squeeze (c) b1 = Range (zero0, b0, one0) c1 = Range (zero0, c0, one0) "
    "b2 = Unsqueeze (b1, behind) c2 = Unsqueeze (c1, front) b3 = Max (b2, c2) z = Shape (b3) "
    "b4 = Expand (b2, z) c4 = Expand (c2, z) b5 = Unsqueeze (b4, last) c5 = Unsqueeze (c4, last) "
    "i = Concat <axis = -1> (b5, c5) w = GatherND (f, i) s = Where (w, s0, lowest) ",
}
"""Ways to hide tokens of the other texts, from scores s0 to s."""
_SPLIT: Final = (
    "{q}0 = MatMul ({x}, {w}) {q}1 = Reshape ({q}0, split) {q} = Transpose <perm = [0, 2, 1, 3]> ({q}1) "
)
_ATTEND: Final = "p = Softmax <axis = -1> (s) o = MatMul (p, v) "
_JOIN: Final = "t = Transpose <perm = [0, 2, 1, 3]> (o) u = Reshape (t, joined) y = MatMul (u, wo) "


def decoder_model(
    mask: str = "added", heads: int = 2, seed: int = 0, texts: str = "texts", *, is_causal: bool = True
) -> Any:
    """Return a model: x (texts, steps, 12), e (texts, length, 12) and m (texts, length) to y.

    Tokens attend to each other, and then to those of e; what they compute is added to them.

    Args:
        mask: Name in `MASKS`.
        heads: Number of heads.
        seed: Seed of the weights.
        texts: Number of texts, or the name of the dimension.
        is_causal: Whether tokens see only those before them.
    """
    generator = np.random.default_rng(seed)
    names = ("wq", "wk", "wv", "wo", "uq", "uk", "uv")
    weights: dict[str, Any] = {
        name: generator.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 2 for name in names
    }
    triangle = "h0 = Shape <start = 1, end = 2> (x) h = Concat <axis = 0> (h0, h0) "
    triangle += (
        "j = Expand (one, h) k9 = Trilu <upper = 0> (j) k8 = Cast <to = 9> (k9) s = Where (k8, s0, low) "
    )
    own = [_SPLIT.format(q=q, x="x", w=w) for q, w in (("q", "uq"), ("k", "uk"), ("v", "uv"))]
    own += ["kt = Transpose <perm = [0, 1, 3, 2]> (k) s0 = MatMul (q, kt) "]
    own += [triangle if is_causal else "s = Identity (s0) ", _ATTEND, _JOIN]
    other = [
        _SPLIT.format(q=q, x=x, w=w) for q, x, w in (("q", "a", "wq"), ("k", "e", "wk"), ("v", "e", "wv"))
    ]
    other += [
        "kt = Transpose <perm = [0, 1, 3, 2]> (k) r0 = MatMul (q, kt) s0 = Mul (r0, half) ",
        MASKS[mask],
    ]
    other += [_ATTEND, _JOIN]
    body = _renamed("".join(own), "own") + "a = Add (x, y_own) "
    body += _renamed("".join(other), "other") + "y = Add (a, y_other) "
    graph = (
        f"g (float[{texts}, steps, {WIDTH}] x, float[{texts}, length, {WIDTH}] e, int64[{texts}, length] m) "
        f"=> (float[{texts}, steps, {WIDTH}] y) {{ {body} }}"
    )
    arrays: dict[str, Any] = {**weights, **_CONSTANTS, "split": np.array([0, 0, heads, WIDTH // heads])}
    return model_of(graph, opset=18, **arrays)


def decoder_inputs(texts: int, steps: int, length: int, seed: int = 0) -> dict[str, Array]:
    """Return inputs; the first token of each text is visible, and others are not."""
    generator = np.random.default_rng(seed)
    mask = generator.integers(0, 2, (texts, length))
    mask[:, 0] = 1
    return {
        "x": generator.standard_normal((texts, steps, WIDTH)).astype(np.float32),
        "e": generator.standard_normal((texts, length, WIDTH)).astype(np.float32),
        "m": mask.astype(np.int64),
    }


def _renamed(body: str, suffix: str) -> str:
    """Return nodes with a suffix at the names of their values, but for inputs, weights and constants."""
    kept = {"x", "e", "m", "a", *_CONSTANTS, "split", "wq", "wk", "wv", "wo", "uq", "uk", "uv"}
    words: Sequence[str] = body.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    named = [
        f"{word}_{suffix}" if _is_value(words, at) and word not in kept else word
        for at, word in enumerate(words)
    ]
    return " ".join(named) + " "


def _is_value(words: Sequence[str], at: int) -> bool:
    """Whether a word names a value: it is no attribute, number, operator or sign."""
    word, behind = words[at], words[at + 1] if at + 1 < len(words) else ""
    before = words[max(at - 9, 0) : at]
    depth = [item for item in before if "<" in item or ">" in item]
    is_attribute = bool(depth) and "<" in depth[-1] and ">" not in depth[-1]
    return word[0].islower() and not is_attribute and (behind != "<")


_CONSTANTS: Final[dict[str, Array]] = {
    "joined": np.array([0, 0, WIDTH], np.int64),
    "low": np.array(-10000, np.float32),
    "lowest": np.array(np.finfo(np.float32).min, np.float32),
    "one": np.array(1, np.float32),
    "half": np.array(0.5, np.float32),
    "nothing": np.array(0, np.float32),
    "axes": np.array([1, 2], np.int64),
    "zero": np.array([0], np.int64),
    "one1": np.array([1], np.int64),
    "two": np.array([2], np.int64),
    "four": np.array([4], np.int64),
    "last": np.array([-1], np.int64),
    "behind": np.array([1, 2, 3], np.int64),
    "front": np.array([0, 1, 2], np.int64),
    "zero0": np.array(0, np.int64),
    "one0": np.array(1, np.int64),
}
