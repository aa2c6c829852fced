"""A program on texts of any length as one that computes each token by itself, but for what is among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Dim,
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
from intarsia.op.token_pool_op import POOL_OF_TOKENS
from intarsia.passes.batches.independent_items import (
    SHAPE_ARGUMENTS,
    independence_obstacle,
    is_behind_units,
)
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dims_of
from intarsia.passes.tokens.position_table import MOST_DISTANCES, ManyDistancesError
from intarsia.passes.tokens.row_order import with_rows_by_text
from intarsia.passes.tokens.token_operators import is_joined, with_token_operators
from intarsia.passes.tokens.token_twins import LENGTHS, Array, Past, TokenTwins
from intarsia.support.errors import InvalidModelError
from intarsia.support.free_names import NameSupply


class MixedTokensError(Exception):
    """A program does more with its tokens than to compute each by itself, to attend, and to pool."""


@dataclass(frozen=True, slots=True)
class TokenProgram:
    """A program whose tokens are computed by themselves, but for token_attention and token_pool.

    Attributes:
        function: The program, for any number of tokens. Behind its parameters stand those for `tables`.
        tables: Values that depend on the number of tokens alone, such as the embeddings of positions, for the
            most tokens, one token behind another: for fewer tokens the first ones are read.
        axes: For each parameter the axis with the tokens; None if it has none.
        text_axes: For each parameter the axis with the texts; None if it has none.
        past_axes: For each parameter the axis with past tokens; None if it has none.
        key_axes: For each parameter the axis with past and new tokens; None if it has none.
        result_axes: Axis with the tokens of each result; None for one value of each text, and for keys and
            values. Texts are in the first axis.
        joined_results: Positions of the results that are keys or values of the past and of new tokens.
        tokens: Least and greatest number of tokens, those of the past among them.
    """

    function: Function
    tables: tuple[Array, ...]
    axes: tuple[int | None, ...]
    text_axes: tuple[int | None, ...]
    past_axes: tuple[int | None, ...]
    key_axes: tuple[int | None, ...]
    result_axes: tuple[int | None, ...]
    joined_results: frozenset[int]
    tokens: tuple[int, int]


def token_program(
    function: Function,
    symbol: str,
    most_tokens: int,
    texts: str | None = None,
    past: Past | None = None,
    source: str | None = None,
) -> TokenProgram:
    """Return a program on any number of tokens in the form that needs no sizes.

    Args:
        function: Typed program whose parameters have a symbolic dimension for tokens, behind axes of extent
            1, or behind one for texts.
        symbol: Name of the dimension that counts the tokens of a text.
        most_tokens: Maximum number of tokens that its kernels can run.
        texts: Name of the dimension that counts texts; None if there is one text.
        past: The keys and values of earlier tokens that it is given; None if it is not given any.
        source: Name of the dimension that counts tokens of other texts, those of an encoder; None without.

    Raises:
        MixedTokensError: It has no such form.
        InvalidModelError: Types do not fit.
    """
    function = with_rows_by_text(TokenTwins(function, symbol, most_tokens, texts, past, source))
    most = _most_tokens(TokenTwins(function, symbol, most_tokens, texts, past, source), most_tokens)
    try:
        operators = with_token_operators(TokenTwins(function, symbol, most, texts, past, source))
    except ManyDistancesError:
        most = MOST_DISTANCES
        operators = with_token_operators(TokenTwins(function, symbol, most, texts, past, source))
    twins = TokenTwins(operators, symbol, most, texts, past, source)
    _refuse_counted_texts(twins)
    tabled, tables = _with_tables(twins, symbol)
    after = TokenTwins(tabled, symbol, most, texts, past, source)
    items = _refuse_mixed_tokens(after, symbol)
    if texts is not None:
        _refuse_mixed_texts(after, texts)
    if past is not None or source is not None:
        _refuse_mixed_keys(after, source if past is None else past.total)
    values = tuple(
        _tokens_first(twins, node, tabled.params[len(function.params) + at], symbol)
        for at, node in enumerate(tables)
    )
    return TokenProgram(
        tabled,
        values,
        _axes(tabled, symbol),
        _axes(tabled, texts),
        _axes(tabled, None if past is None else past.symbol),
        _axes(tabled, source if past is None else past.total),
        tuple(map(_items_axis, _results(items))),
        frozenset(at for at, result in enumerate(_results(tabled)) if is_joined(result)),
        (int(past is not None or any(map(_is_choice, post_order(tabled)))), most),
    )


def _results(function: Function) -> tuple[Expr, ...]:
    return function.body.fields if isinstance(function.body, Tuple) else (function.body,)


def _axes(function: Function, symbol: str | None) -> tuple[int | None, ...]:
    """Return the axis of a dimension in each parameter; None if it has none."""
    return tuple(None if symbol is None else _axis(param, symbol) for param in function.params)


def _carrying(function: Function, symbol: str) -> dict[str, int]:
    axes = {param.name: _axis(param, symbol) for param in function.params}
    return {name: axis for name, axis in axes.items() if axis is not None}


def _refuse_mixed_tokens(after: TokenTwins, symbol: str) -> Function:
    """Return the program on one text of `ITEMS` tokens.

    Raises:
        MixedTokensError: It mixes tokens.
    """
    twin_of = after.bound(ITEMS)
    items = twin_of[after.function]
    assert isinstance(items, Function)
    _refuse(
        independence_obstacle(
            items,
            _carrying(after.function, symbol),
            accepts=lambda result, axis: axis is None or is_behind_units(result, axis),
            examined=dict.fromkeys(twin_of[node] for node in after.free),
        )
    )
    return items


def _refuse_mixed_texts(after: TokenTwins, texts: str) -> None:
    """Refuse a program that does not compute each text by itself.

    Raises:
        MixedTokensError: It does not; the message has the name of the dimension in place of the number.
    """
    for tokens in LENGTHS[:2]:
        twin_of = after.bound(tokens, ITEMS)
        items = twin_of[after.function]
        assert isinstance(items, Function)
        # What is read was compared for several texts: it is the same for each.
        read = set(_read_values(after))
        examined = {
            twin_of[node]: _items_axis(twin_of[node]) if node in read else None for node in after.free
        }
        _refuse(independence_obstacle(items, _carrying(after.function, texts), examined=examined))


def _refuse_mixed_keys(after: TokenTwins, keys: str | None) -> None:
    """Refuse a program that does not compute by itself what belongs to each key, as masks do.

    Args:
        after: The program with operators among tokens.
        keys: Name of the dimension that counts keys; None if no parameter has it.

    Raises:
        MixedTokensError: It does not.
    """
    tokens = LENGTHS[0]
    twin_of = after.bound(tokens, past=ITEMS if after.source else ITEMS - tokens)
    items = twin_of[after.function]
    assert isinstance(items, Function)
    carrying = {} if keys is None else _carrying(after.function, keys)
    examined = dict.fromkeys(twin_of[node] for node in after.free)
    _refuse(
        independence_obstacle(
            items,
            carrying,
            accepts=lambda result, axis: axis is None or is_joined(result),
            examined=examined,
        )
    )


def _refuse(obstacle: str | None) -> None:
    if obstacle is not None:
        raise MixedTokensError(obstacle)


def _is_choice(node: Expr) -> bool:
    """Return whether an expression is the first or the last token of each text, which has to be there."""
    is_pool = isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == POOL_OF_TOKENS
    return is_pool and isinstance(node, Call) and node.attrs["mode"] in ("first", "last")


def _read_values(twins: TokenTwins) -> Iterator[Expr]:
    """Yield the free expressions whose elements others read, in order, with repetitions."""
    for node in post_order(twins.function.body):
        if not isinstance(node, Call) or node in twins.free or not isinstance(node.op, Op):
            continue
        shapes = SHAPE_ARGUMENTS.get(node.op.name, ()) if not node.op.domain else ()
        for position, arg in enumerate(node.args):
            if arg in twins.free and position not in shapes:
                yield arg


def _refuse_counted_texts(twins: TokenTwins) -> None:
    """Refuse a program that computes with the number of texts.

    Raises:
        MixedTokensError: It does.
    """
    for node in dict.fromkeys(_read_values(twins)):
        if not isinstance(node, Constant | Op | Tuple) and not twins.is_same_for_all_texts(node):
            raise MixedTokensError(f"{expression_name(node)} depends on the number of texts")


def _with_tables(twins: TokenTwins, symbol: str) -> tuple[Function, list[Expr]]:
    """Return the program with parameters for what depends on the number of tokens alone, and these values."""
    wanted: dict[Expr, Var] = {}
    names = NameSupply(param.name for param in twins.function.params)
    for node in dict.fromkeys(_read_values(twins)):
        if _is_sized(node, twins):
            wanted[node] = Var(names.fresh("table"), checked_type=_table_type(node, twins, symbol))
    if not wanted:
        return twins.function, []
    body = rewrite_original(
        with_fields(twins.function, params=(*twins.function.params, *wanted.values()), checked_type=None),
        wanted.get,
    )
    return body, list(wanted)


def _is_sized(node: Expr, twins: TokenTwins) -> bool:
    """Return whether a free value depends on the number of tokens.

    Raises:
        MixedTokensError: It is not known.
    """
    if isinstance(node, Constant | Op | Tuple):
        return False
    first, *others = (*(twins.value(node, tokens) for tokens in LENGTHS), twins.full_value(node))
    if first is None or any(value is None for value in others):
        raise MixedTokensError(f"{expression_name(node)} has no value that is known")
    return not all(value is not None and np.array_equal(first, value) for value in others)


def _table_type(node: Expr, twins: TokenTwins, symbol: str) -> TensorType:
    """Return the type of a value whose tokens are the same at the same positions for all numbers of tokens.

    Positions are counted from the first past token.

    Raises:
        MixedTokensError: It is no such value.
    """
    values, last = [twins.value(node, tokens) for tokens in LENGTHS], twins.full_value(node)
    first = values[0]
    assert first is not None
    assert last is not None
    at = [axis for axis, extent in enumerate(first.shape) if extent == LENGTHS[0]]
    refusal = MixedTokensError(f"{expression_name(node)} depends on the number of tokens")
    if len(at) != 1 or first.dtype.kind not in "biuf":
        raise refusal
    (axis,) = at
    for tokens, value in zip((*LENGTHS, twins.most), (*values, last), strict=True):
        expected = (*first.shape[:axis], tokens, *first.shape[axis + 1 :])
        if value is None or value.shape != expected:
            raise refusal
        begin = 0 if value is last else twins.past_of(tokens)
        if not np.array_equal(value, last.take(range(begin, begin + tokens), axis)):
            raise refusal
    dims: list[Dim] = list(first.shape)
    dims[axis] = SymbolicDim(symbol)
    for at_text in twins.texts_axes(node) or ():
        dims[at_text] = SymbolicDim(twins.texts or "")
    return TensorType(tuple(dims), DType(first.dtype.name))


def _most_tokens(twins: TokenTwins, most: int) -> int:
    """Return the largest number of tokens that the program takes: tables of positions end somewhere."""
    rows = [node for node in dict.fromkeys(_read_values(twins)) if twins.token_axis(node) is not None]
    rows = [node for node in rows if twins.value(node, LENGTHS[0]) is not None]
    past = None if twins.source else 0

    def fits(tokens: int) -> bool:
        try:
            twins.bound(tokens, past=past)
            return all(twins.value(node, tokens, past=past) is not None for node in rows)
        except InvalidModelError:
            return False

    if fits(most):
        return most
    low, high = max(map(twins.keys_of, LENGTHS)), most
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


def _tokens_first(twins: TokenTwins, node: Expr, table: Var, symbol: str) -> Array:
    """Return the values of a table for the most tokens, one token behind another."""
    value, axis = twins.full_value(node), _axis(table, symbol)
    assert value is not None, "its type was made of its values"
    assert axis is not None, "it has tokens"
    return np.ascontiguousarray(np.moveaxis(value, axis, 0))


def _items_axis(node: Expr) -> int | None:
    """Return the axis of a result whose extent is the number of items; None if there is none."""
    sized = (
        axis
        for axis, extent in enumerate(dims_of(node) or ())
        if isinstance(extent, int) and extent and extent % ITEMS == 0
    )
    return next(sized, None)
