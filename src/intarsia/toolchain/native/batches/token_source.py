"""Sources on texts of any length: the tokens are the items that kernels are compiled for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Expr, Function, SymbolicDim, TensorType, TupleType, post_order
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS, MOST_TOKENS
from intarsia.op.known_value import known_value
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.decoding.appended_cache import scattered_past, with_appended_cache
from intarsia.passes.decoding.attention_parts import with_attention_to_joined
from intarsia.passes.decoding.counted_tokens import with_counted_tokens
from intarsia.passes.decoding.growing_cache import GrowingCache, find_growing_cache
from intarsia.passes.decoding.length_values import bound_twins
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.passes.tokens import MixedTokensError, Past, TokenProgram, token_program
from intarsia.passes.tokens.token_twins import LENGTHS
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.errors import CompileError, InvalidModelError
from intarsia.toolchain.native.batches.item_region import ItemRegion, Number, SizedAxes
from intarsia.toolchain.native.region import NativeRegion
from intarsia.toolchain.onnx_port import parse_model
from intarsia.toolchain.source_function import source_function

_STATE_RANK: Final = 4
_NEW: Final = SymbolicDim("number of new tokens")
"""Symbol for new tokens whose number is fixed."""
_START: Final = 2
"""Number of the argument of TensorScatter that says where it writes."""
_MOST_LENGTHS: Final = 2
"""Number of lengths of a program that attends to the tokens of other texts."""
_TRIED_PASTS: Final = (11, 14)
_STATE_AXIS: Final = 2
"""Axis of the tokens in keys and values of the past."""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A source on texts of any length.

    Attributes:
        symbol: Name of the dimension that counts the tokens of a text.
        texts: Name of the dimension that counts texts; None if there is one text.
        past: The keys and values of earlier tokens that it is given; None if it is not given any.
        program: The program in a form whose tokens are items.
        count: Number of tokens that each call has; None if it may have any.
        source: Name of the dimension that counts tokens of other texts, those of an encoder; None without.
    """

    symbol: str
    texts: str | None
    past: Past | None
    program: TokenProgram
    count: int | None = None
    source: str | None = None

    @property
    def program_of_one(self) -> Function:
        """The program for one text of one token."""
        names = [name for name in (self.symbol, self.texts, self.source) if name is not None]
        if self.past is not None:
            names += [self.past.symbol, *([] if self.past.total is None else [self.past.total])]
        return bind_function(self.program.function, {SymbolicDim(name): 1 for name in names})

    @property
    def kinds(self) -> Sequence[ItemKind | None]:
        """Of what each parameter of the program has items; None if it has none."""
        return tuple(map(self._kind, range(len(self.program.axes))))

    def _kind(self, param: int) -> ItemKind | None:
        program = self.program
        if program.past_axes[param] is not None:
            return ItemKind.PAST
        if program.key_axes[param] is not None:
            return ItemKind.KEYS
        has_texts = program.text_axes[param] is not None
        if program.axes[param] is None:
            return ItemKind.TEXTS if has_texts else None
        is_table = param >= len(program.axes) - len(program.tables)
        has_own_rows = (self.texts is None or has_texts) and not is_table
        is_whole = is_table and self.texts is None and self.past is None
        return ItemKind.TOKENS if has_own_rows or is_whole else ItemKind.POSITIONS

    @property
    def result_kinds(self) -> Sequence[ItemKind]:
        """Of what each result has items."""
        program = self.program
        plain = [ItemKind.TEXTS if axis is None else ItemKind.TOKENS for axis in program.result_axes]
        return tuple(
            ItemKind.JOINED if at in program.joined_results else kind for at, kind in enumerate(plain)
        )

    @property
    def tables(self) -> Sequence[Array]:
        """Values of the last parameters, which the caller does not pass."""
        return self.program.tables

    def region_of_any(self, region: NativeRegion, long_begin: int) -> ItemRegion:
        """Return the region for any number of texts and tokens, given that for one of them.

        Args:
            region: Region for one token of one text.
            long_begin: Offset in its arena from which on values have an item for each key.
        """
        program, numbers = self.program, self._numbers
        texts = None if self.texts is None else numbers[ItemKind.TEXTS]
        passed = range(len(program.axes) - len(program.tables))
        length = program.tokens if self.count is None else (self.count, self.count)
        limits = [] if texts is None else [(0, MOST_ITEMS)]
        if self.source is not None:
            limits.append((1, MOST_TOKENS))  # nothing is the mean of no values
        limits.append(length)
        if self.past is not None:
            limits.append((0, program.tokens[1]))
        axes = (program.text_axes, program.axes, program.past_axes, program.key_axes)
        counted = (texts, *(numbers[kind] for kind in (ItemKind.POSITIONS, ItemKind.PAST, ItemKind.JOINED)))
        return ItemRegion(
            tuple(limits),
            tuple(numbers[kind] for kind in ItemKind),
            tuple(_sized_axes([item[at] for item in axes], counted) for at in passed),
            tuple(
                _sized_axes((0, axis, None, 2 if at in program.joined_results else None), counted)
                for at, axis in enumerate(program.result_axes)
            ),
            long_begin,
            region,
        )

    @property
    def _numbers(self) -> Mapping[ItemKind, Number]:
        """The number of items of each kind, as products of sums of texts, tokens, and past tokens."""
        texts: Number = () if self.texts is None else ((0,),)
        source = len(texts)
        length = source if self.source is None else source + 1
        past = length + 1
        keys = (length,) if self.past is None else (length, past)
        keys = keys if self.source is None else (source,)
        return {
            ItemKind.TOKENS: (*texts, (length,)),
            ItemKind.TEXTS: texts,
            ItemKind.POSITIONS: ((length,),),
            ItemKind.KEYS: (*texts, keys),
            ItemKind.JOINED: (keys,),
            ItemKind.PAST: () if self.past is None else ((past,),),
        }


