"""A program on any number of tokens as one that computes each token by itself, but for attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    Op,
    SymbolicDim,
    TensorType,
    Tuple,
    Var,
    post_order,
    with_fields,
)
from intarsia.ir.rule_errors import expression_name
from intarsia.passes.batches.independent_items import SHAPE_ARGUMENTS, independence_obstacle
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dims_of
from intarsia.passes.tokens.joined_attention import with_joined_attention
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins
from intarsia.support.errors import InvalidModelError
from intarsia.support.free_names import NameSupply


class MixedTokensError(Exception):
    """A program does more with its tokens than to compute each by itself and to attend."""


@dataclass(frozen=True, slots=True)
class TokenProgram:
    """A program whose tokens are computed by themselves, but for token_attention.

    Attributes:
        function: The program, for any number of tokens. Behind its parameters stand those for `tables`.
        tables: Values that depend on the number of tokens alone, such as the embeddings of positions, for the
            most tokens, one token behind another: for fewer tokens the first ones are read.
        axes: For each parameter the axis with the tokens; None if it has none.
        result_axes: Axis with the tokens of each result.
        most_tokens: Maximum number of tokens.
    """

    function: Function
    tables: tuple[Array, ...]
    axes: tuple[int | None, ...]
    result_axes: tuple[int, ...]
    most_tokens: int


def token_program(function: Function, symbol: str, most_tokens: int) -> TokenProgram:
    """Return a program on any number of tokens in the form that needs no sizes.

    Args:
        function: Typed program whose parameters have one symbolic dimension, behind axes of extent 1.
        symbol: Name of the dimension, the number of tokens.
        most_tokens: Maximum number of tokens that its kernels can run.

    Raises:
        MixedTokensError: It has no such form.
        InvalidModelError: Types do not fit.
    """
    most = _most_tokens(TokenTwins(function, symbol, most_tokens), most_tokens)
    twins = TokenTwins(with_joined_attention(TokenTwins(function, symbol, most)), symbol, most)
    tabled, tables = _with_tables(twins, symbol, most)
    axes = tuple(_axis(param, symbol) for param in tabled.params)
    carrying = {param.name: axis for param, axis in zip(tabled.params, axes, strict=True) if axis is not None}
    after = TokenTwins(tabled, symbol, most)
    twin_of = after.bound(ITEMS)
    items = twin_of[tabled]
    assert isinstance(items, Function)
    constant = {twin_of[node] for node in after.free}
    obstacle = independence_obstacle(items, carrying, any_axis=True, constant=constant)
    if obstacle is not None:
        raise MixedTokensError(obstacle)
    results = items.body.fields if isinstance(items.body, Tuple) else (items.body,)
    values = tuple(
        _tokens_first(twins, node, tabled.params[len(function.params) + at], symbol, most)
        for at, node in enumerate(tables)
    )
    return TokenProgram(tabled, values, axes, tuple(map(_items_axis, results)), most)


def _with_tables(twins: TokenTwins, symbol: str, most: int) -> tuple[Function, list[Expr]]:
    """Return the program with parameters for what depends on the number of tokens alone, and these values."""
    wanted: dict[Expr, Var] = {}
    names = NameSupply(param.name for param in twins.function.params)
    for node in post_order(twins.function.body):
        if not isinstance(node, Call) or node in twins.free or not isinstance(node.op, Op):
            continue
        shapes = SHAPE_ARGUMENTS.get(node.op.name, ()) if not node.op.domain else ()
        for position, arg in enumerate(node.args):
            if (
                arg in twins.free
                and arg not in wanted
                and position not in shapes
                and _is_sized(arg, twins, most)
            ):
                wanted[arg] = Var(names.fresh("table"), checked_type=_table_type(arg, twins, symbol, most))
    if not wanted:
        return twins.function, []
    body = rewrite_original(
        with_fields(twins.function, params=(*twins.function.params, *wanted.values()), checked_type=None),
        wanted.get,
    )
    return body, list(wanted)


def _is_sized(node: Expr, twins: TokenTwins, most: int) -> bool:
    """Return whether a free value depends on the number of tokens.

    Raises:
        MixedTokensError: It is not known.
    """
    if isinstance(node, Constant | Op | Tuple):
        return False
    first, *others = (twins.value(node, tokens) for tokens in (*LENGTHS, most))
    if first is None or any(value is None for value in others):
        raise MixedTokensError(f"{expression_name(node)} has no value that is known")
    return not all(value is not None and np.array_equal(first, value) for value in others)


def _table_type(node: Expr, twins: TokenTwins, symbol: str, most: int) -> TensorType:
    """Return the type of a value whose first tokens are the same for all numbers of tokens.

    Raises:
        MixedTokensError: It is no such value.
    """
    values = [twins.value(node, tokens) for tokens in (*LENGTHS, most)]
    first, last = values[0], values[-1]
    assert first is not None
    assert last is not None
    at = [axis for axis, extent in enumerate(first.shape) if extent == LENGTHS[0]]
    if len(at) != 1 or first.dtype.kind not in "biuf":
        raise MixedTokensError(f"{expression_name(node)} depends on the number of tokens")
    (axis,) = at
    for tokens, value in zip((*LENGTHS, most), values, strict=True):
        expected = (*first.shape[:axis], tokens, *first.shape[axis + 1 :])
        if value is None or value.shape != expected:
            raise MixedTokensError(f"{expression_name(node)} depends on the number of tokens")
        if not np.array_equal(value, last.take(range(tokens), axis)):
            raise MixedTokensError(f"{expression_name(node)} depends on the number of tokens")
    dims = tuple(
        SymbolicDim(symbol) if number == axis else extent for number, extent in enumerate(first.shape)
    )
    return TensorType(dims, DType(first.dtype.name))


def _most_tokens(twins: TokenTwins, most: int) -> int:
    """Return the largest number of tokens that the program takes: tables of positions end somewhere."""

    def fits(tokens: int) -> bool:
        try:
            twins.bound(tokens)
        except InvalidModelError:
            return False
        return True

    if fits(most):
        return most
    low, high = max(LENGTHS), most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _axis(param: Var, symbol: str) -> int | None:
    """Return the axis with the tokens; None if there is none.

    Raises:
        MixedTokensError: There are several.
    """
    dims = dims_of(param) or ()
    at = [axis for axis, dim in enumerate(dims) if isinstance(dim, SymbolicDim) and dim.name == symbol]
    if len(at) > 1:
        raise MixedTokensError(f"parameter {param.name!r} has the number of tokens in two axes")
    return at[0] if at else None


def _tokens_first(twins: TokenTwins, node: Expr, table: Var, symbol: str, most: int) -> Array:
    """Return the values of a table for the most tokens, one token behind another."""
    value, axis = twins.value(node, most), _axis(table, symbol)
    assert value is not None, "its type was made of its values"
    assert axis is not None, "it has tokens"
    return np.ascontiguousarray(np.moveaxis(value, axis, 0))


def _items_axis(node: Expr) -> int:
    """Return the axis of a result whose extent is the number of items."""
    return next(
        axis
        for axis, extent in enumerate(dims_of(node) or ())
        if isinstance(extent, int) and extent and extent % ITEMS == 0
    )
