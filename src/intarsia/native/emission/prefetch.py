"""Software prefetches of loops.

A product reads a panel of its weights once for each tile of rows:

    for panels
      for tiles
        for k
          tile += left * panel[k]

The first tile loads the panel from memory, which is too slow for one tile, and idle during the other tiles.
So all
tiles together prefetch the next panel: in pass t of T, step k of K prefetches the element one panel after
(t * K + k) / T, into the second-level cache. Vector loads prefetch into the first-level cache shortly before
(see
`memory`). The last panel of a loop prefetches the first one of the next iteration of the loop around it.
Loops that
read a panel once prefetch at a distance of some KiB.
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
"""Bytes that one prefetch loads: processors also load the adjacent line."""
_LEAST_AHEAD: Final = 8192
"""Minimum prefetch distance in bytes: what arrives during one memory latency."""
_PANEL_SHARE: Final = 3
"""Divisor of the second-level cache size for the panel in use; the prefetched panel takes as much."""
_NEAR_SHARE: Final = 2
"""Divisor of the second-level cache size up to which data that are read again are still cached."""
_LEAST_USES: Final = 36
"""Minimum number of result vectors that use a line of a panel for prefetching to pay off.

With fewer the core is memory-bound anyway, and queued prefetches delay its loads.
"""
_MOST_REPEATS: Final = 16
"""Maximum number of prefetches of the same line; a prefetch takes a load slot of a step."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Prefetches of each iteration of a loop.

    Attributes:
        buffer: Name of the buffer.
        offset: Offset of the first line in bytes if all counters are 0; it may be beyond the end of the
            buffer.
        terms: Pairs of a counter's name and its stride in bytes.
        pairs: Number of consecutive pairs of lines.
        carry: Extra offset at the last step of a counter, where the enclosing loop advances: the counter's
            name, its last value, and bytes; None without one.
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
        buffer: Name of the buffer.
        const: Constant offset in bytes.
        steps: Stride of each counter in bytes, by name.
        loops: Enclosing loops, outermost first.
        uses: Number of occurrences of the load in the innermost loop.
        copies: Strides in bytes of the unrolled loops around the innermost loop, by their counters.
    """

    buffer: str
    const: int
    steps: dict[str, int]
    loops: tuple[For, ...]
    uses: int
    copies: tuple[tuple[str, int], ...] = ()

    def step(self, loop: For) -> int:
        return self.steps.get(loop.var.name, 0)

    def is_repeated_by(self, loops: tuple[For, ...]) -> bool:
        """Return whether one of the loops reads the same elements in each iteration."""
        return any(not self.step(loop) for loop in loops)


@dataclass(frozen=True, slots=True)
class _Passes:
    """The passes over a panel: loops from `begin` on read it, and loops from `outer` on repeat that.

    Attributes:
        begin: Index of the outermost loop that reads the panel, among those around a load.
        outer: Index of the outermost loop that repeats the pass.
        before: Number of passes in earlier loops.
        total: Number of all passes.
    """

    begin: int
    outer: int
    before: int
    total: int


_Key: TypeAlias = tuple[int, str, int, tuple[tuple[str, int], ...]]
"""What makes a load another one: its innermost loop, its buffer, its offset and its strides outside."""

_Inside: TypeAlias = dict[int, dict[int, _Stream]]
"""Loops directly inside a loop, by identity and in the order of the text, each with one of its loads."""


def prefetches(
    prim_func: PrimFunc, facts: Facts, streamed: tuple[str, ...], second_cache: int
) -> dict[int, tuple[Prefetch, ...]]:
    """Return the prefetches of loops, by the loops' identities.

    Args:
        prim_func: The loop function.
        facts: Facts on the loop function.
        streamed: Names of the buffers to prefetch.
        second_cache: Size of the second-level cache in bytes.
    """
    sizes = {buffer.name: prod(buffer.shape) * stored_bytes(buffer.dtype) for buffer in prim_func.params}
    inside: dict[str, _Inside] = {name: defaultdict(dict) for name in streamed}
    streams = _streams(prim_func, facts, streamed) if streamed else []
    for stream in streams:
        for around, loop in pairwise(stream.loops):
            inside[stream.buffer][id(around)].setdefault(id(loop), stream)
    prefetches_of: dict[int, dict[Prefetch, None]] = defaultdict(dict)
    for stream in streams:
        passes = _passes(stream, inside[stream.buffer])
        outer = stream.loops[: passes.outer] if passes else stream.loops
        is_near = sizes[stream.buffer] * _NEAR_SHARE <= second_cache
        if is_near and stream.is_repeated_by(outer):
            continue
        prefetch = _over_passes(stream, passes, second_cache // _PANEL_SHARE) if passes else _ahead(stream)
        if prefetch is not None:
            loop, lines = prefetch
            prefetches_of[id(loop)].setdefault(replace(lines, terms=(*lines.terms, *stream.copies)))
    return {number: tuple(each) for number, each in prefetches_of.items()}


def _streams(prim_func: PrimFunc, facts: Facts, streamed: tuple[str, ...]) -> list[_Stream]:
    """Return the loads of streamed buffers, one of those that differ only by lanes.

    A load in an unrolled loop is one for each of its iterations.
    """
    around: list[For] = []
    streams: dict[_Key, _Stream] = {}
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
            if min(stream.steps.values(), default=0) <= 0:
                continue
            for offset in _offsets(load, plan, loops, around):
                key = id(loops[-1]), stream.buffer, stream.const + offset, stream.copies
                earlier = streams.setdefault(key, replace(stream, const=key[2], uses=0))
                streams[key] = replace(earlier, uses=earlier.uses + stream.uses)
    return list(streams.values())


def _offsets(load: Load, plan: AccessPlan, loops: tuple[For, ...], around: list[For]) -> list[int]:
    """Return the offset in bytes of a load in each iteration of the unrolled loops in the innermost loop."""
    size, steps = stored_bytes(load.buffer.dtype), dict(plan.terms)
    inside = list(takewhile(lambda loop: loop is not loops[-1], reversed(around)))
    offsets = [0]
    for loop in reversed(inside):
        if loop.kind is not ForKind.VECTORIZED and (step := steps.get(loop.var.name, 0) * size):
            offsets = [offset + number * step for offset in offsets for number in range(loop.extent)]
    return offsets


def _has_counter(loop: For, facts: Facts) -> bool:
    """Return whether a loop has a counter at run time."""
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
    outside = takewhile(lambda loop: loop is not loops[-1], around)
    copies = tuple(
        (loop.var.name, terms[loop.var.name] * size)
        for loop in outside
        if loop.kind is ForKind.UNROLLED and terms.get(loop.var.name)
    )
    return _Stream(load.buffer.name, plan.const * size, steps, loops, prod(again), copies)


def _passes(stream: _Stream, inside: _Inside) -> _Passes | None:
    """Return the passes over the smallest panel that is read again; None if there is none."""
    loops = stream.loops
    begin = len(loops)
    while begin > 1 and stream.step(loops[begin - 1]):
        begin = outer = begin - 1
        while outer and not stream.step(loops[outer - 1]):
            outer -= 1
        if not outer:
            return None
        passes = _with_those_beside(stream, begin, outer, inside[id(loops[outer - 1])])
        if passes.total > 1:
            return passes
    return None


def _with_those_beside(stream: _Stream, begin: int, outer: int, beside: dict[int, _Stream]) -> _Passes:
    """Return passes that include those of sibling loops over the same panel."""
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
    return _Passes(begin, outer, before, total)


def _extents(stream: _Stream, begin: int) -> tuple[int, ...]:
    """Return the bytes that each loop from `begin` on covers."""
    return tuple(stream.step(loop) * loop.extent for loop in stream.loops[begin:])


def _over_passes(stream: _Stream, passes: _Passes, most: int) -> tuple[For, Prefetch] | None:
    """Return the prefetches of the next panel during the passes over this one.

    None if that does not pay off.
    """
    panel = stream.loops[passes.begin :]
    steps = [stream.step(loop) for loop in panel]
    ahead = stream.step(stream.loops[passes.outer - 1])
    if sorted(steps, reverse=True) != steps or not steps[0] * panel[0].extent <= ahead <= most:
        return None
    if stream.uses * passes.total < _LEAST_USES:
        return None
    first = next((n for n in reversed(range(len(panel))) if steps[n] >= _PAIR * passes.total), 0)
    share = -(-steps[first] // passes.total)
    if first == len(panel) - 1 and share * _MOST_REPEATS < _PAIR:
        return None
    terms = {loop.var.name: step for loop in stream.loops[: passes.outer] if (step := stream.step(loop))}
    length = share
    for loop in (*reversed(panel[: first + 1]), *reversed(stream.loops[passes.outer : passes.begin])):
        terms[loop.var.name] = length
        length *= loop.extent
    turn = share * prod(loop.extent for loop in panel[: first + 1])
    offset = stream.const - stream.const % steps[first] + ahead + passes.before * turn
    pairs = -(-share // _PAIR)
    carry = _carry(stream, passes.outer - 1)
    return panel[first], Prefetch(stream.buffer, offset, tuple(terms.items()), pairs, carry)


def _carry(stream: _Stream, position: int) -> tuple[str, int, int] | None:
    """Return the carry after the last panel of a loop, to the first panel of the next iteration."""
    if not position or not stream.step(stream.loops[position - 1]):
        return None
    loop = stream.loops[position]
    more = stream.step(stream.loops[position - 1]) - loop.extent * stream.step(loop)
    return (loop.var.name, loop.extent - 1, more) if more else None


def _ahead(stream: _Stream) -> tuple[For, Prefetch] | None:
    """Return prefetches at a fixed distance; None if the innermost loop does not advance in the buffer."""
    loop = stream.loops[-1]
    step = stream.step(loop)
    if step != _LINE:
        return None
    offset = stream.const - stream.const % step + _LEAST_AHEAD
    return loop, Prefetch(stream.buffer, offset, tuple(stream.steps.items()), 1)