def _sized_axes(axes: Sequence[int | None], numbers: Sequence[Number | None]) -> SizedAxes:
    """Return the axes of an array that have items, given the axis of each number; None where it has none."""
    factors: dict[int, Number] = {}
    for axis, number in zip(axes, numbers, strict=True):
        if axis is not None and number is not None:
            factors[axis] = (*factors.get(axis, ()), *number)
    return tuple(sorted(factors.items()))


def token_source(source: KernelSource) -> TokenSource | None:
    """Return a source as one on texts of any length.

    None if no parameter has a dimension of any size behind axes of extent 1, as (1, length, 64) has, or
    behind another one of any size, as (batch, length, 64) has.

    Raises:
        CompileError: It does more with its tokens than to compute each by itself, to attend, and to pool.
    """
    if not _may_have_tokens(source):
        return None
    function = with_attention_to_joined(source_function(source))
    grown = with_appended_cache(function)
    cache, past, count = find_growing_cache(grown), None, None
    if cache is not None and isinstance(cache.new, int):
        count = cache.new
        try:
            function = with_counted_tokens(function, cache, _NEW)
        except InvalidModelError:
            return None
        grown = with_appended_cache(function)
        cache = find_growing_cache(grown)
    if cache is not None and _appends_behind_past(function, cache):
        function, past = grown, _past(cache, (state.joined for state in cache.states))
    elif cache is not None:
        past = _past(cache, _scattered(function, cache))
    try:
        symbols = _symbols(function, past)
    except InvalidModelError:
        return None
    if symbols is None:
        return None
    texts, length, other = symbols
    try:
        program = token_program(function, length, MOST_TOKENS, texts, past, other)
        return TokenSource(length, texts, past, program, count, other)
    except (MixedTokensError, InvalidModelError) as error:
        reason = error.problem if isinstance(error, InvalidModelError) else str(error)
        refusal = CompileError(
            "native cannot compile this: it runs texts of any length token by token, but "
            + reason.replace(str(ITEMS), length),
            help=f"give the length a size: --shape {length}=128",
        )
        for note in getattr(error, "__notes__", ()):
            refusal.add_note(note)
        raise refusal from error


def _appends_behind_past(function: Function, cache: GrowingCache) -> bool:
    """Return whether new tokens are written behind the whole past, whatever the parameters are."""
    for past in _TRIED_PASTS:
        twins = bound_twins(function, cache, past)
        for node in post_order(function):
            if operator_name(node) == "TensorScatter" and isinstance(node, Call) and len(node.args) > _START:
                start = known_value(twins[node.args[_START]])
                if start is None or bool((start != past).any()):
                    return False
    return True


