"""Attention of one text with itself: intarsia::token_attention (op/token_attention_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import exp, select
from intarsia.native.te.functions import max as te_max
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.op_attrs import (
    ATTENTION_INPUTS,
    ATTENTION_REPLACES,
    ATTENTION_SCALE,
)
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor

_BIAS, _LATER_BIAS = 3, 4


@compute_rule("intarsia::token_attention")
def token_attention(call: ComputeCall) -> Sequence[Tensor]:
    """Declare scores, softmax and weighted sums for the number of tokens of the types.

    The result's attributes say where its arguments are, so that kernels for other numbers can be written.
    """
    query, key, value = (call.input(position) for position in range(3))
    biases = [call.input(position) for position in (_BIAS, _LATER_BIAS) if call.has_input(position)]
    replaces = bool(call.integer("replaces", 0))
    _, heads, tokens, size = query.shape
    shape = (1, heads, tokens, tokens)
    axis, scale = reduce_axis(size, "re"), call.real("scale", 1.0)
    e = axis.expression
    products = compute(
        shape, lambda b, h, i, j: te_sum(query[b, h, i, e] * key[b, h, j, e], axis), f"{call.name}.products"
    )

    def score(*index: Expression) -> Expression:
        _, _, i, j = index
        scaled = products[index] * scale
        given = [element_at(bias, index, shape) for bias in biases]
        if not given:
            return scaled
        if len(given) == 1:
            return scaled + given[0]
        return select(j <= i, scaled + given[0], given[1] if replaces else scaled + given[1])

    scores = compute(shape, score, f"{call.name}.scores")
    axes = [reduce_axis(tokens, "rj") for _ in range(3)]
    largest = compute(
        shape[:3], lambda *i: te_max(scores[(*i, axes[0].expression)], axes[0]), f"{call.name}.max"
    )
    powers = compute(shape, lambda *i: exp(scores[i] - largest[i[:-1]]), f"{call.name}.exp")
    total = compute(
        shape[:3], lambda *i: te_sum(powers[(*i, axes[1].expression)], axes[1]), f"{call.name}.total"
    )
    weights = compute(shape, lambda *i: powers[i] / total[i[:-1]], f"{call.name}.weights")
    j = axes[2].expression
    inputs = tuple(tensor.op.name for tensor in (query, key, value, *biases))
    return [
        compute(
            call.shape,
            lambda b, h, i, c: te_sum(weights[b, h, i, j] * value[b, h, j, c], axes[2]),
            call.name,
            attrs={
                ATTENTION_INPUTS: inputs,
                ATTENTION_REPLACES: int(replaces),
                ATTENTION_SCALE: float(scale),
            },
        )
    ]
