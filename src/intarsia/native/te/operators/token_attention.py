"""Attention of texts with themselves: intarsia::token_attention (op/token_attention_op)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import equal, exp, select
from intarsia.native.te.functions import max as te_max
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.op_attrs import (
    ATTENTION_ANCHOR,
    ATTENTION_CLEARS,
    ATTENTION_INPUTS,
    ATTENTION_REPLACES,
    ATTENTION_SCALE,
)
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import clamped
from intarsia.native.te.tensor import Tensor

_BIAS, _LATER_BIAS, _TABLE, _STARTS = 3, 4, 5, 6


@compute_rule("intarsia::token_attention")
def token_attention(call: ComputeCall) -> Sequence[Tensor]:
    """Declare scores, softmax and weighted sums for the number of tokens of the types.

    The result's attributes say where its arguments are, so that kernels for other numbers can be written.
    """
    query, key, value = (call.input(position) for position in range(3))
    biases = [call.input(position) for position in (_BIAS, _LATER_BIAS) if call.has_input(position)]
    table, starts = (call.input(at) if call.has_input(at) else None for at in (_TABLE, _STARTS))
    replaces, clears = (bool(call.integer(name, 0)) for name in ("replaces", "clears"))
    anchor = call.text("anchor")
    texts, heads, tokens, size = query.shape
    keys = key.shape[2]
    groups, past = heads // key.shape[1], keys - tokens
    shape = (texts, heads, tokens, keys)
    axis, scale = reduce_axis(size, "re"), call.real("scale", 1.0)
    e = axis.expression
    products = compute(
        shape,
        lambda b, h, i, j: te_sum(query[b, h, i, e] * key[b, h // groups, j, e], axis),
        f"{call.name}.products",
    )

    def score(*index: Expression) -> Expression:
        b, h, i, j = index
        scaled = products[index] * scale
        position = i + past if starts is None else i + starts[b if starts.shape[0] > 1 else 0]
        if table is not None:
            column = {
                "first": j,
                "last": j + (table.shape[1] - keys),
                "query": j - position + table.shape[1] // 2,
            }[anchor]
            scaled = scaled + table[h if table.shape[0] > 1 else 0, clamped(column, table.shape[1])]
        given = [element_at(bias, index, shape) for bias in biases]
        if not given:
            return scaled
        if len(given) == 1:
            return scaled + given[0]
        return select(j <= position, scaled + given[0], given[1] if replaces else scaled + given[1])

    scores = compute(shape, score, f"{call.name}.scores")
    axes = [reduce_axis(keys, "rj") for _ in range(3)]
    largest = compute(
        shape[:3], lambda *i: te_max(scores[(*i, axes[0].expression)], axes[0]), f"{call.name}.max"
    )
    powers = compute(
        shape,
        lambda *i: exp(scores[i] - (_finite if clears else _itself)(largest[i[:-1]])),
        f"{call.name}.exp",
    )
    total = compute(
        shape[:3], lambda *i: te_sum(powers[(*i, axes[1].expression)], axes[1]), f"{call.name}.total"
    )
    weights = compute(
        shape,
        lambda *i: powers[i] / (_not_zero if clears else _itself)(total[i[:-1]]),
        f"{call.name}.weights",
    )
    j = axes[2].expression
    given = (query, key, value, *[*biases, None, None][:2], table, starts)
    inputs = tuple("" if tensor is None else tensor.op.name for tensor in given)
    return [
        compute(
            call.shape,
            lambda b, h, i, c: te_sum(weights[b, h, i, j] * value[b, h // groups, j, c], axes[2]),
            call.name,
            attrs={
                ATTENTION_INPUTS: inputs,
                ATTENTION_ANCHOR: anchor,
                ATTENTION_CLEARS: int(clears),
                ATTENTION_REPLACES: int(replaces),
                ATTENTION_SCALE: float(scale),
            },
        )
    ]


def _finite(x: Expression) -> Expression:
    return select(equal(x, -math.inf), 0.0, x)


def _not_zero(x: Expression) -> Expression:
    return select(equal(x, 0.0), 1.0, x)


def _itself(x: Expression) -> Expression:
    return x
