"""What loops ask memory for, while they compute with what they asked for before.

A product goes over a panel of its weights once for each tile of rows:

    for panels
      for tiles
        for k
          tile += left * panel[k]

At the first tile the panel comes from memory, which is too slow for one tile, and idle while the others
have their turn. So all turns together ask for the next panel: in turn t of T, step k of K asks for what is
one panel behind the element (t * K + k) / T. It comes into the second-level cache; the first-level cache is
asked a little ahead where vectors are loaded (see `memory`). The last panel of a loop asks for the
first one of the next iteration of the loop around it. Without turns, loops ask for what they read some KiB
later.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from math import prod
from typing import Final, TypeAlias

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import For, ForKind, Load, PrimFunc
from intarsia.native.emission.facts import Facts
from intarsia.native.emission.index import AccessPlan
from intarsia.native.emission.types import stored_bytes

_LINE: Final = 64
_PAIR: Final = 2 * _LINE
"""Bytes that come when one line of them is asked for: processors bring the line beside it as well."""
_LEAST_AHEAD: Final = 8192
"""Bytes between what is read and what is asked for: what comes while a memory answers."""
_PANEL_SHARE: Final = 3
"""The part of the second-level cache, 1 of so many, for what is read and as much for what is asked for."""
_NEAR_SHARE: Final = 2
"""What is gone over again and needs no more than this part of the second-level cache is there already."""
_LEAST_USES: Final = 36
"""How many vectors of results a line of a panel adds to where asking pays: for fewer, a core waits for its
memory anyway, and requests that stand in line keep loads waiting."""
_MOST_REPEATS: Final = 16
"""How often a line may be asked for: asking takes a place among the loads of a step."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What each iteration of a loop asks for.

    Attributes:
        buffer: Name of the buffer.
        offset: Bytes from its begin to the first line, where all counters are 0; it may lie beyond its end.
        terms: Bytes for each step of the counters with these names.
        pairs: How many pairs of lines, one behind the other.
        carry: What is added at the last step of a counter, where the loop around it goes on: the counter's
            name, its last value, and bytes. None if it is nothing.
    """

    buffer: str
    offset: int
    terms: tuple[tuple[str, int], ...]
    pairs: int
    carry: tuple[str, int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Stream:
    """A load of a buffer.

    Attributes:
        buffer: Its name.
        const: Bytes from its begin.
        steps: Bytes for each step of counters.
        loops: Those around it.
        uses: How many times the innermost loop has the load.
    """

    buffer: str
    const: int
    steps: dict[str, int]
    loops: tuple[For, ...]
    uses: int

    def step(self, loop: For) -> int:
        return self.steps.get(loop.var.name, 0)

    def is_repeated_by(self, loops: tuple[For, ...]) -> bool:
        """Whether one of some loops reads the same elements again and again."""
        return any(not self.step(loop) for loop in loops)


@dataclass(frozen=True, slots=True)
class _Turns:
    """How a panel is gone over: the loops from `begin` on go over it, those from `outer` on repeat that.

    Attributes:
        begin: The place of a loop among those around a load.
        outer: The same.
        before: How many turns there were in loops whose text comes before.
        total: How many turns there are.
    """

    begin: int
    outer: int
    before: int
    total: int


_Inside: TypeAlias = dict[int, dict[int, _Stream]]
"""The loops directly inside a loop, all by identity, in the order of the text, each with a load in it."""


def prefetches(
    prim_func: PrimFunc, facts: Facts, streamed: tuple[str, ...], second_cache: int
) -> dict[int, tuple[Prefetch, ...]]:
    """What iterations of loops ask for, by the loops' identities.

    Args:
        prim_func: The loop function.
        facts: What is known of it.
        streamed: Names of the buffers that come from far away.
        second_cache: Bytes of the second-level cache.
    """
    sizes = {buffer.name: prod(buffer.shape) * stored_bytes(buffer.dtype) for buffer in prim_func.params}
    inside: dict[str, _Inside] = {name: defaultdict(dict) for name in streamed}
    streams = _streams(prim_func, facts, streamed) if streamed else []
    for stream in streams:
        for around, loop in pairwise(stream.loops):
            inside[stream.buffer][id(around)].setdefault(id(loop), stream)
    found: dict[int, dict[Prefetch, None]] = defaultdict(dict)
    for stream in streams:
        turns = _turns(stream, inside[stream.buffer])
        outer = stream.loops[: turns.outer] if turns else stream.loops
        is_near = sizes[stream.buffer] * _NEAR_SHARE <= second_cache
        if is_near and stream.is_repeated_by(outer):
            continue
        asked = _in_turns(stream, turns, second_cache // _PANEL_SHARE) if turns else _ahead(stream)
        if asked is not None:
            found[id(asked[0])].setdefault(asked[1])
    return {number: tuple(each) for number, each in found.items()}


def _streams(prim_func: PrimFunc, facts: Facts, streamed: tuple[str, ...]) -> list[_Stream]:
    """The loads of some buffers, one of those that differ in nothing but what vectors count."""
    around: list[For] = []
    found: dict[tuple[int, str, int], _Stream] = {}
    for visit in walk(prim_func.body):
        statement = visit.statement
        if isinstance(statement, For) and visit.event is not Event.ELSE:
            around.append(statement) if visit.event is Event.ENTER else around.pop()
        if visit.event is not Event.ENTER or not around:
            continue
        loads = [load for load in facts.loads(statement) if load.buffer.name in streamed]
        loops = tuple(loop for loop in around if _has_counter(loop, facts)) if loads else ()
        for load in loads:
            plan = facts.plan(load)
            if plan is None or not loops:
                continue
            stream = _stream(load, plan, loops, around)
            if min(stream.steps.values(), default=0) > 0:
                place = id(loops[-1]), stream.buffer, stream.const
                known = found.setdefault(place, replace(stream, uses=0))
                found[place] = replace(known, uses=known.uses + stream.uses)
    return list(found.values())


def _has_counter(loop: For, facts: Facts) -> bool:
    """Whether a loop counts when it runs."""
    is_loop = loop.kind in (ForKind.SERIAL, ForKind.PARALLEL)
    return is_loop and loop.extent > 1 and id(loop) not in facts.constant_loops


def _stream(load: Load, plan: AccessPlan, loops: tuple[For, ...], around: list[For]) -> _Stream:
    size = stored_bytes(load.buffer.dtype)
    names, terms = {loop.var.name for loop in loops}, dict(plan.terms)
    steps = {name: factor * size for name, factor in terms.items() if name in names}
    again = [
        loop.extent
        for loop in takewhile(lambda loop: loop is not loops[-1], reversed(around))
        if loop.kind is not ForKind.VECTORIZED and loop.var.name not in terms
    ]
    return _Stream(load.buffer.name, plan.const * size, steps, loops, prod(again))


def _turns(stream: _Stream, inside: _Inside) -> _Turns | None:
    """How the smallest part that is gone over again is, inside of a larger one; None if there is none."""
    loops = stream.loops
    begin = len(loops)
    while begin > 1 and stream.step(loops[begin - 1]):
        begin = outer = begin - 1
        while outer and not stream.step(loops[outer - 1]):
            outer -= 1
        if not outer:
            return None
        turns = _with_those_beside(stream, begin, outer, inside[id(loops[outer - 1])])
        if turns.total > 1:
            return turns
    return None


def _with_those_beside(stream: _Stream, begin: int, outer: int, beside: dict[int, _Stream]) -> _Turns:
    """Turns, with those of other loops in the loop around that go over the same panel."""
    panel = _extents(stream, begin)
    before = total = 0
    for number, other in beside.items():
        if number == id(stream.loops[outer]):
            before = total
        first = outer
        while first < len(other.loops) and not other.step(other.loops[first]):
            first += 1
        if _extents(other, first) == panel:
            total += prod(loop.extent for loop in other.loops[outer:first])
    return _Turns(begin, outer, before, total)


def _extents(stream: _Stream, begin: int) -> tuple[int, ...]:
    """The bytes that loops go over, from one on."""
    return tuple(stream.step(loop) * loop.extent for loop in stream.loops[begin:])


def _in_turns(stream: _Stream, turns: _Turns, most: int) -> tuple[For, Prefetch] | None:
    """The part of the next panel that iterations ask for in turns of this one; None if that does not pay."""
    panel = stream.loops[turns.begin :]
    steps = [stream.step(loop) for loop in panel]
    ahead = stream.step(stream.loops[turns.outer - 1])
    if sorted(steps, reverse=True) != steps or not steps[0] * panel[0].extent <= ahead <= most:
        return None
    if stream.uses * turns.total < _LEAST_USES:
        return None
    place = next((n for n in reversed(range(len(panel))) if steps[n] >= _PAIR * turns.total), 0)
    share = -(-steps[place] // turns.total)
    if place == len(panel) - 1 and share * _MOST_REPEATS < _PAIR:
        return None
    terms = {loop.var.name: step for loop in stream.loops[: turns.outer] if (step := stream.step(loop))}
    length = share
    for loop in (*reversed(panel[: place + 1]), *reversed(stream.loops[turns.outer : turns.begin])):
        terms[loop.var.name] = length
        length *= loop.extent
    turn = share * prod(loop.extent for loop in panel[: place + 1])
    offset = stream.const - stream.const % steps[place] + ahead + turns.before * turn
    pairs = -(-share // _PAIR)
    carry = _carry(stream, turns.outer - 1)
    return panel[place], Prefetch(stream.buffer, offset, tuple(terms.items()), pairs, carry)


def _carry(stream: _Stream, place: int) -> tuple[str, int, int] | None:
    """What is added behind the last panel of a loop, so that the first one of the next iteration is next."""
    if not place or not stream.step(stream.loops[place - 1]):
        return None
    loop = stream.loops[place]
    more = stream.step(stream.loops[place - 1]) - loop.extent * stream.step(loop)
    return (loop.var.name, loop.extent - 1, more) if more else None


def _ahead(stream: _Stream) -> tuple[For, Prefetch] | None:
    """The same elements, later; None if the innermost loop does not go over them."""
    loop = stream.loops[-1]
    step = stream.step(loop)
    if step != _LINE:
        return None
    offset = stream.const - stream.const % step + _LEAST_AHEAD
    return loop, Prefetch(stream.buffer, offset, tuple(stream.steps.items()), 1)
