"""Which loops are unrolled without being marked: small ones, the busiest first, as far as there is room."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple, assert_never

from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, Statement, Store
from intarsia.native.tir.rewriting import block_like, flat, with_body, with_branches


@dataclass(frozen=True, slots=True)
class UnrollLimits:
    """Up to where loops are unrolled without being marked.

    Attributes:
        max_step: A serial loop is if it then stores no more than so often; 0: none is.
        max_depth: How many loops inside each other are.
        max_stores: How many stores a function may have then, if it has fewer with the marked loops unrolled.
    """

    max_step: int
    max_depth: int
    max_stores: int


def marked_loops(body: Statement, limits: UnrollLimits) -> Statement:
    """A body with small serial loops marked as `unrolled`.

    Borders that were cut off a loop come to as much code as its main part, and are seldom run. So the loops
    in which most stores are carried out come first; of one for which there is no room left, those inside are
    tried. What is counted are stores, before anything is written.

    Args:
        body: Of a loop function.
        limits: How far.
    """
    walker = _Counter(limits)
    whole = walker.visit(body, 1, 1)
    if not whole.loops:
        return body
    return _Marker(_chosen(whole.loops, limits.max_stores - whole.least)).visit(body)


class _SmallLoop(NamedTuple):
    """A loop that may be unrolled, with all small ones inside.

    Attributes:
        rank: Comes first where it is less: less than 0 by the stores that are carried out in it.
        number: Its place among all loops, in the order in which they begin.
        growth: How many more stores the function has then.
        inside: The small loops directly inside.
    """

    rank: int
    number: int
    growth: int
    inside: tuple[_SmallLoop, ...]


class _Counted(NamedTuple):
    """A statement, as far as it matters.

    Attributes:
        steps: How many stores it carries out, those of a vectorised loop once.
        least: How many stores it has with the marked loops unrolled.
        depth: How many small loops are inside each other in it.
        has_loop: Whether there is a loop in it that is neither vectorised, nor marked, nor small.
        loops: The outermost small ones.
    """

    steps: int
    least: int
    depth: int = 0
    has_loop: bool = False
    loops: tuple[_SmallLoop, ...] = ()


def _together(parts: Iterable[_Counted]) -> _Counted:
    found = tuple(parts)
    return _Counted(
        sum(part.steps for part in found),
        sum(part.least for part in found),
        max((part.depth for part in found), default=0),
        any(part.has_loop for part in found),
        tuple(loop for part in found for loop in part.loops),
    )


class _Counter:
    """Finds small loops, and counts stores."""

    def __init__(self, limits: UnrollLimits) -> None:
        self.limits, self.numbers = limits, count()

    def visit(self, statement: Statement, runs: int, copies: int) -> _Counted:
        """A statement that is carried out so often, and written so often."""
        match statement:
            case Store():
                return _Counted(1, 1)
            case Block():
                return _together([self.visit(inner, runs, copies) for inner in flat(statement)])
            case For():
                return self.loop(statement, runs, copies)
            case Allocate():
                return self.visit(statement.body, runs, copies)
            case IfThenElse():
                both = (statement.then, statement.otherwise)
                return _together([self.visit(one, runs, copies) for one in both if one is not None])
            case _:
                assert_never(statement)

    def loop(self, loop: For, runs: int, copies: int) -> _Counted:
        number, extent = next(self.numbers), loop.extent
        if loop.kind is ForKind.VECTORIZED:
            return self.visit(loop.body, runs, copies)
        is_marked = loop.kind is ForKind.UNROLLED
        inside = self.visit(loop.body, runs * extent, copies * extent if is_marked else copies)
        steps = extent * inside.steps
        if is_marked:
            return inside._replace(steps=steps, least=extent * inside.least)
        is_small = (
            loop.kind is ForKind.SERIAL
            and steps <= self.limits.max_step
            and inside.depth < self.limits.max_depth
            and not inside.has_loop
        )
        if not is_small:
            return inside._replace(steps=steps, has_loop=True)
        small = _SmallLoop(-runs * steps, number, copies * (steps - inside.least), inside.loops)
        return _Counted(steps, inside.least, inside.depth + 1, loops=(small,))


def _chosen(loops: Iterable[_SmallLoop], room: int) -> frozenset[int]:
    """The numbers of the loops that are unrolled, where there is room for so many more stores."""
    waiting, found = list(loops), set[int]()
    heapify(waiting)
    while waiting:
        loop = heappop(waiting)
        if loop.growth <= max(room, 0):
            room -= loop.growth
            found |= _numbers(loop)
        else:
            for one in loop.inside:
                heappush(waiting, one)
    return frozenset(found)


def _numbers(loop: _SmallLoop) -> set[int]:
    """Of a small loop and all inside."""
    found, stack = set[int](), [loop]
    while stack:
        one = stack.pop()
        found.add(one.number)
        stack.extend(one.inside)
    return found


class _Marker:
    """Marks loops by their numbers: equal parts of a function may be one object, which has no place."""

    def __init__(self, chosen: Collection[int]) -> None:
        self.chosen, self.numbers = chosen, count()

    def visit(self, statement: Statement) -> Statement:
        match statement:
            case Store():
                return statement
            case Block():
                return block_like(statement, [self.visit(inner) for inner in flat(statement)])
            case For():
                is_chosen = next(self.numbers) in self.chosen
                after = with_body(statement, self.visit(statement.body))
                assert isinstance(after, For)
                return For(after.var, after.extent, after.body, ForKind.UNROLLED) if is_chosen else after
            case Allocate():
                return with_body(statement, self.visit(statement.body))
            case IfThenElse():
                then = self.visit(statement.then)
                otherwise = None if statement.otherwise is None else self.visit(statement.otherwise)
                return with_branches(statement, then, otherwise)
            case _:
                assert_never(statement)
