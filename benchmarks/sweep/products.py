"""Matrix products with one constant or two variable matrices, attention, and recurrent layers."""

from __future__ import annotations

from math import prod
from typing import Final

from benchmarks.sweep.case import Case, Sizes, Value
from benchmarks.sweep.parts import (
    activation,
    attention,
    causal_mask,
    join_heads,
    linear,
    repeat_heads,
    split_heads,
)
from benchmarks.sweep.writer import Layer, LayerWriter

_LONGEST: Final = 8192
_EPILOGUES: Final = {"none": 0.2, "bias": 0.3, "gelu": 0.15, "relu": 0.15, "silu": 0.05, "residual": 0.15}
_WIDTHS: Final = (64, 128, 256, 384, 512, 768, 1024, 1280, 1536, 2048, 3072, 4096, 8192)
_LENGTHS: Final = (49, 64, 77, 128, 197, 256, 384, 512, 1024)
"""Lengths of sequences that published networks use."""
_HEADS: Final = {16: 1, 24: 0.5, 32: 3, 40: 0.5, 48: 0.5, 64: 6, 72: 0.5, 80: 1, 96: 1, 128: 2}
"""Relative frequencies of the widths of heads."""
_SMALL: Final = 16
"""Rows below which a product is bound by reading the other matrix."""
_LONG_SUM: Final = 4096


def _width(sizes: Sizes, high: int = _LONGEST) -> int:
    usual = [width for width in _WIDTHS if width <= high]
    return sizes.choose(usual) if sizes.flip(0.5) else sizes.between(1, high)


def draw_constant_product(sizes: Sizes) -> dict[str, Value]:
    """Draw a product with a constant matrix."""
    rows = sizes.between(1, 16) if sizes.flip(0.3) else sizes.between(1, _LONGEST)
    written = sizes.choose(("matmul", "gemm", "gemm-tb", "gemm-ta"), (6, 1.5, 2, 0.5))
    return {
        "n": sizes.batch() if written == "matmul" else 1,
        "m": rows,
        "k": _width(sizes),
        "cols": _width(sizes),
        "as": written,
        "then": sizes.choose(tuple(_EPILOGUES), tuple(_EPILOGUES.values())),
    }


def write_constant_product(case: Case) -> Layer:
    """Write a product with a constant matrix and what follows it."""
    net, then, written = LayerWriter(), case.word("then"), case.word("as")
    batch, rows, terms, columns = (case.count(name) for name in ("n", "m", "k", "cols"))
    if written == "matmul":
        x = net.input((batch, rows, terms) if batch > 1 else (rows, terms))
        result = linear(net, x, columns, bias=then != "none")
    else:
        turned = {"transA": int(written == "gemm-ta"), "transB": int(written == "gemm-tb")}
        x = net.input((terms, rows) if turned["transA"] else (rows, terms))
        weight = net.weight((columns, terms) if turned["transB"] else (terms, columns), terms)
        bias = [net.weight((columns,), 1)] if then != "none" else []
        result = net.node("Gemm", x, weight, *bias, **turned)
    if then == "residual":
        return net.finish(net.node("Add", result, net.input(net.shape(result))))
    return net.finish(activation(net, result, "none" if then == "bias" else then))


def draw_variable_product(sizes: Sizes) -> dict[str, Value]:
    """Draw a product of two variable matrices, or of batches of them."""
    lead = sizes.choose(((), (1,), (2,), (12,)), (4, 1, 2, 2)) or ()
    if lead:
        lead = (sizes.between(1, 16), lead[0]) if sizes.flip(0.7) else (sizes.between(1, 64),)
    high = 2048 if lead else _LONGEST
    return {
        "lead": lead or (1,),
        "m": sizes.between(1, 8) if sizes.flip(0.2) else sizes.between(1, high),
        "k": sizes.choose((32, 64, 80, 128)) if sizes.flip(0.3) else sizes.between(1, high),
        "cols": sizes.between(1, high),
        "turned": sizes.choose(("none", "a", "b", "ab"), (5, 1, 3, 0.5)),
        "shared": int(bool(lead) and sizes.flip(0.15)),
        "then": sizes.choose(("none", "bias", "softmax"), (7, 2, 1)),
    }


def write_variable_product(case: Case) -> Layer:
    """Write a product of two variable matrices and what follows it."""
    net, turned, lead = LayerWriter(), case.word("turned"), case.counts("lead")
    rows, terms, columns = (case.count(name) for name in ("m", "k", "cols"))
    lead = () if lead == (1,) else lead
    right = (1,) * len(lead) if case.count("shared") else lead
    swap = (*range(len(lead)), len(lead) + 1, len(lead))
    a = net.input((*lead, terms, rows) if "a" in turned else (*lead, rows, terms))
    b = net.input((*right, columns, terms) if "b" in turned else (*right, terms, columns))
    if "a" in turned:
        a = net.node("Transpose", a, perm=swap)
    if "b" in turned:
        b = net.node("Transpose", b, perm=swap)
    result = net.node("MatMul", a, b)
    match case.word("then"):
        case "bias":
            result = net.node("Add", result, net.input((columns,)))
        case "softmax":
            result = net.node("Softmax", result, axis=-1)
    return net.finish(result)


