"""A decoder for a fixed number of new tokens as one for any number, which computes the same for that number.

Before, for one new token:
    def @main(%ids: Tensor[(b, 1), int64], %past: Tensor[(b, 2, p, 4), float32]) {
      Reshape(Gather(..., %ids), int64[-1, 1, 2, 4])
    }
After:
    def @main(%ids: Tensor[(b, tokens), int64], %past: Tensor[(b, 2, p, 4), float32]) {
      Reshape(Gather(..., %ids), int64[0, -1, 2, 4])
    }

Exporters write sizes that are fixed as numbers into Reshape. Such a number becomes -1 where the result has
the same shape for the fixed number; what the program computes for others is of no account.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Dim,
    Expr,
    Function,
    SymbolicDim,
    TensorType,
    Var,
    post_order,
    with_fields,
)
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.decoding.growing_cache import GrowingCache
from intarsia.passes.decoding.length_values import bound_twins, token_inputs
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dims_of, operator_name, static_shape_of
from intarsia.support.errors import InvalidModelError

_PAST: Final = 11
_TEXTS: Final = 3
"""Numbers of past tokens and of texts for which shapes are compared."""


def with_counted_tokens(function: Function, cache: GrowingCache, symbol: SymbolicDim) -> Function:
    """Return the function with a symbol for its number of new tokens.

    Args:
        function: Decoder for a fixed number of new tokens.
        cache: Its cache.
        symbol: Symbol that the function does not have.

    Raises:
        InvalidModelError: Types do not fit for another number of tokens.
    """
    twins = bound_twins(function, cache)
    renamed = {param: _with_symbol(param, axis, symbol) for param, axis in token_inputs(function, cache)}

    def rule(node: Expr, current: Expr) -> Expr:
        if isinstance(node, Var):
            return renamed.get(node, current)
        if operator_name(node) != "Reshape" or not isinstance(node, Call) or not isinstance(current, Call):
            return current
        before, after = static_shape_of(twins[node.args[0]]), static_shape_of(twins[node])
        target, dims = node.args[1], dims_of(current.args[0]) or ()
        if not isinstance(target, Constant) or before is None or after is None or symbol not in dims:
            return current
        shape = _target(target.data.tolist(), before, after, dims.index(symbol))
        return current if shape is None else call("Reshape", current.args[0], Constant(shape), span=node.span)

    done: dict[Expr, Expr] = {}
    rewritten = rewrite_original(function, rule, done.__setitem__)
    params = tuple(renamed.get(param, param) for param in function.params)
    result = typed(with_fields(rewritten, params=params, checked_type=None))
    assert isinstance(result, Function)
    if not renamed or not renamed.keys().isdisjoint(post_order(result.body)):
        raise InvalidModelError("the program is for a fixed number of tokens")
    _require_same_shapes(function, result, cache, symbol, done)
    return result


def _require_same_shapes(
    before: Function, after: Function, cache: GrowingCache, symbol: SymbolicDim, done: Mapping[Expr, Expr]
) -> None:
    """Compare the results of Reshape for several texts.

    Raises:
        InvalidModelError: They differ.
    """
    sizes: dict[SymbolicDim, Dim] = dict.fromkeys(cache.all_sizes(before, _PAST, 1), _TEXTS)
    sizes |= cache.sizes(_PAST, 1) | {symbol: cache.new}
    twins = [
        dict(zip(post_order(item), post_order(bind_function(item, sizes)), strict=True))
        for item in (before, after)
    ]
    for node in post_order(before):
        if operator_name(node) == "Reshape":
            shapes = [
                static_shape_of(twin[item]) for twin, item in zip(twins, (node, done[node]), strict=True)
            ]
            if shapes[0] != shapes[1]:
                raise InvalidModelError("a Reshape is for a fixed number of tokens, or for one text")


def _with_symbol(param: Var, axis: int, symbol: SymbolicDim) -> Var:
    type_ = param.checked_type
    assert isinstance(type_, TensorType)
    dims: list[Dim] = list(type_.shape or ())
    dims[axis] = symbol
    return with_fields(param, checked_type=TensorType(tuple(dims), type_.dtype))


def _target(
    target: list[int], before: tuple[int, ...], after: tuple[int, ...], axis: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
    """Return the target of a Reshape with -1 for the axis of the tokens; None if that axis is not known.

    Args:
        target: The target, with numbers for all axes but one that is -1, or 0.
        before: Shape of what is reshaped.
        after: Shape of the result.
        axis: Axis of the tokens in what is reshaped.
    """
    same = [
        at
        for at, extent in enumerate(after)
        if extent == before[axis] and prod(after[:at]) == prod(before[:axis]) and target[at] == extent
    ]
    if not same or any(extent == 0 for extent in target[axis + 1 :]):
        return None
    at = min(same, key=lambda item: abs(item - axis))
    # Leading axes that stay are 0: the number of texts may be a symbol.
    shape = [
        0 if other < min(at, axis) and before[other] == extent else extent
        for other, extent in enumerate(after)
    ]
    shape[at] = -1
    return np.array(shape, np.int64)