def _scattered(function: Function, cache: GrowingCache) -> Iterator[Expr]:
    """Yield what joins the states of a cache with new tokens, whose positions each text has of its own."""
    names = {state.past.name for state in cache.states}
    for node in post_order(function):
        past = scattered_past(node) if isinstance(node, Call) else None
        if past is not None and past.name in names:
            yield node


def _past(cache: GrowingCache, joined: Iterable[Expr]) -> Past:
    """Return the past of a program with a growing cache, given what joins it with new tokens."""
    total = cache.total
    return Past(
        cache.past.name,
        None if total is None else total.name,
        tuple(state.past.name for state in cache.states),
        frozenset(joined),
    )


def _symbols(function: Function, past: Past | None) -> tuple[str | None, str, str | None] | None:
    """Return the dimensions of the parameters that count texts, their tokens, and those of other texts.

    Return None if others are symbolic. Of two lengths the tokens are those that results have. Texts are in
    front of tokens, and all axes before and between them have an extent of 1. Keys and values of the past
    are (texts, heads, past tokens, size).
    """
    rows: list[list[tuple[int, str]]] = []
    of_past = set() if past is None else {past.symbol, past.total}
    for param in function.params:
        type_ = param.checked_type
        dims = (type_.shape if isinstance(type_, TensorType) else None) or ()
        named = [(axis, dim.name) for axis, dim in enumerate(dims) if isinstance(dim, SymbolicDim)]
        last = max((axis for axis, _ in named), default=0)
        is_state = past is not None and param.name in past.states
        if is_state and (len(dims) != _STATE_RANK or named[-1:] != [(_STATE_AXIS, past and past.symbol)]):
            return None
        if not is_state and any(isinstance(extent, int) and extent != 1 for extent in dims[:last]):
            return None
        rows.append(named)
    if any(len(row) > 2 for row in rows):
        return None
    names = {name for row in rows for _, name in row} - of_past
    pairs = {(row[0][1], row[1][1]) for row in rows if len(row) == 2 and row[1][1] not in of_past}
    if len(names) == 1 and not pairs:
        (name,) = names
        has_tokens = any(axis > 0 for row in rows for axis, item in row if item == name)
        return (None, name, None) if has_tokens else None
    firsts, lengths = {first for first, _ in pairs}, {length for _, length in pairs} or names
    if len(firsts) > 1 or names != firsts | lengths or firsts & lengths:
        return None
    texts = next(iter(firsts), None)
    if any(row[0][0] != 0 for row in rows if row and row[0][1] == texts):
        return None
    if len(lengths) == 1:
        return texts, next(iter(lengths)), None
    if len(lengths) != _MOST_LENGTHS or past is not None:
        return None
    length = _of_results(function, lengths, texts)
    return None if length is None else (texts, length, next(iter(lengths - {length})))


def _of_results(function: Function, lengths: AbstractSet[str], texts: str | None) -> str | None:
    """Return which of two dimensions the results have; None if they have none of them, or both.

    Raises:
        InvalidModelError: The program takes no such sizes.
    """
    counts = dict(zip(sorted(lengths), LENGTHS, strict=False))
    sizes = {SymbolicDim(name): count for name, count in counts.items()}
    result = bind_function(function, sizes if texts is None else sizes | {SymbolicDim(texts): 1}).result_type
    fields = result.fields if isinstance(result, TupleType) else (result,)
    extents = {dim for field in fields if isinstance(field, TensorType) for dim in field.shape or ()}
    given = [name for name, count in counts.items() if count in extents]
    return given[0] if len(given) == 1 else None


def _may_have_tokens(source: KernelSource) -> bool:
    """Return whether a parameter has a symbolic dimension behind its first axis."""
    model = parse_model(source, "native")
    weights = {tensor.name for tensor in model.graph.initializer}
    shapes = (item.type.tensor_type.shape.dim for item in model.graph.input if item.name not in weights)
    return any(dim.dim_param for shape in shapes for dim in list(shape)[1:])
