"""Recognise a cache that grows with each call: results that are the past with something new behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, Dim, Expr, Function, SymbolicDim, Tuple, Var
from intarsia.passes.bind_dims import bind_function
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, int_attr, operator_name
from intarsia.support.errors import InvalidModelError

_TRIED: Final = ((11, 5), (14, 3))
"""Numbers of tokens of the past and new ones, by which it is tried what counts them."""


@dataclass(frozen=True, slots=True)
class GrowingState:
    """A parameter, and the result that is longer by the new tokens.

    Attributes:
        past: The parameter.
        result: Number of the result.
        joined: The result: Concat of the past and the new part.
        axis: Axis that counts tokens.
    """

    past: Var
    result: int
    joined: Call
    axis: int

    @property
    def new(self) -> Expr:
        """What is behind the past."""
        return self.joined.args[1]


@dataclass(frozen=True, slots=True)
class GrowingCache:
    """The growing states of a function.

    Attributes:
        states: The states, of one length.
        past: Dimension that counts tokens of the past.
        new: Dimension that counts new tokens: a symbol of a parameter, or a number.
        mask: Parameter that masks tokens of the past and new ones, if there is one.
        positions: Parameter of positions, if there is one.
    """

    states: tuple[GrowingState, ...]
    past: SymbolicDim
    new: Dim
    mask: Var | None
    positions: Var | None

    @property
    def total(self) -> SymbolicDim | None:
        """Dimension of the mask that counts all tokens, if it is a symbol."""
        dims = dims_of(self.mask) if self.mask is not None else None
        return dims[1] if dims is not None and isinstance(dims[1], SymbolicDim) else None

    def sizes(self, past: int, new: int) -> dict[SymbolicDim, Dim]:
        """Return the sizes of the dimensions for numbers of tokens of the past and new ones.

        The number of new ones is not used where the program has a fixed one.
        """
        added = self.new if isinstance(self.new, int) else new
        sizes: dict[SymbolicDim, Dim] = {self.past: past}
        if isinstance(self.new, SymbolicDim):
            sizes[self.new] = added
        return sizes | ({self.total: past + added} if self.total is not None else {})

    def all_sizes(self, function: Function, past: int, new: int) -> dict[SymbolicDim, Dim]:
        """Return sizes of all symbols of the parameters: 1 for the others, such as the batch.

        Some exporters write programs that are right for one text only.
        """
        others = {
            dim: 1
            for param in function.params
            for dim in dims_of(param) or ()
            if isinstance(dim, SymbolicDim)
        }
        return others | self.sizes(past, new)


def find_growing_cache(function: Function) -> GrowingCache | None:
    """Return the growing cache of a function, None if there is none.

    All its states have one symbolic length. The new tokens are counted by a symbol that a parameter has, or
    are a fixed number.
    """
    if not isinstance(function.body, Tuple):
        return None
    params = {id(param) for param in function.params}
    states = tuple(
        state
        for number, result in enumerate(function.body.fields)
        if (state := _growing_state(number, result)) is not None and id(state.past) in params
    )
    lengths = {(dims_of(state.past) or ())[state.axis] for state in states}
    if len(lengths) != 1 or len({id(state.past) for state in states}) < len(states):
        return None
    past = lengths.pop()
    if not isinstance(past, SymbolicDim):
        return None
    inputs = [param for param in function.params if all(param is not state.past for state in states)]
    if any(past in (dims_of(param) or ()) for param in inputs):
        return None  # a state that is not recognised would have another length than the others
    candidates = (
        GrowingCache(states, past, new, _mask(inputs, {past, new}), _positions(inputs, new))
        for new in _new_tokens(states, inputs)
    )
    return next((cache for cache in candidates if _is_right(function, cache)), None)


def _is_right(function: Function, cache: GrowingCache) -> bool:
    """Whether the states grow by the new tokens, for some numbers of them."""
    for past, new in _TRIED:
        added = cache.new if isinstance(cache.new, int) else new
        try:
            bound = bind_function(function, cache.all_sizes(function, past, new)).body
        except InvalidModelError:
            return False
        assert isinstance(bound, Tuple)
        after = [(dims_of(bound.fields[state.result]) or ())[state.axis] for state in cache.states]
        if set(after) != {past + added}:
            return False
    return True


def _growing_state(number: int, result: Expr) -> GrowingState | None:
    while operator_name(result) == "Identity":
        assert isinstance(result, Call)
        (result,) = result.args
    if operator_name(result) != "Concat":
        return None
    assert isinstance(result, Call)
    past, *rest = result.args
    dims = dims_of(past)
    if not isinstance(past, Var) or dims is None or len(rest) != 1:
        return None
    axis = int_attr(result.attrs, "axis", 0) % len(dims)
    return GrowingState(past, number, result, axis)


def _new_tokens(states: Iterable[GrowingState], inputs: Iterable[Var]) -> list[Dim]:
    """Return what may be the number of new tokens, the likely ones first.

    Inference often gives the new part a symbol of its own, so that any symbol of a parameter may be it.
    """
    sizes = [(dims_of(state.new) or ())[state.axis] for state in states]
    symbols = [dim for param in inputs for dim in dims_of(param) or () if isinstance(dim, SymbolicDim)]
    likely = [size for size in sizes if isinstance(size, int) or size in symbols]
    return list(dict.fromkeys(likely or symbols))


def _mask(inputs: Iterable[Var], others: set[Dim]) -> Var | None:
    """Return the parameter (batch, past and new tokens): its last symbol is one that nothing else has."""
    for param in inputs:
        dims = dims_of(param)
        dtype = dtype_of(param)
        if dtype is None or dtype.numpy.kind not in "biu":  # a mask of numbers may be an addend of scores
            continue
        if dims is None or len(dims) != 2 or not isinstance(dims[1], SymbolicDim) or dims[1] in others:
            continue
        if sum(dims[1] in (dims_of(other) or ()) for other in inputs) == 1 and dims[0] != dims[1]:
            return param
    return None


def _positions(inputs: Iterable[Var], new: Dim) -> Var | None:
    for param in inputs:
        dims, dtype = dims_of(param), dtype_of(param)
        is_row = dims is not None and len(dims) == 2 and dims[1] == new
        if "position" in param.name and is_row and dtype is not None and dtype.numpy.kind == "i":
            return param
    return None
