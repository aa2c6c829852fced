"""Positions that a program computes from the length of the past, found by binding it to several lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from intarsia.ir import ANY, Call, Dim, Expr, Function, SymbolicDim, Var, post_order
from intarsia.op.known_value import known_value
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.decoding.growing_cache import GrowingCache
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, operator_name, static_shape_of
from intarsia.support.errors import InvalidModelError

_TOKENS: Final = 5
_LENGTHS: Final = (11, 14)
"""Lengths of the past at which positions are compared."""


_STARTS: Final = (97, 151)
"""Smallest sizes of two bindings; sizes of different symbols differ."""


_COMPARISONS: Final = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})


class UnknownPositionsError(Exception):
    """Positions depend on the length of the past in a way that is not an offset."""


def token_inputs(function: Function, cache: GrowingCache) -> list[tuple[Var, int]]:
    """Return the parameters with an axis that counts new tokens, and that axis.

    Where their number is fixed, tokens are the parameters (batch, tokens) of integers.
    """
    others = {cache.mask, *(state.past for state in cache.states)}
    inputs = [(param, dims_of(param) or ()) for param in function.params if param not in others]
    if not isinstance(cache.new, int):
        return [(param, dims.index(cache.new)) for param, dims in inputs if cache.new in dims]
    return [
        (param, 1)
        for param, dims in inputs
        if len(dims) == 2 and dims[1] == cache.new and _kind(param) == "i"
    ]


def result_shapes(function: Function, cache: GrowingCache) -> list[tuple[Dim, ...] | None]:
    """Return the dimensions of the results, also of those that inference does not see.

    The function is bound to two sizes of each symbol: a dimension with the sizes of a symbol both times is
    that symbol.
    """
    symbols = [*cache.all_sizes(function, 1, 1)]
    try:
        return _shapes_at(function, cache, {dim: 3 * at for at, dim in enumerate(symbols)})
    except InvalidModelError:  # a program for one text only
        return _shapes_at(function, cache, {})


def _shapes_at(
    function: Function, cache: GrowingCache, offsets: Mapping[SymbolicDim, int]
) -> list[tuple[Dim, ...] | None]:
    """Return the dimensions of the results, given what to add to the two sizes of symbols; others are 1."""
    bound, sizes = [], []
    for start in _STARTS:
        chosen = cache.all_sizes(function, 1, 1) | {dim: start + offset for dim, offset in offsets.items()}
        chosen |= cache.sizes(start // 2, start // 3)
        sizes.append(chosen)
        bound.append([dims_of(item) for item in getattr(bind_function(function, chosen).body, "fields", ())])
    by_sizes = {(sizes[0][dim], sizes[1][dim]): dim for dim in sizes[0]}
    return [
        None
        if first is None or second is None
        else tuple(
            pair[0] if pair[0] == pair[1] else by_sizes.get(pair, ANY)
            for pair in zip(first, second, strict=True)
        )
        for first, second in zip(*bound, strict=True)
    ]


def token_results(shapes: Sequence[tuple[Dim, ...] | None], cache: GrowingCache) -> dict[int, int]:
    """Return the axis that counts new tokens, by the numbers of the results that have one.

    Where their number is fixed, it is the second axis.
    """
    dims = {number: shape for number, shape in enumerate(shapes) if shape is not None and cache.new in shape}
    if isinstance(cache.new, int):
        return {number: 1 for number, shape in dims.items() if shape[1:2] == (cache.new,)}
    return {number: shape.index(cache.new) for number, shape in dims.items()}


def bound_twins(function: Function, cache: GrowingCache, past: int = _LENGTHS[0]) -> dict[Expr, Expr]:
    """Return the expressions of a function bound to sizes, by the expressions of the function.

    Args:
        function: The function.
        cache: Its cache.
        past: Number of tokens of the past.
    """
    bound = bind_function(function, cache.all_sizes(function, past, _TOKENS))
    return dict(zip(post_order(function), post_order(bound), strict=True))


def position_arguments(function: Function, cache: GrowingCache, reach: int) -> dict[Expr, int]:
    """Return the calls whose argument of this number has positions counted from the start of the past.

    They are indices of a table of numbers, or become numbers. Where their values at two lengths of the past
    differ by the difference of the lengths, they are positions.

    Args:
        function: The function.
        cache: Its growing cache.
        reach: Largest distance of two positions, with the room for the past.

    Raises:
        UnknownPositionsError: They depend on the length otherwise, or decide by distance what is visible.
    """
    nodes = list(post_order(function))
    twins = [bound_twins(function, cache, length) for length in _LENGTHS]
    depending = _depending(nodes, twins)
    for node in nodes:
        if (
            isinstance(node, Call)
            and operator_name(node) in _COMPARISONS
            and depending.intersection(node.args)
        ):
            _require_causal(node, twins[0], cache, reach)
    return {
        node: position
        for node in nodes
        if isinstance(node, Call)
        and (position := _index(node)) is not None
        and node.args[position] in depending
        and _is_shifted(node.args[position], twins)
    }


def _require_causal(node: Call, twin: Mapping[Expr, Expr], cache: GrowingCache, reach: int) -> None:
    """Refuse a comparison of positions that decides by their distance, as a sliding window does.

    Where room is not valid yet, new tokens are farther from those of the past than they should be. Only which
    is later is right: at the position of the query itself, such a comparison has a difference of 1 at most.
    A window that is wider than all positions are apart decides nothing.

    Raises:
        UnknownPositionsError: It is another one, or one with positions that are not known.
    """
    shape = static_shape_of(twin[node])
    added = cache.new if isinstance(cache.new, int) else _TOKENS
    if shape is None or not shape or shape[-1] != _LENGTHS[0] + added:
        return  # not about the keys
    left, right = (known_value(twin[arg]) for arg in node.args)
    if left is None or right is None:
        raise UnknownPositionsError
    distances = np.broadcast_to(left.astype(np.int64) - right.astype(np.int64), shape)
    rows = distances.reshape(-1, *shape[-2:]) if len(shape) > 1 else distances.reshape(1, 1, -1)
    if rows.shape[1] not in (1, added):
        raise UnknownPositionsError
    queries = range(rows.shape[1])
    at_itself = np.abs([rows[:, query, _LENGTHS[0] + query] for query in queries])
    if np.any((at_itself > 1) & (at_itself <= reach)):
        raise UnknownPositionsError


def _depending(nodes: Sequence[Expr], twins: Sequence[Mapping[Expr, Expr]]) -> set[Expr]:
    """Return the integers that are computed from the length of the past."""
    depending: set[Expr] = set()
    for node in nodes:
        if _kind(node) != "i" or not isinstance(node, Call):
            continue
        first, second = (known_value(twin[node]) for twin in twins)
        if first is None or second is None:
            is_depending = any(arg in depending for arg in _data(node))
        else:
            is_depending = first.shape != second.shape or bool(np.any(first != second))
        if is_depending:
            depending.add(node)
    return depending


def _data(node: Call) -> Sequence[Expr]:
    """Return the arguments from which a result has its elements, without those that are sizes or bounds."""
    match operator_name(node):
        case "Shape" | "Size" | "ConstantOfShape":
            return ()
        case "Slice" | "Reshape" | "Expand" | "Tile" | "Pad" | "Split":
            return node.args[:1]
        case _:
            return node.args


def _index(node: Call) -> int | None:
    """Return the argument that a call uses as numbers: indices of tables' rows, or what becomes floats."""
    match operator_name(node), [_kind(arg) for arg in node.args]:
        case "Gather", ["f", "i"]:
            return 1
        case "RotaryEmbedding", [_, "f", "f", "i"]:
            return 3
        case "Cast", ["i"] if _kind(node) == "f":
            return 0
        case _:
            return None


def _is_shifted(arg: Expr, twins: Sequence[Mapping[Expr, Expr]]) -> bool:
    """Whether an argument that depends on the length is an offset from it.

    Raises:
        UnknownPositionsError: It is not.
    """
    first, second = (known_value(twin[arg]) for twin in twins)
    if first is None or second is None or first.shape != second.shape:
        raise UnknownPositionsError
    if not np.all(second - first == _LENGTHS[1] - _LENGTHS[0]):
        raise UnknownPositionsError
    return True


def _kind(expr: Expr) -> str:
    """Return the kind of a tensor's elements, such as "i" and "f"; "" for what is no tensor."""
    dtype = dtype_of(expr)
    return "" if dtype is None else dtype.numpy.kind
