"""Attention, as stages: scores, bias, softmax over the keys, and the sum of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, exp, select, tanh
from intarsia.native.te.functions import max as te_max
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.concatenation import concatenated
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import clamped, scaled
from intarsia.native.te.tensor import Tensor

_DOUBLE = 11

_Bias: TypeAlias = Callable[[Expression, Expression, Expression, Expression], Expression]
"""Function from batch, head, query and key to the summand of the score."""

_MASK, _PAST_KEY = 3, 4
_LENGTHS: Final = 6
"""Position of the argument with the number of keys of each batch that are no padding."""


@compute_rule("Attention")
@in_float32
def attention(call: ComputeCall) -> Sequence[Tensor]:
    """Declare attention (A. Vaswani et al., 2017): grouped heads, caches, masks, windows, soft caps."""
    if call.attrs.get("softmax_precision") == _DOUBLE and call.output_type.dtype.value != "float64":
        raise call.not_covered("a softmax in float64")
    has_heads = len(call.input(0).shape) == 4
    query = call.input(0) if has_heads else _heads(call, 0, call.integer("q_num_heads"), f"{call.name}.q")
    key, value = _cached(call, 1, 4), _cached(call, 2, 5)
    call.refuse_beyond(_LENGTHS, key.shape[2], "the length")
    scores = _Scores.of(call, query, key)
    weights = scores.softmax()
    result = _weighted(call, weights, value, has_heads)
    inspected = [scores.raw, scores.capped, scores.biased, weights][call.integer("qk_matmul_output_mode", 0)]
    copies = [(key, "out1.copy"), (value, "out2.copy"), (inspected, "out3")]
    return [result, *(_named(x, f"{call.name}.{name}") for x, name in copies)][: len(call.output_types)]


def _heads(call: ComputeCall, position: int, heads: int, name: str) -> Tensor:
    """Return [batch, step, heads * size] as [batch, head, step, size]."""
    x = call.input(position)
    size = x.shape[2] // heads
    return compute((x.shape[0], heads, x.shape[1], size), lambda b, h, s, e: x[b, s, h * size + e], name)


def _cached(call: ComputeCall, position: int, past: int) -> Tensor:
    """Return keys or values with heads, appended to those of the past."""
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
        capped: Scaled products within the soft cap.
        biased: Capped scores with the bias.
        bias: Sum of masks, or None without one.
    """

    name: str
    raw: Tensor
    capped: Tensor
    biased: Tensor
    bias: _Bias | None

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
        bias = _bias_of(call, queries, keys, query.dtype)
        if bias is None:
            return cls(name, raw, capped, capped, None)
        biased = compute(shape, lambda b, h, i, j: capped[b, h, i, j] + bias(b, h, i, j), f"{name}.biased")
        return cls(name, raw, capped, biased, bias)

    def softmax(self) -> Tensor:
        """Return the weights of the keys, which are 0 for a query that may attend to no key."""
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
            # All keys may be masked out: the sum is 0 then, and the quotient would be NaN.
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
    """Return the values of the keys by weight, with the heads where the query has them."""
    heads, size = weights.shape[1], value.shape[3]
    repeats = max(1, heads // max(1, value.shape[1]))
    axis = reduce_axis(weights.shape[3], "rj")
    j = axis.expression

    def product(b: Expression, h: Expression, i: Expression, e: Expression) -> Expression:
        return weights[b, h, i, j] * value[b, h if repeats == 1 else h // repeats, j, e]

    if has_heads:
        return compute(call.shape, lambda *i: te_sum(product(*i), axis), call.name)
    return compute(call.shape, lambda b, i, c: te_sum(product(b, c // size, i, c % size), axis), call.name)


def _bias_of(call: ComputeCall, queries: int, keys: int, dtype: DType) -> _Bias | None:
    """Return the sum of mask, causality, window and lengths; None if there is none of them.

    Args:
        call: Call of Attention.
        queries: Number of queries in this block.
        keys: Number of keys, including past ones.
        dtype: Element type of the scores.
    """
    parts = [_mask_bias(call, keys, dtype)] if call.has_input(_MASK) else []
    parts += _reach_bias(call, queries, dtype)
    parts += [_padding_bias(call, dtype)] if call.has_input(_LENGTHS) else []
    if not parts:
        return None

    def bias(b: Expression, h: Expression, i: Expression, j: Expression) -> Expression:
        total = parts[0](b, h, i, j)
        for part in parts[1:]:
            total = total + part(b, h, i, j)
        return total

    return bias


def _allowed(is_allowed: Expression, dtype: DType) -> Expression:
    return select(is_allowed, const(0, dtype), -math.inf)


def _mask_bias(call: ComputeCall, keys: int, dtype: DType) -> _Bias:
    """Return the mask as a bias; keys beyond a shorter mask are masked out."""
    mask = call.input(_MASK)
    masked_keys = mask.shape[-1]

    def bias(b: Expression, h: Expression, i: Expression, j: Expression) -> Expression:
        key = clamped(j, masked_keys) if masked_keys < keys else j
        value = element_at(mask, (b, h, i, key)) if masked_keys else const(0, dtype)
        value = _allowed(value, dtype) if value.dtype is DType.BOOL else value.astype(dtype)
        return value if masked_keys >= keys else select(j < masked_keys, value, -math.inf)

    return bias


def _reach_bias(call: ComputeCall, queries: int, dtype: DType) -> list[_Bias]:
    """Return the biases of causality and windows, counted from the query's position among all keys."""

    def distance(b: Expression, i: Expression, j: Expression) -> Expression:
        if call.has_input(_PAST_KEY):
            return scaled(i, 1, call.input(_PAST_KEY).shape[2]) - j
        if call.has_input(_LENGTHS):
            return i + call.input(_LENGTHS)[b].astype(DType.INT64) - queries - j
        return i - j

    biases: list[_Bias] = []
    behind, ahead = call.integer("left_window_size", -1), call.integer("right_window_size", -1)
    if call.integer("is_causal", 0):
        biases.append(lambda b, _, i, j: _allowed(distance(b, i, j) >= 0, dtype))
    if behind >= 0:
        biases.append(lambda b, _, i, j: _allowed(distance(b, i, j) <= behind, dtype))
    if ahead >= 0:
        biases.append(lambda b, _, i, j: _allowed(distance(b, i, j) >= -ahead, dtype))
    return biases


def _padding_bias(call: ComputeCall, dtype: DType) -> _Bias:
    lengths = call.input(_LENGTHS)
    return lambda b, _, __, j: _allowed(j < lengths[b].astype(DType.INT64), dtype)
