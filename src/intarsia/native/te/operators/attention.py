"""Attention, as stages: scores, bias, softmax over the keys, and the sum of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, exp, select, tanh
from intarsia.native.te.functions import max as te_max
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.operators.attention_bias import LENGTHS, Bias, bias_of
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.concatenation import concatenated
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.tensor import Tensor

_DOUBLE = 11


@compute_rule("Attention")
@in_float32
def attention(call: ComputeCall) -> Sequence[Tensor]:
    """Grouped heads, caches, masks, causality, windows and soft caps (A. Vaswani et al., 2017)."""
    if call.attrs.get("softmax_precision") == _DOUBLE and call.output_type.dtype.value != "float64":
        raise call.not_covered("a softmax in float64")
    has_heads = len(call.input(0).shape) == 4
    query = call.input(0) if has_heads else _heads(call, 0, call.integer("q_num_heads"), f"{call.name}.q")
    key, value = _cached(call, 1, 4), _cached(call, 2, 5)
    call.refuse_beyond(LENGTHS, key.shape[2], "the length")
    scores = _Scores.of(call, query, key)
    weights = scores.softmax()
    result = _weighted(call, weights, value, has_heads)
    inspected = [scores.raw, scores.capped, scores.biased, weights][call.integer("qk_matmul_output_mode", 0)]
    copies = [(key, "out1.copy"), (value, "out2.copy"), (inspected, "out3")]
    return [result, *(_named(x, f"{call.name}.{name}") for x, name in copies)][: len(call.output_types)]


def _heads(call: ComputeCall, position: int, heads: int, name: str) -> Tensor:
    """[batch, step, heads * size] as [batch, head, step, size]."""
    x = call.input(position)
    size = x.shape[2] // heads
    return compute((x.shape[0], heads, x.shape[1], size), lambda b, h, s, e: x[b, s, h * size + e], name)


def _cached(call: ComputeCall, position: int, past: int) -> Tensor:
    """Keys or values with heads, behind those of the past."""
    x, name = call.input(position), f"{call.name}.out{position}"
    if len(x.shape) == 3:
        x = _heads(
            call, position, call.integer("kv_num_heads"), f"{name}.now" if call.has_input(past) else name
        )
    if call.has_input(past):
        return concatenated([call.input(past), x], 2, name)
    return x


def _named(x: Tensor, name: str) -> Tensor:
    return compute(x.shape, lambda *i: x[i], name)


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores [batch, head, query, key] before and after each step.

    Attributes:
        name: Prefix of the stages.
        raw: Scaled products.
        capped: The same within the soft cap.
        biased: With the bias.
        bias: None if nothing is added.
    """

    name: str
    raw: Tensor
    capped: Tensor
    biased: Tensor
    bias: Bias | None

    @classmethod
    def of(cls, call: ComputeCall, query: Tensor, key: Tensor) -> _Scores:
        batch, heads, queries, size = query.shape
        keys, name = key.shape[2], call.name
        repeats = max(1, heads // max(1, key.shape[1]))
        scale = call.real("scale", 1 / math.sqrt(size) if size else 1.0)
        axis = reduce_axis(size, "re")
        e = axis.expression

        def product(b: Expression, h: Expression, i: Expression, j: Expression) -> Expression:
            return query[b, h, i, e] * key[b, h if repeats == 1 else h // repeats, j, e]

        shape = (batch, heads, queries, keys)
        products = compute(shape, lambda *i: te_sum(product(*i), axis), f"{name}.products")
        raw = compute(shape, lambda *i: products[i] * scale, f"{name}.scores")
        capped, cap = raw, call.real("softcap", 0.0)
        if cap > 0:
            capped = compute(shape, lambda *i: tanh(raw[i] / cap) * cap, f"{name}.capped")
        bias = bias_of(call, queries, keys, query.dtype)
        if bias is None:
            return cls(name, raw, capped, capped, None)
        biased = compute(shape, lambda b, h, i, j: capped[b, h, i, j] + bias(b, h, i, j), f"{name}.biased")
        return cls(name, raw, capped, biased, bias)

    def softmax(self) -> Tensor:
        """The weights of the keys, which are 0 for a query that may look nowhere."""
        *rows, keys = self.biased.shape
        x, bias = self.biased, self.bias
        axes = [reduce_axis(keys, "rj") for _ in range(3)]
        largest = compute(rows, lambda *i: te_max(x[(*i, axes[0].expression)], axes[0]), f"{self.name}.max")
        powers = compute(x.shape, lambda *i: exp(x[i] - _finite(largest[i[:-1]])), f"{self.name}.exp")
        total = compute(
            rows, lambda *i: te_sum(powers[(*i, axes[1].expression)], axes[1]), f"{self.name}.total"
        )

        def share(*i: Expression) -> Expression:
            whole = total[i[:-1]]
            return powers[i] / select(equal(whole, 0.0), const(1, whole.dtype), whole)

        if bias is None:
            return compute(x.shape, share, f"{self.name}.weights")
        j = axes[2].expression
        reach = compute(rows, lambda b, h, i: te_max(bias(b, h, i, j), axes[2]), f"{self.name}.reach")
        return compute(
            x.shape,
            lambda *i: select(equal(reach[i[:-1]], -math.inf), 0.0, share(*i)),
            f"{self.name}.weights",
        )


def _finite(x: Expression) -> Expression:
    return select(equal(x, -math.inf), const(0, x.dtype), x)


def _weighted(call: ComputeCall, weights: Tensor, value: Tensor, has_heads: bool) -> Tensor:
    """The values of the keys by weight, with the heads where the query has them."""
    heads, size = weights.shape[1], value.shape[3]
    repeats = max(1, heads // max(1, value.shape[1]))
    axis = reduce_axis(weights.shape[3], "rj")
    j = axis.expression

    def product(b: Expression, h: Expression, i: Expression, e: Expression) -> Expression:
        return weights[b, h, i, j] * value[b, h if repeats == 1 else h // repeats, j, e]

    if has_heads:
        return compute(call.shape, lambda *i: te_sum(product(*i), axis), call.name)
    return compute(call.shape, lambda b, i, c: te_sum(product(b, c // size, i, c % size), axis), call.name)