def product_properties(case: Case) -> list[str]:
    """Return what may make a product slow, most specific first."""
    rows, terms, columns = (case.count(name) for name in ("m", "k", "cols"))
    is_single = case.family == "variable-product" and case.counts("lead") == (1,)
    all_rows = rows * case.count("n") if "n" in case.values else rows
    named = {
        "one row": all_rows == 1,
        "under 16 rows": 1 < all_rows < _SMALL,
        "one column": columns == 1,
        "under 16 columns": 1 < columns < _SMALL,
        "sums of under 16": terms < _SMALL,
        "sums of over 4,096": terms > _LONG_SUM,
        "transposed": case.values.get("turned", "none") != "none" or case.values.get("as") == "gemm-ta",
        "shared matrix": bool(case.values.get("shared", 0)),
        "two matrices": is_single,
        "batched": case.family == "variable-product" and not is_single,
        "odd width": bool(terms % _SMALL or columns % _SMALL),
        "over 256 rows": all_rows > 256,
        f"then {case.word('then')}": True,
    }
    return [name for name, holds in named.items() if holds]


def draw_attention(sizes: Sizes) -> dict[str, Value]:
    """Draw an attention layer: full, causal, padded, with a bias, with grouped keys and values."""
    heads = sizes.choose((1, 2, 4, 6, 8, 12, 16, 32))
    length = sizes.choose(_LENGTHS) if sizes.flip(0.6) else sizes.between(4, 2048)
    divisors = [count for count in (1, 2, 4, 8) if heads % count == 0]
    return {
        "n": sizes.batch(),
        "heads": heads,
        "shared": sizes.choose(divisors) if sizes.flip(0.3) else 1,
        "queries": 1 if sizes.flip(0.15) else length,
        "keys": length if sizes.flip(0.8) else sizes.between(4, 2048),
        "head": sizes.choose(tuple(_HEADS), tuple(_HEADS.values())),
        "mask": sizes.choose(("none", "causal", "padding", "bias"), (4, 3, 2, 1)),
        "layout": sizes.choose(("heads", "width"), (1, 2)),
    }


def write_attention(case: Case) -> Layer:
    """Write an attention layer; in layout `width`, heads are split and joined as well."""
    net, heads = LayerWriter(), case.count("heads")
    batch, queries, keys, head = (case.count(name) for name in ("n", "queries", "keys", "head"))
    kept = heads // case.count("shared")
    in_width = case.word("layout") == "width"
    parts = []
    for length, count in ((queries, heads), (keys, kept), (keys, kept)):
        shape = (batch, length, count * head) if in_width else (batch, count, length, head)
        x = net.input(shape)
        parts.append(split_heads(net, x, count) if in_width else x)
    query, key, value = parts
    mask = None
    match case.word("mask"):
        case "causal":
            mask = causal_mask(net, queries, keys)
        case "padding":
            mask = net.input((batch, 1, 1, keys))
        case "bias":
            mask = net.weight((1, heads, queries, keys), 1)
    times = case.count("shared")
    result = attention(net, query, repeat_heads(net, key, times), repeat_heads(net, value, times), mask)
    return net.finish(join_heads(net, result) if in_width else result)


def attention_properties(case: Case) -> list[str]:
    """Return what may make an attention layer slow, most specific first."""
    named = {
        "one query": case.count("queries") == 1,
        "grouped keys": case.count("shared") > 1,
        "head no multiple of 16": bool(case.count("head") % _SMALL),
        "under 64 keys": case.count("keys") < 64,
        "over 512 keys": case.count("keys") > 512,
        f"mask {case.word('mask')}": True,
        f"layout {case.word('layout')}": True,
        "batch": case.count("n") > 1,
    }
    return [name for name, holds in named.items() if holds]


def draw_recurrent(sizes: Sizes) -> dict[str, Value]:
    """Draw an LSTM or GRU."""
    return {
        "cell": sizes.choose(("LSTM", "GRU")),
        "steps": sizes.between(2, 256),
        "n": sizes.batch(),
        "inputs": sizes.channels(),
        "hidden": sizes.channels(),
        "both": int(sizes.flip(0.4)),
        "result": sizes.choose(("all", "last")),
    }


def write_recurrent(case: Case) -> Layer:
    """Write an LSTM or GRU."""
    net, cell, hidden = LayerWriter(), case.word("cell"), case.count("hidden")
    directions, inputs = 1 + case.count("both"), case.count("inputs")
    rows = {"LSTM": 4, "GRU": 3}[cell] * hidden
    x = net.input((case.count("steps"), case.count("n"), inputs))
    weights = [
        net.weight((directions, rows, inputs), inputs),
        net.weight((directions, rows, hidden), hidden),
        net.weight((directions, 2 * rows), 1),
    ]
    options = {"linear_before_reset": 1} if cell == "GRU" else {}
    direction = "bidirectional" if case.count("both") else "forward"
    results = net.nodes(2, cell, x, *weights, hidden_size=hidden, direction=direction, **options)
    return net.finish(results[0 if case.word("result") == "all" else 1])


def recurrent_properties(case: Case) -> list[str]:
    """Return what may make a recurrent layer slow, most specific first."""
    named = {
        case.word("cell"): True,
        "both directions": bool(case.count("both")),
        "batch": case.count("n") > 1,
        "odd width": bool(prod((case.count("inputs"), case.count("hidden"))) % _SMALL),
    }
    return [name for name, holds in named.items() if holds]
