"""Caches of a decoder: states of @main that a caller keeps between calls, of a fixed capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from intarsia.ir.expr import Function, with_fields

CACHE: Final = "cache"
"""Attribute of @main with the fields of a `Cache`, in their order."""


@dataclass(frozen=True, slots=True)
class CacheState:
    """A tensor of the past, and the output with what the call adds to it.

    Attributes:
        input: Name of the input.
        output: Name of the output: the new part only, as long as the call has tokens.
        axis: Axis of both that counts tokens.
    """

    input: str
    output: str
    axis: int


@dataclass(frozen=True, slots=True)
class Cache:
    """How @main is called as a step of a decoder.

    The inputs of the past are as long as the capacity of the caller's buffers, whose first tokens are valid.
    The mask has 1 for each valid token of the past and each new token, and 0 for the rest of the capacity.

    Attributes:
        states: States, each with room for equally many tokens.
        capacities: Numbers of tokens for which the buffers have room, ascending: a sequence that outgrows one
            moves to the next.
        chunks: Numbers of tokens of a call, ascending; any number where there is none.
        token_inputs: Name, and axis that counts new tokens, of inputs.
        token_outputs: Name, and axis that counts new tokens, of outputs.
        mask: Name of the input that masks tokens, (batch, capacity + new tokens); "" if there is none.
        positions: Name of the input of the new tokens' positions, (batch, new tokens); "" if there is none.
        length: Name of the input of the number of valid tokens, (1,); "" if there is none.
    """

    states: tuple[CacheState, ...]
    capacities: tuple[int, ...]
    chunks: tuple[int, ...]
    token_inputs: tuple[tuple[str, int], ...]
    token_outputs: tuple[tuple[str, int], ...]
    mask: str
    positions: str
    length: str


def cache_of(function: Function) -> Cache | None:
    """Return the cache that a function declares, if any."""
    value = function.attrs.get(CACHE)
    if value is None:
        return None
    states, capacities, chunks, *rest = cast("tuple[tuple[tuple[str, str, int], ...], ...]", value)
    return Cache(tuple(CacheState(*item) for item in states), capacities, chunks, *rest)  # type: ignore[arg-type]  # the form that with_cache writes


def with_cache(function: Function, cache: Cache) -> Function:
    """Return a function that declares a cache."""
    states = tuple((item.input, item.output, item.axis) for item in cache.states)
    rest = (cache.token_inputs, cache.token_outputs, cache.mask, cache.positions, cache.length)
    value = (states, cache.capacities, cache.chunks, *rest)
    return with_fields(function, attrs=function.attrs.updated(**{CACHE: value}))
